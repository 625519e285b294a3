"""The shared library, and how it is called.

call() makes a call that is over soon; call_long() one that may take seconds, which an interrupt from the keyboard ends.
Both turn messages into exceptions and warnings. The interpreter's lock is free while C works.
"""

from __future__ import annotations

import _thread
import contextlib
import contextvars
import ctypes
import importlib.util
import os
import re
import sys
import threading
import warnings
import weakref
from pathlib import Path

from . import prototypes as c
from .errors import Code, Diagnostic, SheafError, SheafWarning, usage

FOLDER = Path(__file__).resolve().parent
DIAG = object()
"""stands for the diag among the arguments of a call"""


def find() -> Path:
    """$SHEAF_LIBRARY, else the library beside the package, else that of the build in a source tree."""
    named = os.environ.get("SHEAF_LIBRARY")
    places = [Path(named)] if named else [FOLDER / "lib" / "libsheaf.so", FOLDER.parents[1] / "build" / "libsheaf.so"]
    for place in places:
        if place.exists():
            return place
    said = f"SHEAF_LIBRARY names {named}, which does not exist" if named else (
        f"libsheaf.so is not in {FOLDER / 'lib'}: `pip install` brings it; in a source tree `make` builds it, "
        "or SHEAF_LIBRARY names one")
    raise ImportError(said)


class Library:
    """The functions of the library, as attributes, each with its prototype."""

    def __init__(self, path: Path):
        self.path = path
        self._dll = ctypes.CDLL(os.fspath(path))

    def __getattr__(self, name):
        if name not in c.FUNCTIONS:
            raise AttributeError(name)
        function = getattr(self._dll, name)
        function.restype, function.argtypes = c.FUNCTIONS[name]
        setattr(self, name, function)
        return function


lib = Library(find())


def text_of(value) -> bytes | None:
    """A text or a path as C has it."""
    if value is None:
        return None
    return os.fsencode(value) if isinstance(value, (str, os.PathLike)) else bytes(value)


def str_of(value: bytes | None) -> str:
    return os.fsdecode(value or b"")


def make_struct(struct, /, **fields):
    """A struct with these fields; texts and paths become bytes. None leaves a field zero."""
    made = struct()
    made.size = ctypes.sizeof(struct)
    made.held = [value for value in fields.values() if isinstance(value, Handle)]
    for name, value in fields.items():
        if value is None:
            continue
        try:
            setattr(made, name, text_of(value) if isinstance(value, (str, os.PathLike)) else value)
        except TypeError as error:
            raise usage(f"{name}={value!r}: {error}") from None
    return made


def to_bytes(value: int | str | None) -> int:
    """A size, 75 * 2**30 or "75G", as the options of the command have it: K, M, G and T are powers of 1024."""
    if value is None or isinstance(value, int):
        return value or 0
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)([KMGT]?)", str(value))
    if not match:
        raise usage(f"{value!r} is no size", 'sizes are numbers of bytes, or "512M", "7.5G"')
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2] or " "))


class Handle(ctypes.c_void_p):
    """An object of the library, freed with this one, which calls and structs hold while they use it.

    `owner` is what frees it in place of a function. Nothing is freed as the interpreter ends: a call may be under way.
    """

    def __init__(self, value: int | None, free: str | None = None, owner=None):
        super().__init__(value)
        self.owner = owner
        if free:
            self.free = weakref.finalize(self, getattr(lib, free), value)
            self.free.atexit = False


def new_interrupt() -> Handle:
    """An sf_interrupt."""
    made = lib.sf_interrupt_new()
    if not made:
        raise MemoryError("there is no memory for an interrupt")
    return Handle(made, "sf_interrupt_free")


