"""PyTorch: `sf.torch.export` makes a step of a module, `sf.torch.compile` trains one. docs/start/pytorch.md is the way in."""

try:
    import jax  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(f"libsheaf.torch needs PyTorch and JAX ({error}): pip install torch==2.10.0 jax==0.10.2") from error

from .torch_compile import Trainer, compile
from .torch_export import TorchStep, export

__all__ = ["TorchStep", "Trainer", "compile", "export"]
