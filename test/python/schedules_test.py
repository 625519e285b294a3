"""Schedules in Python make the plans that those in Lua make."""

import json
import re

import pytest

import libsheaf as sf
from conftest import EXAMPLES

LUA = EXAMPLES / "schedules"
op = sf.op


def gpt_schedule(sch):
    sch.mesh({"model": sch.ranks or 2})
    sch["layer_*"].shard(["q/kernel", "k/kernel", "v/kernel", "up/kernel"], 1)
    sch["layer_*"].shard(["q/bias", "k/bias", "v/bias", "up/bias"], 0)
    sch["layer_*"].shard(["o/kernel", "down/kernel"], 0)
    sch["layer_*.attn"].sync("forward").sync("backward")
    sch["layer_*.mlp"].sync("forward")
    sch["wte"].shard("embedding", 0)


def fused(sch):
    sch.mesh({"model": sch.ranks or 1})
    mlp, attn = sch["layer_?.mlp"], sch["layer_?.attn"]

    def gelu(x, b):
        y = x + b
        return y * op.logistic(y * (y * y * 0.044715 + 1) * 1.5957691216057308)

    def qkv(x, q, k, v):
        n, whole = q.shape[1], op.dot(x, op.concatenate(q, k, v, dimension=1))
        return [op.slice(whole, start_indices=[0, 0, i * n], strides=[1, 1, 1], limit_indices=[x.shape[0], x.shape[1], (i + 1) * n])
                for i in range(3)]

    mlp.trace()
    mlp.replace(gelu, mlp.find(lambda x, b: op.gelu(x + b)), name="gelu")
    attn.trace()
    attn.replace(qkv, attn.find(lambda x, q, k, v: (x @ q, x @ k, x @ v)), name="qkv")


def one_f_one_b(sch):
    space, micro_batches, stages = sch.space(2), 4, 2
    space.trans(None, "batch", micro_batches, "time")
    for stage in range(stages):
        layer, ahead = f"layer_{stage}", stages - stage
        space.assign(layer, stage)
        for mb in range(micro_batches - ahead):
            space.order((layer, "backward", mb), (layer, "forward", mb + ahead))


def without_places(plan):
    """The plan file without the names and lines of the schedule's file."""
    return json.loads(re.sub(r"[^ \"]*\.(py|lua):\d+", "PLACE", json.dumps(plan.to_dict())))


@pytest.mark.parametrize("schedule, file", [(gpt_schedule, "gpt.lua"), (fused, "fused.lua"), (one_f_one_b, "nnscaler-1f1b.lua")])
def test_as_in_lua(gpt, schedule, file):
    ours, theirs = sf.pin(gpt, schedule=schedule, ranks=2), sf.pin(gpt, schedule=LUA / file, ranks=2)
    assert ours.step.hash == theirs.step.hash
    assert without_places(ours) == without_places(theirs)


def test_plan_keeps_to_a_schedule(gpt):
    plan = sf.plan(gpt, "1x2xCPU", schedule=lambda sch: sch["wte"].shard("embedding", 0, "model"))
    assert plan.layout("params.wte.embedding").axes["model"] == "S(0)"


def test_the_name_of_a_pipeline_schedule(gpt):
    plan = sf.pin(gpt, mesh="pipe=2", stages=2, micro_batches=2, schedule="gpipe")
    assert plan.to_dict()["pipeline"]["schedule"] == "gpipe"


def test_errors_name_the_line(gpt):
    def bad(sch):
        sch.mesh("model=3")
        sch["layer_0.attn.q"].shard("kernel", 1)

    with pytest.raises(sf.SheafError, match="does not divide into 3") as caught:
        sf.pin(gpt, schedule=bad)
    assert caught.value.file == __file__ and caught.value.line == bad.__code__.co_firstlineno + 2


def test_modules(gpt):
    sch = sf.Schedule(gpt)
    assert len(sch["layer_?"]) == 2 and [m.pattern for m in sch["layer_?"]] == ["layer_0", "layer_1"]
    assert {m.pattern for m in sch["layer_0"].children()} == {"layer_0/attn", "layer_0/mlp", "layer_0/norm1", "layer_0/norm2"}
    assert "params/layer_0/mlp/up/kernel" in sch["layer_0"]["mlp.up"].params()
    assert {"wte", "layer_0"} <= {m.pattern for m in sch.children()}
    with pytest.raises(sf.SheafError, match="no module"):
        sch["layer_7"]


