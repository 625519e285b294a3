"""Text that the library writes, as objects that show themselves."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable


class View:
    """A table of the library. str() is the text, `data` the same as dictionaries and lists (docs/reference/cli.md has the keys)."""

    def __init__(self, text: str, read: Callable[[], str]):
        self._text, self._read, self._data = text, read, None

    @property
    def data(self):
        if self._data is None:
            self._data = json.loads(self._read())
        return self._data

    def __getitem__(self, key):
        return self.data[key]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text.rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._text)}</pre>"


class Page:
    """A page of HTML, complete in itself. Notebooks show it inline."""

    def __init__(self, html_text: str, read: Callable[[], str]):
        self.html, self._read, self._data = html_text, read, None

    @property
    def data(self):
        """What the page shows, as dictionaries and lists."""
        if self._data is None:
            self._data = json.loads(self._read())
        return self._data

    def save(self, path: str | os.PathLike) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def __repr__(self) -> str:
        return f"<page of {len(self.html):,} characters; .save(path) writes it>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:720px;border:0"></iframe>'


def seconds_text(seconds: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def bytes_text(count: float) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")


def draw_bars(rows: list[tuple[str, list[tuple[str, float]], Callable[[float], str]]]) -> str:
    """An SVG with a stacked bar for each row: (title, [(name, amount)], how amounts are written)."""
    width, height, out = 640, 46, []
    for row, (title, parts, write) in enumerate(rows):
        whole, x, top = sum(amount for _, amount in parts) or 1, 110.0, row * height
        out.append(f'<text x="0" y="{top + 15}">{html.escape(title)}</text>')
        for i, (name, amount) in enumerate(parts):
            length = (width - 110) * amount / whole
            label = f"{html.escape(name)} {write(amount)}"
            out.append(f'<rect x="{x:.1f}" y="{top}" width="{length:.1f}" height="20" fill="{COLOURS[i % len(COLOURS)]}">'
                       f"<title>{label}</title></rect>")
            if length > 7 * len(label):
                out.append(f'<text x="{x + 3:.1f}" y="{top + 34}">{label}</text>')
            x += length
    return (f'<svg width="{width}" height="{height * len(rows)}" font-size="11" font-family="sans-serif" '
            f'fill="currentColor" xmlns="http://www.w3.org/2000/svg">{"".join(out)}</svg>')


def draw_table(rows: list[list[str]], head: list[str] | None = None) -> str:
    out = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    top = "<tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + "</tr>" if head else ""
    return f"<table>{top}{out}</table>"
