"""Tuning: the values of a schedule's variables that make the fastest plan."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import weakref
from collections.abc import Callable
from ctypes import POINTER, byref, c_void_p, cast

from . import prototypes as c
from .clusters import Cluster, as_cluster
from .errors import Code, SheafError
from .library import DIAG, Handle, Text, call, call_long, lib, make_struct, new_interrupt, messages_to, str_of, to_bytes
from .plans import Plan
from .progress import Listener, Progress
from .schedules import Schedule
from .steps import Step
from .views import bytes_text, draw_table, seconds_text


@dataclasses.dataclass(frozen=True)
class Trial:
    """A setting that was looked at."""

    values: dict[str, str]
    seconds: float
    """of a step; infinite where it was not tried, or failed"""
    memory: int
    """of a rank, as predicted; 0: not known"""
    pruned: bool
    """it was predicted not to fit, and not tried"""
    logged: bool
    """it is from the log"""
    why: str
    """why it cannot be at all; or "\""""


@dataclasses.dataclass(frozen=True)
class Tuning:
    """What tuning has found."""

    plan: Plan
    """of the best setting"""
    best: Trial
    trials: list[Trial]
    points: int
    """settings in all"""
    page: str
    """the trials as maps and a table: a page of HTML"""

    def __repr__(self) -> str:
        return f"<Tuning: {len(self.trials)} of {self.points} settings, best {self.best.values}, {seconds_text(self.best.seconds)}>"

    def _repr_html_(self) -> str:
        rows = [[str(trial.values), seconds_text(trial.seconds) if trial.seconds < float("inf") else "-", bytes_text(trial.memory),
                 "best" if trial is self.best else "does not fit" if trial.pruned else trial.why] for trial in self.trials]
        return draw_table(rows, ["setting", "step", "memory", ""])


def tune(step: Step, schedule: Callable[[Schedule], object] | str | os.PathLike, cluster: Cluster | str | os.PathLike | dict | None = None,
         *, by_run: bool = False, algorithm: str | None = None, trials: int = 0, ranks: int = 0, memory: int | str = 0, steps: int = 0,
         threads: int = 0, by_processor: bool = False, log: str | os.PathLike | None = None, unsafe: bool = False,
         progress: Progress = None) -> Tuning:
    """Finds the setting of a schedule's variables whose plan takes the least time.

        def schedule(sch):
            data = sch.tune.choice("data", [1, 2, 4])
            sch.mesh({"data": data, "model": 4 // data}).recipe("2d")

        sf.tune(step, schedule, "1x4xCPU").plan

    schedule: a function that applies primitives, or a file in Lua. It is called once for each setting, and once more for each
    trial; ranges may depend on variables before. by_run: plans are run here, on synthetic data, in place of simulated. algorithm:
    "model" or "exhaustive". log: a file that keeps trials, from which an interrupted tuning goes on.
    """
    on = as_cluster(cluster)
    ranks = ranks or (on.devices if on else 0)
    interrupt, out = new_interrupt(), POINTER(c.sf_tune_report)()
    raised: list[BaseException] = []

    def apply(_, settings, primitives, diag):
        try:
            with messages_to(diag):
                schedule(Schedule._of(primitives, step, ranks, settings))
            return c.SF_OK
        except SheafError as error:
            return int(error.code)
        except BaseException as error:
            raised.append(error)
            lib.sf_interrupt_raise(interrupt)
            return int(Code.USAGE)

    with Listener(progress, interrupt) as listener:
        options = make_struct(c.sf_tune_options, cluster=on._handle if on else None, cluster_name=on.name if on else None, by_run=by_run,
                              algorithm=algorithm, trials=trials, ranks=ranks, memory=to_bytes(memory), steps=steps, threads=threads,
                              log=log, listener=listener.callback, by_processor=by_processor, interrupt=interrupt)
        if callable(schedule):
            options.program = hash_of(schedule)
            name, what = "sf_tune", (c.sf_tune_apply(apply), None)
        else:
            script = make_struct(c.sf_script_options, unsafe=unsafe, ranks=ranks)
            name, what = "sf_tune_script", (os.fsencode(schedule), byref(script))
        try:
            call_long(name, step._handle, *what, byref(options), DIAG, byref(out), interrupt=interrupt, listener=listener, wait=True)
        except BaseException as error:
            lib.sf_tune_free(out)
            raise (raised[0] if raised else error) from None
    return _read(out, step, on)


def hash_of(function) -> int:
    """Of what a function does, for the log."""
    code = function.__code__
    text = repr((code.co_code, [k for k in code.co_consts if not hasattr(k, "co_code")], code.co_names, function.__defaults__))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def _read(out, step: Step, cluster: Cluster | None) -> Tuning:
    report = out[0]
    owner = Handle(cast(out, c_void_p).value)
    weakref.finalize(owner, lib.sf_tune_free, out).atexit = False
    names = [str_of(report.variables[i]) for i in range(report.nvariables)]
    trials = [Trial({name: str_of(t.values[k]) for k, name in enumerate(names)}, t.seconds, t.memory, t.pruned, t.logged, str_of(t.why))
              for t in (report.trials[i][0] for i in range(report.ntrials))]
    page = Text()
    call("sf_tune_page", out, step.name.encode(), page.ref, DIAG)
    if report.step:
        step = Step._of(report.step, step.name + ", changed", owner)
    return Tuning(Plan._of(report.plan, step, cluster, owner), trials[report.best], trials, report.points, str(page))