def test_a_failed_shard_leaves_nothing(gpt):
    sch = sf.Schedule(gpt)
    sch.mesh("model=2")
    with pytest.raises(sf.SheafError):
        sch["layer_0.mlp"].shard(["up/kernel", "no/such"], 1)
    assert sch.primitives() == ["mesh model=2"]
    sch.undo()
    assert sch.primitives() == []


def test_find(gpt):
    sch = sf.Schedule(gpt)
    mlp = sch["layer_?.mlp"].trace()
    by_name = mlp.find("tanh$")
    by_function = mlp.find(sf.where(lambda op: op.op == "tanh" and op.shape == (4, 8, 64)))
    assert [s.ops() for s in by_name] == [s.ops() for s in by_function] == [["layer_0/mlp/tanh"], ["layer_1/mlp/tanh"]]
    with pytest.raises(ZeroDivisionError):
        mlp.find(sf.where(lambda op: 1 / 0))
    with pytest.raises(sf.SheafError, match="unknown|no op"):
        mlp.find(lambda x: op.no_such_op(x))
    with pytest.raises(sf.SheafError, match="traced|trace"):
        sch["layer_0.attn"].find("tanh$")
    with pytest.raises(sf.SheafError, match="find and replace"):
        op.tanh(1.0)


def test_backward(gpt):
    """The backward pass of a replacement: GELU by its own derivative."""

    def gelu(x):
        return x * op.logistic(x * (x * x * 0.044715 + 1) * 1.5957691216057308)

    def wrong(x, dy):
        return dy

    sch = sf.Schedule(gpt, ranks=1)
    mlp = sch["layer_?.mlp"].trace()
    mlp.replace(gelu, mlp.find(op.gelu), backward=wrong)
    with pytest.raises(sf.SheafError) as caught:
        sch.verify()
    assert caught.value.code == sf.Code.MISMATCH and caught.value.file == __file__


def test_verify(gpt):
    sch = sf.Schedule(gpt, ranks=2)
    fused(sch)
    sch.verify(1)


def tuned(sch):
    data = sch.tune.choice("data", [1, 2, 4])
    sch.mesh({"data": data, "model": 4 // data}).recipe("2d").recompute(sch.tune.choice("recompute", ["none", "layer"]))


def test_tune(gpt, tmp_path):
    options = dict(memory="120K", algorithm="exhaustive", log=tmp_path / "log")
    tuning = sf.tune(gpt, tuned, "1x4xCPU", **options)
    assert tuning.points == len(tuning.trials) == 6 and tuning.trials[-1].pruned
    assert tuning.best.seconds == min(t.seconds for t in tuning.trials)
    assert tuning.plan.mesh["data"] == int(tuning.best.values["data"]) and "<html" in tuning.page
    again = sf.tune(gpt, tuned, "1x4xCPU", **options)
    assert all(trial.logged or trial.pruned for trial in again.trials) and again.best.values == tuning.best.values
    plan = tuning.plan
    del tuning
    assert plan.layout("params.wte.embedding").axes  # it lives without its report


def test_tune_is_as_in_lua(gpt, tmp_path):
    (tmp_path / "t.lua").write_text("""
        local sch = sheaf.schedule()
        local data = tune.choice("data", {1, 2, 4})
        sch:mesh{{"data", data}, {"model", 4 // data}}
        sch:recipe("2d")
        sch:recompute(tune.choice("recompute", {"none", "layer"}))""")
    ours = sf.tune(gpt, tuned, "1x4xCPU", memory="120K", algorithm="exhaustive")
    theirs = sf.tune(gpt, tmp_path / "t.lua", "1x4xCPU", memory="120K", algorithm="exhaustive")
    assert ours.trials == theirs.trials


def test_tune_by_what_fails(gpt):
    def some(sch):
        sch.mesh({"data": sch.tune.int("data", 1, 2)}).recipe("dp")

    tuning = sf.tune(gpt, some, "1x2xCPU", algorithm="exhaustive")
    assert [trial.why for trial in tuning.trials] == ["the mesh data=1 has 1 ranks, not 2", ""]

    def none(sch):
        sch["layer_0.mlp"].shard(["no/such"][sch.tune.int("which", 0, 0)], 0)

    with pytest.raises(sf.SheafError, match="none can be") as caught:
        sf.tune(gpt, none, "1x2xCPU")
    assert "no/such" in caught.value.hint

    def broken(sch):
        sch.tune.int("data", 1, 3)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        sf.tune(gpt, broken, "1x4xCPU")