def caller() -> tuple[int, str, int]:
    """How far up the stack the code is that called this package, its file and its line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(str(FOLDER)):
        level, frame = level + 1, frame.f_back
    return level, frame.f_code.co_filename, frame.f_lineno


def take_messages(diag) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    entry = make_struct(c.sf_diag_entry)
    while lib.sf_diag_get(diag, len(found), ctypes.byref(entry)):
        found.append(Diagnostic("error" if entry.severity == c.SF_SEVERITY_ERROR else "warning", str_of(entry.text),
                                str_of(entry.hint), str_of(entry.file), entry.line, entry.column))
    return found


_given: contextvars.ContextVar[int | None] = contextvars.ContextVar("diag", default=None)


@contextlib.contextmanager
def messages_to(diag: int):
    """In a function that the library calls with a diag: the messages of calls, which are for the library, go there as well."""
    token = _given.set(diag)
    try:
        yield
    finally:
        _given.reset(token)


def _call(name, arguments):
    """The status and the messages."""
    given = _given.get()
    diag = given or lib.sf_diag_new()
    if not diag:
        raise MemoryError("there is no memory for messages")
    before = lib.sf_diag_count(diag)
    try:
        status = getattr(lib, name)(*(diag if a is DIAG else a for a in arguments))
        return status, take_messages(diag)[before:]
    finally:
        if not given:
            lib.sf_diag_free(diag)


def _judge(status, messages):
    for message in messages:
        if message.severity == "warning":
            warnings.warn(SheafWarning(message), stacklevel=caller()[0])
    if status != c.SF_OK:
        raise SheafError(Code(status), messages)


def call(name: str, *arguments) -> None:
    """Calls a function that is over soon. A status that is not SF_OK is an exception."""
    _judge(*_call(name, arguments))


def call_long(name: str, *arguments, interrupt: Handle | None = None, wait: bool = False, listener=None,
              made: tuple | None = None) -> None:
    """Calls a function that may take long.

    Python runs signal handlers in the main thread alone, between its own instructions. So a call of the main thread runs
    in another one, for which the main thread waits. What a handler raises, as KeyboardInterrupt, raises `interrupt` and leaves here:
    at once, while the call ends in its thread, unheard; or, with `wait`, when the call has ended.

    `made` is (handle, name of its free function) of what the call returns, for when nobody takes it.
    """
    state = {"abandoned": False, "over": False}
    lock = threading.Lock()

    def discard():
        if made and made[0].value:
            getattr(lib, made[1])(made[0])
            made[0].value = None

    def work():
        try:
            state["outcome"] = _call(name, arguments)
        except BaseException as error:
            state["error"] = error

    def run():
        work()
        with lock:
            state["over"] = True
            if state["abandoned"]:
                discard()
        ended.release()

    if threading.current_thread() is threading.main_thread():
        ended, stopped = threading.Lock(), None
        ended.acquire()
        try:
            _thread.start_new_thread(contextvars.copy_context().run, (run,))
            ended.acquire()
        except BaseException as error:
            stopped = error
        if stopped:
            lib.sf_interrupt_raise(interrupt)
            if listener:
                listener.stopped = True
            while wait and not state["over"]:
                with contextlib.suppress(BaseException):  # a second interrupt from the keyboard
                    ended.acquire()
            with lock:
                state["abandoned"] = True
                if state["over"]:
                    discard()
            raise stopped
    else:
        work()
    failure = state.get("error") or (listener and listener.error)
    if failure:
        discard()
        raise failure
    try:
        _judge(*state["outcome"])
    except BaseException:
        discard()
        raise


class Text:
    """An sf_output that collects what is written."""

    def __init__(self):
        self._parts = []
        write = dict(c.sf_output._fields_)["write"](self._take)
        self.struct = make_struct(c.sf_output, write=write)

    def _take(self, _, text, length):
        self._parts.append(ctypes.string_at(text, length))
        return True

    @property
    def ref(self):
        return ctypes.byref(self.struct)

    def __str__(self) -> str:
        return b"".join(self._parts).decode(errors="replace")


def output_to(path) -> c.sf_output:
    return make_struct(c.sf_output, path=path)


_cuda_lock = threading.Lock()
_cuda_done = False


def load_cuda() -> None:
    """Loads the libraries of CUDA from the `nvidia-*` packages, if they are installed and there is a driver.

    The library looks for them by name, and finds those that the process has.
    """
    global _cuda_done
    with _cuda_lock:
        if _cuda_done:
            return
        _cuda_done = True
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            return
        for path in find_cuda():
            try:
                ctypes.CDLL(os.fspath(path), mode=ctypes.RTLD_GLOBAL)
            except OSError:
                pass  # of another processor, or it needs one that is not installed: the engine says what is missing


def find_cuda() -> list[Path]:
    """The libraries of the `nvidia-*` packages that the engine "cuda" uses."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    names = ("libnvrtc-builtins", "libnvrtc", "libcublasLt", "libcudnn", "libnccl")
    return [path for name in names for folder in folders for path in sorted(Path(folder).glob(f"*/lib/{name}.so.*"))
            if ".alt." not in path.name]
