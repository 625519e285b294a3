"""Sessions: run a step call by call, on tensors in memory."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from ctypes import byref, c_double, c_void_p
from typing import Any

from . import prototypes as c
from .errors import usage
from .library import DIAG, Handle, call, call_long, lib, load_cuda, make_struct, new_interrupt, to_bytes
from .plans import Plan
from .progress import Listener, Progress
from .steps import Step, Tensor


class Session:
    """Runs a step here, as a plan splits it or unsplit, on a CPU or GPUs.

        with sf.Session(plan) as session:
            session.init(seed=0)
            for batch in batches:
                loss = session.run(batch=batch)
            kernel = session["params.wte.embedding"]

    It holds the arguments of the step, as whole tensors, which it splits over the ranks and joins. Arguments are named by their
    paths or by the text's names. Results that become arguments replace them after each step. The ranks of a plan are threads of
    this process, or the processes of mpirun, which then make the same calls. One thread uses a session at a time.
    """

    def __init__(self, what: Plan | Step, *, engine: str | None = None, threads: int = 0, memory: int | str = 0, limit: float = 0,
                 check: bool = False, progress: Progress = False):
        """engine: "cpu", "cuda" or "oracle"; None: "cuda" where there is a GPU. threads: of all ranks of this process; 0: as
        many as it may use. memory: most bytes of a rank. limit: seconds that a rank may wait for another, 0: 300. check: programs
        before they run. progress: as of `plan`, called after each step of `run`."""
        from . import arrays  # with NumPy, which the command needs not

        self._arrays = arrays
        self.plan = what if isinstance(what, Plan) else None
        self.step: Step = what.step if isinstance(what, Plan) else what
        self._using = threading.Lock()
        self._interrupt = new_interrupt()
        self._listener = Listener(progress, self._interrupt)
        if engine != "cpu":
            load_cuda()
        self._options = make_struct(c.sf_session_options, plan=self.plan._handle if self.plan else None, engine=engine, threads=threads,
                                    memory=to_bytes(memory), limit=limit, check=check, listener=self._listener.callback,
                                    interrupt=self._interrupt)
        out = c_void_p()
        call_long("sf_session_open", self.step._handle, byref(self._options), DIAG, byref(out), interrupt=self._interrupt,
                  made=(out, "sf_session_close"))
        self._handle: Handle | None = Handle(out.value, "sf_session_close", owner=what)
        self._handle.free.atexit = True

    def close(self) -> None:
        """Frees the tensors. Further calls are errors."""
        with self._use(closed=True):
            if self._handle is not None:
                self._handle.free()
            self._handle = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @contextlib.contextmanager
    def _use(self, closed: bool = False) -> Iterator[Handle | None]:
        if not self._using.acquire(blocking=False):
            raise usage("another call of the session is under way: one thread uses a session at a time")
        try:
            if self._handle is None and not closed:
                raise usage("the session is closed")
            yield self._handle
        finally:
            self._using.release()

    def _long(self, name: str, handle, *arguments) -> None:
        lib.sf_interrupt_clear(self._interrupt)
        self._listener.error, self._listener.stopped = None, False
        with self._listener:
            call_long(name, handle, *arguments, interrupt=self._interrupt, listener=self._listener, wait=True)

    def init(self, rules: str | os.PathLike | None = None, *, seed: int = 0) -> None:
        """Sets parameters and all other state to the values that training starts from: by rules, or from a safetensors file or a
        checkpoint (docs/guides/train.md); None: the defaults."""
        with self._use() as handle:
            self._long("sf_session_init", handle, None if rules is None else os.fsencode(rules), seed, DIAG)

    def write(self, name: str | int, value) -> None:
        """Sets an argument: from an array of NumPy, JAX, torch or any package with DLPack or the buffer protocol, or from numbers.
        Shape and type must be the argument's."""
        tensor = self.step.argument(name)
        memory = self._arrays.memory_of(value, tensor)
        with self._use() as handle:
            call("sf_session_write", handle, tensor.index, memory.address, self._bytes(tensor), DIAG)

    __setitem__ = write

    def read(self, name: str | int, *, out=None, framework: str = "numpy"):
        """An argument as it is now, as a new array of "numpy", "jax" or "torch". `out` is an array to fill instead, on the host."""
        return self._read("sf_session_read", self.step.argument(name), out, framework)

    def __getitem__(self, name: str | int):
        return self.read(name)

    def result(self, name: str | int, *, out=None, framework: str = "numpy"):
        """A result of the last step; of one that became an argument, that argument as it is now."""
        return self._read("sf_session_read_result", self.step.result(name), out, framework)

    def _read(self, function: str, tensor: Tensor, out, framework: str):
        into = self._arrays.new_array(tensor, framework) if out is None else out
        memory = self._arrays.memory_to_write(into, tensor)
        with self._use() as handle:
            call(function, handle, tensor.index, memory.address, self._bytes(tensor), DIAG)
        return self._arrays.finish(into, framework) if out is None else out

    def _bytes(self, tensor: Tensor) -> int:
        return math.prod(tensor.shape) * (self._arrays.TYPES[tensor.dtype][2] // 8)

    def update(self, **arguments: Any) -> None:
        """Sets arguments by the names of the step's parameters, from arrays or trees of them: update(params=params, batch={...})."""
        for name, tree in arguments.items():
            for path, value in leaves(name, tree):
                self.write(path, value)

    def run(self, steps: int = 1, **arguments: Any) -> float | None:
        """Sets arguments as `update` does, makes so many steps, and returns the loss of the last; None where the step has none."""
        self.update(**arguments)
        loss = c_double()
        with self._use() as handle:
            self._long("sf_session_run", handle, steps, DIAG, byref(loss))
        return loss.value if self.step.loss is not None else None

    @property
    def steps(self) -> int:
        """Steps that were made, those before the checkpoint that was loaded among them."""
        with self._use() as handle:
            return lib.sf_session_steps(handle)

    def save(self, directory: str | os.PathLike, *, keep: int = 0) -> None:
        """Saves the state in a checkpoint of this directory; `keep` checkpoints stay, 0: 2, negative: all."""
        with self._use() as handle:
            self._long("sf_session_save", handle, os.fsencode(directory), keep, DIAG)

    def load(self, path: str | os.PathLike) -> None:
        """Loads a checkpoint, however the run that saved it was split; of a directory of them, the latest."""
        with self._use() as handle:
            self._long("sf_session_load", handle, os.fsencode(path), DIAG)

    @property
    def ranks(self) -> list[int]:
        """The ranks of this process."""
        with self._use() as handle:
            found: list[int] = []
            while lib.sf_session_rank(handle, len(found)) >= 0:
                found.append(lib.sf_session_rank(handle, len(found)))
            return found

    def read_shard(self, name: str | int, rank: int, *, framework: str = "numpy"):
        """The part of an argument that a rank of this process has."""
        tensor = self.step.argument(name)
        return self._read_shard("sf_session_read_shard", tensor, self._shard(tensor, rank, False), rank, framework)

    def result_shard(self, name: str | int, rank: int, *, framework: str = "numpy"):
        """The part of a result that a rank of this process has."""
        tensor = self.step.result(name)
        return self._read_shard("sf_session_read_result_shard", tensor, self._shard(tensor, rank, True), rank, framework)

    def write_shard(self, name: str | int, rank: int, value) -> None:
        """Sets the part of an argument that a rank has. Ranks that have the same part must be given the same numbers."""
        tensor = self.step.argument(name)
        shape = self._shard(tensor, rank, False)
        memory = self._arrays.memory_of(value, tensor, shape)
        with self._use() as handle:
            call("sf_session_write_shard", handle, tensor.index, rank, memory.address,
                 lib.sf_session_shard_bytes(handle, tensor.index, rank), DIAG)

    def _shard(self, tensor: Tensor, rank: int, is_result: bool) -> tuple[int, ...]:
        """The shape of a shard: that of its boxes together."""
        if self.plan is None:
            return tensor.shape
        boxes = (self.plan.result_boxes if is_result else self.plan.boxes)(tensor.index, rank)
        if not boxes:
            raise usage(f"rank {rank} has nothing of {tensor.path or tensor.name}")
        starts = [{box[d].start for box in boxes} for d in range(len(tensor.shape))]
        return tuple(len(s) * (box.stop - box.start) for s, box in zip(starts, boxes[0]))

    def _read_shard(self, function: str, tensor: Tensor, shape: tuple[int, ...], rank: int, framework: str):
        into = self._arrays.new_array(tensor, framework, shape)
        memory = self._arrays.memory_to_write(into, tensor, shape)
        with self._use() as handle:
            call(function, handle, tensor.index, rank, memory.address, math.prod(shape) * (self._arrays.TYPES[tensor.dtype][2] // 8), DIAG)
        return self._arrays.finish(into, framework)

    def __repr__(self) -> str:
        state = "closed" if self._handle is None else f"{self.steps} steps made"
        return f"<Session of {self.plan or self.step}: {state}>"


def is_numbers(value) -> bool:
    """Lists of numbers, of any depth, are arrays, and other lists trees."""
    return isinstance(value, (int, float)) or (isinstance(value, (list, tuple)) and all(map(is_numbers, value)))


def leaves(name: str, tree) -> list[tuple[str, Any]]:
    """The arrays of a tree, with names as the text of a step has them. With JAX, any tree that it knows."""
    if is_numbers(tree):
        return [(name, tree)]
    if isinstance(tree, Mapping):
        return [leaf for key, value in tree.items() for leaf in leaves(f"{name}[{key!r}]", value)]
    if "jax" in sys.modules:
        from jax.tree_util import keystr, tree_flatten_with_path

        return [(name + keystr(path), leaf) for path, leaf in tree_flatten_with_path(tree, is_leaf=is_numbers)[0]]
    if hasattr(tree, "_fields"):
        return [leaf for field, value in zip(tree._fields, tree) for leaf in leaves(f"{name}.{field}", value)]
    if isinstance(tree, (list, tuple)):
        return [leaf for i, value in enumerate(tree) for leaf in leaves(f"{name}[{i}]", value)]
    return [(name, tree)]
