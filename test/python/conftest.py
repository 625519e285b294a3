"""What the tests of the package share. Tests marked `nightly` run with SHEAF_NIGHTLY=1 alone."""

import os
import warnings
from pathlib import Path

import pytest

import libsheaf as sf

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
TINY = """
func.func public @main(%w: tensor<2xf32>, %x: tensor<4x2xf32>, %y: tensor<4xf32>) -> (tensor<2xf32>, tensor<f32>) {
  %rate = stablehlo.constant dense<0.1> : tensor<2xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %e = stablehlo.subtract %p, %y : tensor<4xf32>
  %s = stablehlo.multiply %e, %e : tensor<4xf32>
  %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<4x2xf32>, tensor<4xf32>) -> tensor<2xf32>
  %u = stablehlo.multiply %g, %rate : tensor<2xf32>
  %new = stablehlo.subtract %w, %u : tensor<2xf32>
  return %new, %loss : tensor<2xf32>, tensor<f32>
}
"""


def pytest_configure(config):
    config.addinivalue_line("markers", "nightly: takes long")


def pytest_collection_modifyitems(items):
    if not os.environ.get("SHEAF_NIGHTLY"):
        for item in items:
            if item.get_closest_marker("nightly"):
                item.add_marker(pytest.mark.skip(reason="SHEAF_NIGHTLY is not set"))


@pytest.fixture(autouse=True)
def quiet():
    """Warnings of the library are tested where they matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.SheafWarning)
        yield


@pytest.fixture(scope="session")
def gpt():
    """A GPT of two layers with AdamW."""
    return sf.load(EXAMPLES / "gpt-micro.stablehlo.mlir")


@pytest.fixture(scope="session")
def gpt_io():
    """Its arguments, results and losses, as JAX computed them."""
    return EXAMPLES / "gpt-micro.io.safetensors"


@pytest.fixture(scope="session")
def tiny():
    """Linear regression."""
    return sf.Step.from_text(TINY, name="tiny", state={"w": 0})
