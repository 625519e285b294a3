"""Clusters: the devices and links that a plan is made for."""

from __future__ import annotations

import json
import os
import tempfile
from ctypes import byref, c_void_p
from pathlib import Path

from . import prototypes as c
from .library import DIAG, Handle, Text, call, call_long, lib, load_cuda, make_struct, new_interrupt, output_to, to_bytes
from .progress import Listener, Progress
from .views import View


class Cluster:
    """Devices and links: a name of the library ("rhino-m8"), a shorthand ("4x8xH100"), a JSON file, or a dictionary of its keys.

    `Cluster.list()` has the names; docs/reference/cluster.md has shorthands and keys. It does not change.
    """

    def __init__(self, what: str | os.PathLike | dict):
        out = c_void_p()
        if isinstance(what, dict):
            with tempfile.TemporaryDirectory(prefix="sheaf-") as folder:
                file = Path(folder, "cluster.json")
                file.write_text(json.dumps(what))
                call("sf_cluster_open", os.fsencode(file), DIAG, byref(out))
            self._adopt(out, str(what.get("name", "cluster")))
            return
        call("sf_cluster_open", os.fsencode(what), DIAG, byref(out))
        self._adopt(out, os.fspath(what))

    def _adopt(self, out: c_void_p, name: str) -> Cluster:
        self._handle, self.name = Handle(out.value, "sf_cluster_free"), name
        return self

    @staticmethod
    def list() -> View:
        """The clusters and the kinds of devices of the library."""
        return _show("sf_cluster_list")

    @property
    def devices(self) -> int:
        """How many devices it has."""
        return lib.sf_cluster_devices(self._handle)

    def measured(self, trace: str | os.PathLike) -> Cluster:
        """The cluster with the times of a run, from its timeline."""
        out = c_void_p()
        call("sf_cluster_measured", self._handle, os.fsencode(trace), DIAG, byref(out))
        return Cluster.__new__(Cluster)._adopt(out, self.name)

    def show(self) -> View:
        """Devices, links, and times of collectives."""
        return _show("sf_cluster_show", self._handle)

    def to_dict(self) -> dict:
        """What `Cluster` makes the same from."""
        out = Text()
        call("sf_cluster_save", self._handle, out.ref, DIAG)
        return json.loads(str(out))

    def save(self, path: str | os.PathLike) -> None:
        """Writes JSON, which the command `sheaf` reads too."""
        call("sf_cluster_save", self._handle, byref(output_to(path)), DIAG)

    def __repr__(self) -> str:
        return f"<Cluster {self.name}: {self.devices} devices>"

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()


def _show(function: str, *handle) -> View:
    def write(json_text):
        out = Text()
        call(function, *handle, byref(make_struct(c.sf_show_options, json=json_text)), out.ref, DIAG)
        return str(out)

    return View(write(False), lambda: write(True))


def as_cluster(what: Cluster | str | os.PathLike | dict | None) -> Cluster | None:
    return what if what is None or isinstance(what, Cluster) else Cluster(what)


def calibrate(*, ranks: int = 0, threads: int = 0, seconds: float = 0, largest: int | str = 0, name: str | None = None,
              engine: str | None = None, precision: str | None = None, progress: Progress = None) -> Cluster:
    """Measures this machine, so that plans and simulations are for it.

    ranks: threads of this process that measure at the same time; seconds: how long each curve may be measured, about;
    largest: bytes of the largest collective; engine: "cpu" or "cuda"; precision, with "cuda": "f32" or "tf32".
    """
    load_cuda()
    interrupt, out = new_interrupt(), c_void_p()
    with Listener(progress, interrupt) as listener:
        options = make_struct(c.sf_calibrate_options, ranks=ranks, threads=threads, seconds=seconds, largest=to_bytes(largest),
                              name=name, engine=engine, precision=precision, listener=listener.callback,
                              interrupt=interrupt)
        call_long("sf_calibrate", byref(options), DIAG, byref(out), interrupt=interrupt, listener=listener,
                  made=(out, "sf_cluster_free"))
    return Cluster.__new__(Cluster)._adopt(out, name or "this machine")
