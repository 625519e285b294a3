"""A training step: read it, look at it, write it."""

from __future__ import annotations

import ctypes
import dataclasses
import difflib
import json
import os
import re
import tempfile
from ctypes import byref, c_void_p
from pathlib import Path

from . import prototypes as c
from .library import DIAG, Handle, Text, call, call_long, lib, make_struct, output_to, str_of
from .errors import usage
from .views import View


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An argument or a result of a step."""

    index: int
    name: str
    """as the text has it: "['params']['wte']['embedding']\""""
    dtype: str
    """as StableHLO spells it: "f32", "bf16", "i32\""""
    shape: tuple[int, ...]
    role: str = ""
    """of an argument: "param", "opt_state", "batch", "key" or "other\""""
    next: int | None = None
    """of an argument: the result that becomes it in the next step"""
    path: str = ""
    """the name as pins and files have it: "params/wte/embedding\""""


def tree_path(name: str) -> str:
    """A name as JAX writes it, or with dots, as a path with slashes."""
    if "/" in name:
        return name
    return "/".join(re.findall(r"[^\[\]'\".]+", name))


class Step:
    """A training step: forward, backward and optimizer, as one function of static shapes.

    Made by `load`, `from_text` or `from_jax`. It does not change; threads may share it.
    """

    def __init__(self, handle: int | None, name: str, file: str | None = None):
        self._handle = Handle(handle, "sf_graph_free")
        self.name = name
        self.file = file
        """the file that it was read from, or None"""

    @classmethod
    def _of(cls, handle: int, name: str, owner) -> Step:
        """A step that `owner` frees."""
        made = cls.__new__(cls)
        made._handle, made.name, made.file = Handle(handle, owner=owner), name, None
        return made

    @classmethod
    def load(cls, path: str | os.PathLike, *, sidecar: str | os.PathLike | dict | None = None,
             state: str | dict | None = None, unroll: int = 0, assume_trip_count: int = 0, most_nodes: int = 0,
             strict: bool = False) -> Step:
        """Reads StableHLO or HLO text, also .gz and .xz.

        sidecar: roles of the arguments, as a dictionary or the path of a JSON file; "none": none; None: the file beside the
            step, if there is one.
        state: which result becomes which argument: {"w": 0} or "w=0,b=1"; "none": the step has no state; None: infer.
        unroll: loops of up to so many iterations are unrolled; negative: none; 0: as the library sees fit.
        strict: a guess against the sidecar or the text is an error.
        """
        with _Reading(sidecar, state, unroll, assume_trip_count, most_nodes, strict, Path(path).name) as options:
            out = c_void_p()
            call_long("sf_load", os.fsencode(path), byref(options), DIAG, byref(out), made=(out, "sf_graph_free"))
        return cls(out.value, _stem(path), os.fspath(path))

    @classmethod
    def from_text(cls, text: str | bytes, *, name: str = "step", sidecar: str | os.PathLike | dict | None = None,
                  state: str | dict | None = None, unroll: int = 0, assume_trip_count: int = 0, most_nodes: int = 0,
                  strict: bool = False) -> Step:
        """The same from memory. Messages have `name` as the name of the file."""
        data = text.encode() if isinstance(text, str) else bytes(text)
        with _Reading(sidecar, state, unroll, assume_trip_count, most_nodes, strict, name) as options:
            out = c_void_p()
            call_long("sf_load_text", data, len(data), name.encode(), byref(options), DIAG, byref(out),
                      made=(out, "sf_graph_free"))
        return cls(out.value, name)

    @property
    def arguments(self) -> list[Tensor]:
        if not hasattr(self, "_arguments"):
            # Names that pins go by are those of the arguments, in their order, and then others.
            self._arguments = [self._argument(i, name.rsplit("  ", 1)[0])
                               for i, name in zip(range(lib.sf_graph_arguments(self._handle)), self.pin_names())]
        return list(self._arguments)

    @property
    def results(self) -> list[Tensor]:
        if not hasattr(self, "_results"):
            self._results = [self._result(i) for i in range(lib.sf_graph_results(self._handle))]
        return list(self._results)

    def _argument(self, i: int, path: str) -> Tensor:
        dtype, shape = self._type("sf_graph_argument_type", i)
        following = lib.sf_graph_argument_next(self._handle, i)
        return Tensor(i, str_of(lib.sf_graph_argument_name(self._handle, i)), dtype, shape,
                      str_of(lib.sf_role_name(lib.sf_graph_argument_role(self._handle, i))),
                      following if following >= 0 else None, path)

    def _result(self, i: int) -> Tensor:
        name = str_of(lib.sf_graph_result_name(self._handle, i))
        return Tensor(i, name, *self._type("sf_graph_result_type", i), path=tree_path(name))

    def _type(self, function: str, i: int) -> tuple[str, tuple[int, ...]]:
        kind = make_struct(c.sf_tensor_type)
        getattr(lib, function)(self._handle, i, byref(kind))
        return str_of(kind.dtype), tuple(kind.dims[: kind.rank])

    def argument(self, name: str | int) -> Tensor:
        """An argument by its number, its name, or its path: "params.wte.embedding"."""
        return self._find(name, "argument", lib.sf_graph_find_argument, self.arguments)

    def result(self, name: str | int) -> Tensor:
        """A result by its number, its name, or its path."""
        return self._find(name, "result", lib.sf_graph_find_result, self.results)

    def _find(self, name, what, find, tensors) -> Tensor:
        if isinstance(name, int):
            if 0 <= name < len(tensors):
                return tensors[name]
            raise usage(f"there is no {what} {name}: the step has {len(tensors)}")
        for spelling in (name, tree_path(name)):
            index = find(self._handle, os.fsencode(spelling))
            if index >= 0:
                return tensors[index]
        close = difflib.get_close_matches(tree_path(name), [t.path for t in tensors], 3, 0.4)
        raise usage(f"the step has no {what} {name!r}", f"did you mean {', '.join(close)}?" if close else "")

    def pin_names(self) -> list[str]:
        """The names that pins go by, of arguments, gradients and scopes, with their types."""
        out = Text()
        call("sf_pin_names", self._handle, out.ref, DIAG)
        return str(out).splitlines()

    @property
    def loss(self) -> int | None:
        """The number of the result that is the loss."""
        index = lib.sf_graph_loss(self._handle)
        return index if index >= 0 else None

    @property
    def scopes(self) -> list[str]:
        """The scopes of its ops: "layer_0/attn"."""
        count = lib.sf_graph_scopes(self._handle, 0, None)
        found = (ctypes.c_char_p * max(count, 1))()
        lib.sf_graph_scopes(self._handle, count, found)
        return [str_of(found[i]) for i in range(count)]

    @property
    def hash(self) -> str:
        """Equal for equal computations, whatever their text looks like."""
        return f"{lib.sf_graph_hash(self._handle):016x}"

    def show(self, *, all: bool = False, depth: int = 0) -> View:
        """Arguments by role, results, state, and cost by op, phase and scope."""

        def write(json_text):
            out = Text()
            options = make_struct(c.sf_show_options, file=self.file, all=all, depth=depth, json=json_text)
            call("sf_show", self._handle, byref(options), out.ref, DIAG)
            return str(out)

        return View(write(False), lambda: write(True))

    def text(self) -> str:
        """The step as canonical StableHLO."""
        out = Text()
        call("sf_save_stablehlo", self._handle, out.ref, DIAG)
        return str(out)

    def sidecar(self) -> dict:
        """Names and roles of its arguments, and its loss, as `load` and `from_text` take them."""
        entries = [{"name": t.name, "role": t.role, "shape": list(t.shape)} for t in self.arguments]
        return {"args": entries} | ({} if self.loss is None else {"loss": self.loss})

    def save(self, path: str | os.PathLike) -> None:
        """Writes the step as StableHLO, and its sidecar beside it, for the command `sheaf`."""
        call("sf_save_stablehlo", self._handle, byref(output_to(path)), DIAG)
        Path(path).with_name(_stem(path) + ".json").write_text(json.dumps(self.sidecar()))

    def __repr__(self) -> str:
        return f"<Step {self.name}: {len(self.arguments)} arguments, {len(self.results)} results, hash {self.hash}>"

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()


def _stem(path) -> str:
    """The name of a step as the library takes it for the sidecar: without the known endings."""
    return re.sub(r"(\.stablehlo)?(\.(mlir|hlo|txt))?(\.(gz|xz))?$", "", Path(path).name)


class _Reading:
    """The sf_load_options of these parts, with a sidecar that is a dictionary in a file while they are read."""

    def __init__(self, sidecar, state, unroll, assume_trip_count, most_nodes, strict, name):
        if isinstance(state, dict):
            state = ",".join(f"{argument}={result}" for argument, result in state.items())
        self.sidecar, self.name, self.folder = sidecar, name, None
        self.fields = dict(state=state, unroll=unroll, assume_trip_count=assume_trip_count, most_nodes=most_nodes,
                           strict=strict)

    def __enter__(self):
        sidecar = self.sidecar
        if isinstance(sidecar, dict):
            self.folder = tempfile.TemporaryDirectory(prefix="sheaf-")
            sidecar = Path(self.folder.name, "sidecar.json")
            sidecar.write_text(json.dumps(self.sidecar))
        return make_struct(c.sf_load_options, sidecar=sidecar, **self.fields)

    def __exit__(self, *_):
        if self.folder:
            self.folder.cleanup()
