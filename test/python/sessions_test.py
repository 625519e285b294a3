"""Sessions: the numbers of JAX come out, whatever arrays go in, and nothing is copied that need not be."""

import array
import threading

import numpy as np
import pytest

import libsheaf as sf
from libsheaf import arrays

X = np.array([[1, 0], [0, 1], [1, 1], [1, -1]], np.float32)
Y = np.array([3, -2, 1, 5], np.float32)


def read_safetensors(path):
    import json

    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    types = {"F32": np.float32, "I32": np.int32}
    return {name: np.frombuffer(body[slice(*t["data_offsets"])], types[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


@pytest.mark.parametrize("recipe", [None, "dp", "megatron", "zero3"])
def test_losses_are_those_of_jax(gpt, gpt_io, recipe):
    io = read_safetensors(gpt_io)
    plan = sf.pin(gpt, recipe=recipe, ranks=2) if recipe else gpt
    with sf.Session(plan, threads=2) as session:
        for argument in gpt.arguments:
            session[argument.index] = io[f"in.{argument.index}"].reshape(argument.shape)
        losses = []
        for k in range(4):
            batch = {name: io[f"batch.{k}.{name}"] for name in ("ids", "labels")}
            losses.append(session.run(batch=batch))
            if k == 0:
                for result in gpt.results:
                    if "['k']['bias']" in result.name:
                        continue  # its gradient is zero in mathematics, and Adam divides the noise by its size
                    np.testing.assert_allclose(session.result(result.index), io[f"out.{result.index}"].reshape(result.shape), rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(losses, io["losses"][:4], rtol=1e-5)
        assert session.steps == 4 and session.ranks == list(range(plan.ranks if recipe else 1))


def fit(session, x, y, steps=30):
    session.update(w=[0, 0], x=x, y=y)
    loss = session.run(steps)
    return loss, session["w"]


def test_a_loop(tiny):
    plan = sf.pin(tiny, mesh="data=2", pins={"x": ("data",), "y": ("data",)})
    with sf.Session(plan) as session:
        loss, w = fit(session, X, Y)
    assert loss < 1e-3 and np.allclose(w, [3, -2], atol=1e-2)


@pytest.mark.parametrize("x", [
    X.tolist(), X[::-1][::-1], np.asfortranarray(X), memoryview(X), X.astype(">f4"),
    array.array("f", X.ravel()) and np.frombuffer(array.array("f", X.ravel()), np.float32).reshape(4, 2),
], ids=["list", "view", "fortran", "buffer", "big-endian", "array"])
def test_what_goes_in(tiny, x):
    with sf.Session(tiny) as session:
        session["x"] = x
        assert np.array_equal(session["x"], X)


def test_nothing_is_copied(tiny):
    tensor = tiny.argument("x")
    assert arrays.memory_of(X, tensor).address == X.ctypes.data
    out = np.empty((4, 2), np.float32)
    assert arrays.memory_to_write(out, tensor).address == out.ctypes.data
    frozen = X.copy()
    frozen.flags.writeable = False
    assert arrays.memory_of(frozen, tensor).address == frozen.ctypes.data
    with pytest.raises(sf.SheafError, match="writable"):
        arrays.memory_to_write(frozen, tensor)
    with pytest.raises(sf.SheafError, match="contiguous"):
        arrays.memory_to_write(np.asfortranarray(out), tensor)


class ByDlpack:
    """Has nothing but DLPack."""

    def __init__(self, of):
        self.of, self.calls = of, 0

    def __dlpack_device__(self):
        return self.of.__dlpack_device__()

    def __dlpack__(self, **options):
        self.calls += 1
        return self.of.__dlpack__(**options)


def test_dlpack(tiny):
    tensor, given = tiny.argument("x"), ByDlpack(X.copy())
    memory = arrays.memory_of(given, tensor)
    assert memory.address == given.of.ctypes.data and given.calls == 1
    with sf.Session(tiny) as session:
        session["x"] = given
        out = np.zeros((4, 2), np.float32)
        assert session.read("x", out=ByDlpack(out)) is not None
    assert np.array_equal(out, X)


def test_jax_arrays(tiny):
    jnp = pytest.importorskip("jax.numpy")
    x = jnp.asarray(X)
    assert arrays.memory_of(x, tiny.argument("x")).address == x.unsafe_buffer_pointer()
    with sf.Session(tiny) as session:
        loss, _ = fit(session, x, jnp.asarray(Y))
        w = session.read("w", framework="jax")
        assert loss < 1e-3 and np.allclose(w, [3, -2], atol=1e-2) and type(w).__module__.startswith("jax")
        with pytest.raises(sf.SheafError, match="JAX cannot be written"):
            session.read("w", out=w)


def test_torch_tensors(tiny):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X.copy())
    assert arrays.memory_of(x, tiny.argument("x")).address == x.data_ptr()
    with sf.Session(tiny) as session:
        loss, _ = fit(session, x.t().contiguous().t().requires_grad_(), torch.from_numpy(Y))
        w = session.read("w", framework="torch")
        assert loss < 1e-3 and torch.is_tensor(w)
        out = torch.empty(2)
        assert session.read("w", out=out) is out and torch.equal(out, w)


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    step = sf.Step.from_text("func.func public @main(%w: tensor<3xbf16>) -> tensor<3xbf16> {\n"
                             "  %0 = stablehlo.add %w, %w : tensor<3xbf16>\n  return %0 : tensor<3xbf16>\n}", state="none")
    with sf.Session(step) as session:
        session["w"] = [1, 2, 3]
        assert session.run() is None  # it has no loss
        assert session.result(0).dtype == ml_dtypes.bfloat16 and session.result(0).tolist() == [2, 4, 6]
        jnp = pytest.importorskip("jax.numpy")
        session["w"] = jnp.asarray([1, 2, 4], jnp.bfloat16)
        assert session.read("w", framework="jax").dtype == jnp.bfloat16


@pytest.mark.parametrize("value, message", [
    (np.zeros((4, 2)), "array.astype\\('float32'\\)"), (np.zeros((2, 4), np.float32), r"shape \(4, 2\), and the array \(2, 4\)"),
    (np.zeros(8, np.float32), "shape"),
])
def test_types_and_shapes(tiny, value, message):
    with sf.Session(tiny) as session, pytest.raises(sf.SheafError, match=message):
        session["x"] = value


def test_shards(gpt):
    plan = sf.pin(gpt, recipe="megatron", ranks=2)
    name = "params.layer_0.mlp.up.kernel"
    whole = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    with sf.Session(plan) as session:
        session[name] = whole
        for rank in range(2):
            assert np.array_equal(session.read_shard(name, rank), whole[plan.boxes(name, rank)[0]])
            session.write_shard(name, rank, -whole[plan.boxes(name, rank)[0]])
        assert np.array_equal(session[name], -whole)
        session.run()
        assert session.result_shard(gpt.loss, 1).shape == ()
        with pytest.raises(sf.SheafError, match="shape"):
            session.write_shard(name, 0, whole)


def test_checkpoints(gpt, tmp_path):
    """A run that is saved, and goes on by another plan, is the run that is not."""
    with sf.Session(sf.pin(gpt, recipe="zero3", ranks=2)) as session:
        session.init(seed=3)
        session.run(2)
        session.save(tmp_path / "run")
        expected = session.run(1)
    with sf.Session(gpt) as session:
        session.load(tmp_path / "run")
        assert session.steps == 2 and session.run(1) == pytest.approx(expected, rel=1e-5)
        with pytest.raises(sf.SheafError):
            session.load(tmp_path / "no-such-run")


def test_a_closed_session(tiny):
    session = sf.Session(tiny)
    session.close()
    session.close()
    with pytest.raises(sf.SheafError, match="closed"):
        session.run()
    assert "closed" in repr(session)


def test_one_thread_at_a_time(tiny):
    inside, caught = threading.Event(), []
    session = sf.Session(tiny, progress=lambda event: inside.set())
    thread = threading.Thread(target=lambda: session.run(20000))
    thread.start()
    inside.wait()
    try:
        session.run()
    except sf.SheafError as error:
        caught.append(error)
    thread.join()
    assert "one thread" in str(caught[0])


def test_a_session_outlives_its_names():
    from conftest import TINY

    session = sf.Session(sf.pin(sf.Step.from_text(TINY, state="w=0"), mesh="data=2", pins={"x": ("data",), "y": ("data",)}))
    import gc

    gc.collect()
    assert fit(session, X, Y)[0] < 1e-3
