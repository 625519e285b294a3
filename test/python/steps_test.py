"""Steps and clusters: what they say of themselves, and what is refused."""

import json

import pytest

import libsheaf as sf
from conftest import EXAMPLES, TINY


def test_arguments(gpt):
    kernel = gpt.argument("params.layer_0.mlp.up.kernel")
    assert (kernel.dtype, kernel.shape, kernel.role) == ("f32", (16, 64), "param")
    assert kernel.name == "params['params']['layer_0']['mlp']['up']['kernel']"
    assert gpt.argument(kernel.name) == gpt.argument(kernel.path) == gpt.argument(kernel.index) == kernel
    assert gpt.results[kernel.next].shape == kernel.shape
    assert len(gpt.arguments) == 111 and len(gpt.results) == 110 and gpt.loss == 109
    assert {"layer_0/attn", "layer_1/mlp"} < set(gpt.scopes)


def test_paths_are_those_of_pins(gpt):
    for argument in gpt.arguments:
        assert gpt.argument(argument.path) == argument


def test_an_unknown_argument_names_those_that_are_like_it(gpt):
    with pytest.raises(sf.SheafError, match="params/wte/embedding") as caught:
        gpt.argument("params.wte.embeding")
    assert caught.value.code == sf.Code.USAGE


def test_text_is_read_back(gpt, tmp_path):
    again = sf.Step.from_text(gpt.text(), sidecar=gpt.sidecar())
    assert again.hash == gpt.hash
    assert [(a.shape, a.role, a.next) for a in again.arguments] == [(a.shape, a.role, a.next) for a in gpt.arguments]
    gpt.save(tmp_path / "copy.stablehlo.mlir")
    copy = sf.load(tmp_path / "copy.stablehlo.mlir")
    assert copy.hash == gpt.hash and [a.role for a in copy.arguments] == [a.role for a in gpt.arguments]


def test_a_sidecar_gives_roles():
    sidecar = {"args": [{"role": "param", "shape": [2]}, {"role": "batch", "shape": [4, 2]}, {"role": "batch", "shape": [4]}]}
    step = sf.Step.from_text(TINY, sidecar=sidecar, state="w=0")
    assert [a.role for a in step.arguments] == ["param", "batch", "batch"]
    assert [a.next for a in step.arguments] == [0, None, None]


def test_show(gpt):
    assert "parameters  7,232" in str(gpt.show())
    assert gpt.show().data["hash"] == gpt.hash


def test_errors_have_places():
    with pytest.raises(sf.SheafError) as caught:
        sf.Step.from_text(TINY.replace("dense<0.1>", "dense<zero>").replace("stablehlo.reduce(", "stablehlo.reduze("), name="bad.mlir")
    errors = [(d.file, d.line, d.severity, bool(d.text)) for d in caught.value.diagnostics]
    assert errors == [("bad.mlir", 3, "error", True), ("bad.mlir", 8, "error", True)]
    assert (caught.value.code, caught.value.file, caught.value.line) == (sf.Code.INPUT, "bad.mlir", 3)
    assert caught.value.column > 0 and "did you mean stablehlo.reduce" in caught.value.diagnostics[1].hint
    assert "bad.mlir:3:" in str(caught.value)


def test_a_missing_file():
    with pytest.raises(sf.SheafError, match="No such file") as caught:
        sf.load("/no/such/step.mlir")
    assert caught.value.code == sf.Code.IO


def test_warnings_come_by_python():
    with pytest.warns(sf.SheafWarning) as caught:
        sf.pin(sf.load(EXAMPLES / "gpt-micro.stablehlo.mlir"), mesh="data=2,model=2", pins=["batch/*=S(0)@data"])
    assert "replicated" in caught[0].message.diagnostic.text
    assert caught[0].filename == __file__  # of the caller, not of the package


def test_clusters(tmp_path):
    cluster = sf.Cluster("4x8xH100")
    assert cluster.devices == 32
    assert sf.Cluster(cluster.to_dict()).to_dict() == cluster.to_dict()
    cluster.save(tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text()) == cluster.to_dict()
    assert sf.Cluster(tmp_path / "c.json").devices == 32
    assert "H100" in str(cluster.show()) and "rhino-m8" in str(sf.Cluster.list())
    with pytest.raises(sf.SheafError):
        sf.Cluster("4x8xNoSuchDevice")


def test_sizes():
    from libsheaf.library import to_bytes

    assert [to_bytes(size) for size in (7, "7", "1.5K", "512M", "75G")] == [7, 7, 1536, 512 * 2**20, 75 * 2**30]
    with pytest.raises(sf.SheafError, match="is no size"):
        to_bytes("75 GB")
