"""Verify and train: a step, or a plan of it, is run here."""

from __future__ import annotations

import dataclasses
import os
from ctypes import POINTER, byref

from . import prototypes as c
from .errors import Code, Diagnostic, SheafError
from .library import DIAG, call_long, lib, load_cuda, make_struct, new_interrupt, output_to, str_of, to_bytes
from .plans import Plan
from .progress import Listener, Progress
from .steps import Step


@dataclasses.dataclass(frozen=True)
class Difference:
    """A compared tensor: docs/guides/verify.md says how the error is measured."""

    name: str
    error: float
    tolerance: float
    index: int
    """of the worst element, flat"""
    ours: float
    theirs: float
    step: int
    rank: int


@dataclasses.dataclass(frozen=True)
class Verification:
    """What a verification has found."""

    passed: bool
    results: list[Difference]
    worst: Difference | None
    """the one with the largest error / tolerance"""
    losses: list[float]
    expected_losses: list[float]
    loss_error: float
    ranks: int

    def __str__(self) -> str:
        worst = f", largest error {self.worst.error:.2e} at {self.worst.name} (tolerance {self.worst.tolerance:.2g})" if self.worst else ""
        return f"verify: {'passed' if self.passed else 'FAILED'}{worst}"


def verify(what: Plan | Step, *, against: str | os.PathLike | None = None, steps: int = 0, tolerance: float = 0,
           loss_tolerance: float = 0, engine: str | None = None, threads: int = 0, init: str | os.PathLike | None = None,
           data: str | os.PathLike | None = None, seed: int = 0, shrink: bool = False, limit: float = 0, check: bool = False,
           device_memory: int | str = 0, precision: str | None = None, progress: Progress = None) -> Verification:
    """Runs the step as a plan splits it, and unsplit, and compares all results and losses; or a step against known results.

    against: a safetensors file of arguments and results, which a step without a plan needs. shrink: the plan on the step at
    dimensions as small as they can be. A mismatch is a SheafError; its `verification` has the numbers. A plan of a PyTorch module
    starts from its weights, rates and example batch, unless `against`, `init` or `data` say otherwise.
    """
    if isinstance(what, Plan) and not (against or init or data or shrink) and hasattr(what.step, "example_file"):
        with what.step.example_file(max(steps, 1)) as against:
            return verify(what, against=against, steps=steps, tolerance=tolerance, loss_tolerance=loss_tolerance, engine=engine,
                          threads=threads, seed=seed, limit=limit, check=check, device_memory=device_memory, precision=precision,
                          progress=progress, data="synthetic" if against is None else None)
    if isinstance(what, Plan) and shrink:
        what = what.shrink()
    plan = what if isinstance(what, Plan) else None
    step = what.step if isinstance(what, Plan) else what
    load_cuda()
    interrupt, out = new_interrupt(), POINTER(c.sf_verify_report)()
    with Listener(progress, interrupt) as listener:
        options = make_struct(c.sf_verify_options, against=against, tolerance=tolerance, loss_tolerance=loss_tolerance, steps=steps,
                              listener=listener.callback, engine=engine, threads=threads, init=init, data=data, shrunk=shrink,
                              limit=limit, check=check, seed=seed, device_memory=to_bytes(device_memory), precision=precision,
                              interrupt=interrupt)
        try:
            call_long("sf_verify_plan" if plan else "sf_verify", step._handle, *([plan._handle] if plan else []), byref(options), DIAG,
                      byref(out), interrupt=interrupt, listener=listener, wait=True)
            return _read_verification(out)
        except SheafError as error:
            if out:
                error.verification = _read_verification(out)
            raise
        finally:
            lib.sf_verify_free(out)


def _read_verification(out) -> Verification:
    report = out[0]
    results = [Difference(str_of(d.name), d.error, d.tolerance, d.index, d.ours, d.theirs, d.step, d.rank)
               for d in (report.results[i][0] for i in range(report.nresults))]
    return Verification(report.passed, results, results[report.worst] if report.worst >= 0 else None,
                        report.losses[: report.nlosses], report.expected_losses[: report.nlosses], report.loss_error, report.ranks)


@dataclasses.dataclass(frozen=True)
class Training:
    """How a training run ended."""

    first: int
    """steps that were made before this run"""
    step: int
    """and after it"""
    loss: float
    """of the last step; NaN where there is none"""
    seconds: float
    interrupted: bool


def train(what: Plan | Step, steps: int, *, data: str | os.PathLike | None = None, tokens_type: str | None = None,
          order: str | None = None, init: str | os.PathLike | None = None, set: dict[str, float] | str | None = None,
          seed: int | None = None, save: str | os.PathLike | None = None, save_every: int = 0, keep: int = 0, resume: bool = False,
          resume_from: str | os.PathLike | None = None, log: str | os.PathLike | None = None,
          profile: str | os.PathLike | None = None, trace: str | os.PathLike | None = None, engine: str | None = None,
          threads: int = 0, memory: int | str = 0, device_memory: int | str = 0, host_link: int | str = 0, limit: float = 0,
          check: bool = False, ignore_nan: bool = False, precision: str | None = None, progress: Progress = None) -> Training:
    """Trains on files, with checkpoints. docs/guides/train.md describes data, rules and resuming.

        sf.train(plan, 1000, data="tokens.bin", save="run")

    data: a file, "synthetic" or "synthetic:N"; None: the step takes no batch. order: "sequential" or "shuffled". init: rules, or a
    file. set: arguments that are the same in all steps. profile, trace: files for where the time went, and for the timeline of
    the last step. An interrupt from the keyboard saves, and is then raised.
    """
    plan = what if isinstance(what, Plan) else None
    step = what.step if isinstance(what, Plan) else what
    orders = {None: c.SF_ORDER_DEFAULT, "sequential": c.SF_ORDER_SEQUENTIAL, "shuffled": c.SF_ORDER_SHUFFLED}
    if order not in orders:
        raise SheafError(Code.USAGE, [Diagnostic("error", f"there is no order {order!r}", 'orders are "sequential" and "shuffled"')])
    if isinstance(set, dict):
        set = ",".join(f"{name}={number}" for name, number in set.items())
    outputs = {name: POINTER(c.sf_output)(output_to(path)) for name, path in (("profile", profile), ("trace", trace)) if path is not None}
    load_cuda()
    interrupt, report = new_interrupt(), make_struct(c.sf_train_report)
    with Listener(progress, interrupt) as listener:
        options = make_struct(c.sf_train_options, steps=steps, data=data, tokens_type=tokens_type, order=orders[order], init=init, set=set,
                              seed=seed, has_seed=seed is not None, save=save, save_every=save_every, keep=keep, resume=resume,
                              resume_from=resume_from, log=log, engine=engine, threads=threads, memory=to_bytes(memory),
                              plan=plan._handle if plan else None, limit=limit, check=check, ignore_nan=ignore_nan,
                              listener=listener.callback, device_memory=to_bytes(device_memory), host_link=to_bytes(host_link),
                              precision=precision, interrupt=interrupt, **outputs)
        call_long("sf_train", step._handle, byref(options), DIAG, byref(report), interrupt=interrupt, listener=listener, wait=True)
    return Training(report.first, report.step, report.loss, report.seconds, report.interrupted)
