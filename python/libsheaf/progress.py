"""Events of long calls, and how they are shown."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable

from . import prototypes as c
from .library import lib, str_of

KINDS = {c.SF_EVENT_START: "start", c.SF_EVENT_STEP: "step", c.SF_EVENT_SAVED: "saved", c.SF_EVENT_STAGE: "stage",
         c.SF_EVENT_SOLVE: "solve"}


@dataclasses.dataclass(frozen=True)
class Event:
    """What a long call is doing. A function that gets it and returns False ends the call soon, with what it has."""

    kind: str
    """"start", "step", "saved", "stage" or "solve\""""
    text: str
    """of a stage: for people; "saved": the path; "start": the checkpoint that is resumed from"""
    step: int
    """steps that were made"""
    steps: int
    """steps in all"""
    loss: float
    """of that step; NaN where it has none"""
    rate: float = 0.0
    """of training: tokens or samples in a second"""
    left: float = 0.0
    """of training: seconds until the end"""

    def __str__(self) -> str:
        if self.kind == "step":
            loss = "" if self.loss != self.loss else f", loss {self.loss:.4f}"
            return f"step {self.step} of {self.steps}{loss}" + (f", {self.left:.0f} s left" if self.left >= 1 else "")
        return {"saved": f"saved {self.text}", "start": "start"}.get(self.kind, self.text)


Progress = bool | None | Callable[[Event], object]


class Line:
    """One line of a terminal, written over and over."""

    def __init__(self, stream):
        self.stream, self.width = stream, 0

    def __call__(self, event: Event) -> None:
        text = str(event)[:100]
        self.stream.write("\r" + text.ljust(self.width))
        self.stream.flush()
        self.width = len(text)

    def close(self) -> None:
        if self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()


class Cell:
    """One line below a cell of a notebook."""

    def __init__(self, display):
        self.handle = display({"text/plain": ""}, raw=True, display_id=True)

    def __call__(self, event: Event) -> None:
        self.handle.update({"text/plain": str(event)}, raw=True)

    def close(self) -> None:
        self.handle.update({"text/plain": ""}, raw=True)


def notebook_display():
    """IPython's display function if this is the kernel of a notebook, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return display


def choose(progress: Progress):
    """The function that is called with events; None: none."""
    if callable(progress):
        return progress
    if progress is False:
        return None
    display = notebook_display()
    if display:
        return Cell(display)
    return Line(sys.stderr) if progress or (sys.stderr and sys.stderr.isatty()) else None


class Listener:
    """Turns events of the library into calls of a function. `error` is what that has raised: the call then ends, as it does by
    the interrupt, which a search looks at more often."""

    def __init__(self, progress: Progress, interrupt):
        self.interrupt = interrupt
        self.function = choose(progress)
        self.error = None
        self.stopped = False
        self.callback = c.sf_listener(self._hear) if self.function else c.sf_listener()

    def _hear(self, _, pointer):
        if self.stopped:
            return False
        event = pointer[0]
        train = event.train[0] if event.train else None
        try:
            answer = self.function(Event(KINDS.get(event.kind, "stage"), str_of(event.text), event.step, event.steps,
                                         event.loss, train.rate if train else 0.0, train.left if train else 0.0))
        except BaseException as error:
            self.error, answer = error, False
        self.stopped = answer is False
        if self.stopped:
            lib.sf_interrupt_raise(self.interrupt)
        return not self.stopped

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if hasattr(self.function, "close"):
            self.function.close()
