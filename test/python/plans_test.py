"""Plans: made by search, by pins and by recipes; what they say of themselves."""

import json
import subprocess

import pytest

import libsheaf as sf
from conftest import EXAMPLES, ROOT


@pytest.fixture(scope="module")
def found(gpt):
    return sf.plan(gpt, "1x4xCPU", memory="150K")


def test_search(found):
    assert found.ranks == 4 and 0 < found.seconds < 1 and found.memory <= 150 * 1024
    assert found.mesh and all(size > 1 for size in found.mesh.values())
    found.check(memory="150K")


def test_candidates(found):
    best = found.candidates[0]
    assert best.fits and best.lowered and best.seconds == min(c.seconds for c in found.candidates if c.fits and c.lowered)
    assert isinstance(best.mesh, dict)


def test_nothing_fits(tiny):
    with pytest.raises(sf.SheafError, match="no plan was found that fits") as caught:
        sf.plan(tiny, "1x2xCPU", memory=8)
    assert caught.value.code == sf.Code.MISMATCH and caught.value.hint


@pytest.mark.parametrize("pins", [
    ["batch/*=S(0)@data", "mlp/up/kernel=S(1)@model"],
    {"batch.*": "S(0)@data", "mlp.up.kernel": "S(1)@model"},
    {"batch/*": {"data": "S(0)"}, "mlp/up/kernel": {"model": "S(1)"}},
    {"batch/*": ("data",), "mlp/up/kernel": (None, "model")},
])
def test_pins(gpt, pins):
    plan = sf.pin(gpt, mesh={"data": 2, "model": 2}, pins=pins)
    kernel = plan.layout("params.layer_0.mlp.up.kernel")
    assert str(kernel) == "[R, S(1)]" and kernel.axes == {"data": "R", "model": "S(1)"} and kernel.spec == (None, "model")
    assert plan.layout("batch.ids").spec[0] == "data"
    assert plan.boxes("params.layer_0.mlp.up.kernel", 3) == [(slice(0, 16), slice(32, 64))]


def test_layouts(gpt):
    plan = sf.pin(gpt, recipe="zero3", ranks=4)
    kernels = plan.layouts("mlp/up/kernel")
    assert len(kernels) >= 2 and all(layout.name.endswith("mlp/up/kernel") for layout in kernels)
    gpt_kernel = gpt.argument("params.layer_0.mlp.up.kernel")
    assert plan.layout(gpt_kernel.index).shape == gpt_kernel.shape
    assert plan.result_layout(gpt_kernel.next).axes == plan.layout(gpt_kernel.index).axes
    with pytest.raises(sf.SheafError, match="no tensor"):
        plan.layout("nothing/like/it")


@pytest.mark.parametrize("said, message", [
    (dict(recompute="blah", mesh="data=2"), "recompute"), (dict(mesh="data=x"), "mesh"), (dict(recipe="none-such", ranks=2), "recipe"),
    (dict(ranks=3, recipe="dp"), "does not split"), (dict(pins=["no/such=S(0)@data"], mesh="data=2"), "no/such"),
])
def test_refusals_say_what(gpt, said, message):
    with pytest.raises(sf.SheafError, match=message):
        sf.pin(gpt, **said)


def test_texts(found):
    assert "candidate" in str(found.explain()) or "slower by" in str(found.explain())
    assert found.explain().data["seconds"] == found.simulate()["seconds"]
    assert "wte" in str(found.explain("wte.embedding"))
    assert found.program(0).count("\n") > 10
    assert "mesh" in str(found.show()) and found.show().data["ranks"] == 4


def test_simulate_writes_a_timeline(found, tmp_path):
    found.simulate(trace=tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    faster = found.simulate(cluster="1x4xH100")
    assert faster["seconds"] != found.simulate()["seconds"]


def test_report(found, tmp_path):
    page = found.report(tmp_path / "plan.html", title="A plan of tests")
    assert "A plan of tests" in page.html and (tmp_path / "plan.html").read_text() == page.html
    assert page.data["format"] == "sheaf report" and page.data["plan"]["ranks"] == 4


def test_diff(gpt, found):
    other = sf.pin(gpt, recipe="dp", ranks=4)
    diff = found.diff(other, names=("a plan", "dp"))
    assert "a plan" in str(diff) and [p["name"] for p in diff.data["plans"]] == ["a plan", "dp"]
    assert "dp" in str(found.diff(other, cluster="1x4xCPU", names=("a plan", "dp")))


def test_files(gpt, found, tmp_path):
    found.save(tmp_path / "plan.json")
    read = sf.load_plan(tmp_path / "plan.json")
    assert read.step.hash == gpt.hash and read.mesh == found.mesh and read.cluster.devices == 4
    assert sf.Plan.from_dict(found.to_dict(), gpt).to_dict() == found.to_dict()
    with pytest.raises(sf.SheafError):
        sf.load_plan(EXAMPLES / "gpt-micro.json")


def test_passes(gpt):
    plan = sf.pin(gpt, recipe="zero3", ranks=4)
    changed = plan.use_passes(["fsdp", "prefetch"])
    assert changed.passes == "fsdp,prefetch" and plan.passes == ""
    assert "fsdp" in sf.passes() and "zero3" in sf.recipes()


def test_verify(gpt, gpt_io):
    checked = sf.pin(gpt, recipe="2d", ranks=4).verify(steps=2)
    assert checked.passed and checked.ranks == 4 and len(checked.losses) == 2 and checked.worst.error < checked.worst.tolerance
    assert sf.verify(gpt, against=gpt_io).passed
    with pytest.raises(sf.SheafError) as caught:
        sf.verify(gpt, against=gpt_io, tolerance=1e-30)
    assert caught.value.code == sf.Code.MISMATCH and not caught.value.verification.passed


def test_shrunk():
    plan = sf.pin(sf.load(EXAMPLES / "gpt2-124m.stablehlo.mlir.gz"), recipe="dp", ranks=2)
    assert plan.verify(shrink=True, steps=1).passed


def test_train_and_resume(gpt, tmp_path):
    events = []
    plan = sf.pin(gpt, recipe="dp", ranks=2)
    run = sf.train(plan, 4, data="synthetic", save=tmp_path / "run", save_every=2, seed=1, progress=events.append)
    assert run.step == 4 and not run.interrupted
    assert [e.kind for e in events] == ["start", "step", "step", "saved", "step", "step", "saved"]
    assert events[-2].loss == pytest.approx(run.loss, rel=1e-5)
    more = sf.train(gpt, 6, data="synthetic", save=tmp_path / "run", resume=True)
    assert (more.first, more.step) == (4, 6)
    stopped = sf.train(gpt, 100, data="synthetic", progress=lambda event: event.step < 3)
    assert stopped.interrupted and stopped.step == 3
    with pytest.raises(sf.SheafError, match="no order"):
        sf.train(gpt, 1, data="synthetic", order="backwards")


def test_a_listener_that_raises_ends_the_call(gpt):
    def fail(event):
        raise LookupError(event.kind)

    with pytest.raises(LookupError, match="start"):
        sf.train(gpt, 10**9, data="synthetic", progress=fail)


def test_the_file_of_prototypes_is_that_of_the_headers():
    subprocess.run([ROOT / "scripts" / "make-prototypes", "--check"], check=True)
