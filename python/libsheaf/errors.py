"""Errors and warnings of the library."""

from __future__ import annotations

import dataclasses
import enum


class Code(enum.IntEnum):
    """The kind of an error; the names are those of sf_status in C."""

    INPUT = 1
    """the input is malformed or contradicts itself"""
    UNSUPPORTED = 2
    """the input is valid, but this build cannot do it"""
    MISMATCH = 3
    """a check failed, or nothing fits"""
    USAGE = 4
    """the call is wrong"""
    IO = 5
    """the system could not read or write"""
    NOMEM = 6
    """out of memory, or past a limit"""
    PEER = 7
    """another rank failed, or did not answer in time"""


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """A message of the library: where, what, and what to do."""

    severity: str
    """"error" or "warning\""""
    text: str
    hint: str = ""
    file: str = ""
    line: int = 0
    """from 1 on; 0: not known"""
    column: int = 0

    def __str__(self) -> str:
        place = ":".join([self.file or "<input>"] + [str(n) for n in (self.line, self.column) if n])
        place = f"{place}: " if self.file or self.line else ""
        return place + self.text + (f"\n  hint: {self.hint}" if self.hint else "")


class SheafError(Exception):
    """A call failed. `code` says how, `diagnostics` where and why.

    `text` and `hint` are those of the first error; `file`, `line` and `column` of the first that has a place.
    """

    def __init__(self, code: Code, diagnostics: list[Diagnostic]):
        super().__init__(code, diagnostics)
        self.code = code
        self.diagnostics = diagnostics
        self.verification = None
        """of `verify`: the numbers of a mismatch"""
        errors = [d for d in diagnostics if d.severity == "error"] or [Diagnostic("error", code.name.lower())]
        placed = next((d for d in errors if d.file), errors[0])
        self.text, self.hint = errors[0].text, errors[0].hint
        self.file, self.line, self.column = placed.file, placed.line, placed.column

    def __str__(self) -> str:
        errors = [str(d) for d in self.diagnostics if d.severity == "error"]
        return "\n".join(errors) or self.code.name.lower()


class SheafWarning(UserWarning):
    """A warning of the library, through Python's `warnings`; `diagnostic` has its parts."""

    def __init__(self, diagnostic: Diagnostic):
        super().__init__(diagnostic)
        self.diagnostic = diagnostic

    def __str__(self) -> str:
        return str(self.diagnostic)


def usage(text: str, hint: str = "") -> SheafError:
    """An error of the call, found before the library is asked."""
    return SheafError(Code.USAGE, [Diagnostic("error", text, hint)])
