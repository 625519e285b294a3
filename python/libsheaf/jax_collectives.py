"""The collectives of a program that XLA has compiled, beside those of the plan that it is of."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter

KINDS = {"all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
         "all-to-all": "all_to_all", "collective-permute": "permute"}
BITS = {"pred": 8, "bf16": 16, "c64": 64, "c128": 128}


@dataclasses.dataclass(frozen=True)
class Traffic:
    """The collectives of one kind in a step: how many tensors, and the bytes of them on a rank, of what is gathered or scattered
    the whole."""

    tensors: int = 0
    bytes: int = 0


def bits_of(dtype: str) -> int:
    return BITS.get(dtype) or int(re.search(r"\d+", dtype)[0])


def shapes_of(text: str) -> list[int]:
    """The bytes of each array in the text of a type, "f32[2,3]{1,0}" or a tuple of them."""
    return [math.prod(int(size) for size in dims.split(",") if size) * bits_of(dtype) // 8
            for dtype, dims in re.findall(r"([a-z]+\d*[a-z0-9]*)\[([\d,]*)\]", text)]


def group_size(line: str) -> int:
    listed = re.search(r"replica_groups=\{\{([\d,]*)\}", line)
    if listed:
        return len(listed[1].split(","))
    tiled = re.search(r"replica_groups=\[(\d+),(\d+)\]", line)
    return int(tiled[2]) if tiled else 1


class Module:
    """HLO text: the lines of each computation."""

    def __init__(self, text: str):
        self.lines, self.entry, name = {}, None, None
        for line in text.splitlines():
            head = re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line)
            if head:
                name = head[2]
                self.lines[name] = []
                self.entry = name if head[1] else self.entry
            elif name:
                self.lines[name].append(line)

    def count(self, name: str | None = None, times: int = 1, found: Counter | None = None) -> Counter:
        """Tensors and bytes by kind; what a loop does counts as often as the loop goes around."""
        found = Counter() if found is None else found
        for line in self.lines.get(name or self.entry, ()):
            op = re.match(r"\s*(?:ROOT )?%[\w.\-]+ = (.*?) ([a-z][a-z0-9\-]*)\(", line)
            if not op:
                continue
            kind = op[2].removesuffix("-start")
            if kind in KINDS:
                self.add(found, KINDS[kind], op[1], line, times, op[2].endswith("-start"))
            trips = re.search(r'known_trip_count":\{"n":"(\d+)"', line)
            rounds = times * (int(trips[1]) if trips and op[2] == "while" else 1)
            for callee in re.findall(r"(?:body|to_apply|calls|called_computations)=\{?%([\w.\-]+)", line):
                self.count(callee, rounds, found)
            for branches in re.findall(r"branch_computations=\{([^}]*)\}", line):
                for branch in re.findall(r"%([\w.\-]+)", branches):
                    self.count(branch, times, found)
        return found

    @staticmethod
    def add(found, kind, shape, line, times, is_start):
        shapes = shapes_of(shape)
        if is_start and kind in ("all_gather", "permute"):
            shapes = shapes[len(shapes) // 2:]  # operands come first
        if kind == "all_to_all" and shape.startswith("("):
            shapes = [sum(shapes)]  # a part for each member
        whole = group_size(line) if kind == "reduce_scatter" else 1
        found[kind, "tensors"] += times * len(shapes)
        found[kind, "bytes"] += times * sum(shapes) * whole


def compiled_traffic(text: str) -> dict[str, Traffic]:
    found = Module(text).count()
    return {kind: Traffic(found[kind, "tensors"], found[kind, "bytes"]) for kind in sorted({kind for kind, _ in found})}


def planned_traffic(plan) -> dict[str, Traffic]:
    """What the plan's programs send, by kind."""
    found = {}
    for row in plan.show().data.get("collectives", []):
        had = found.get(row["kind"], Traffic())
        found[row["kind"]] = Traffic(had.tensors + row["tensors"], had.bytes + row["bytes_of_a_rank"])
    return dict(sorted(found.items()))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Collectives by kind: what the plan has, and what XLA compiled."""

    planned: dict[str, Traffic]
    compiled: dict[str, Traffic]

    @property
    def equal(self) -> bool:
        return self.planned == self.compiled

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        rows = [("collective", "plan: tensors", "bytes", "XLA: tensors", "bytes")]
        for kind in sorted(self.planned | self.compiled):
            ours, theirs = self.planned.get(kind, Traffic()), self.compiled.get(kind, Traffic())
            rows.append((kind, str(ours.tensors), str(ours.bytes), str(theirs.tensors), str(theirs.bytes)))
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                                   for i, (cell, width) in enumerate(zip(row, widths))) for row in rows)
