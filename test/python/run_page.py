"""Runs the programs of a page: run_page.py PAGE. test/python/page says how blocks are marked."""

import contextlib
import io
import re
import sys


def run(source, names, place):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile("\n" * place + source, sys.argv[1], "exec"), names)
    return out.getvalue()


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    names, failures, count, skipped, printed = {"__name__": "page"}, 0, 0, 0, None
    for block in re.finditer(r"^```(python|text)\n(.*?)^```$", text, re.S | re.M):
        line = text[: block.start()].count("\n") + 1
        if block[1] == "python":
            try:
                printed = run(block[2], names, line)
                count += 1
            except ModuleNotFoundError as missing:
                if missing.name in ("libsheaf", "numpy"):
                    raise
                skipped, printed = skipped + 1, None
        elif printed is not None:
            pattern = "".join(".*" if row == "...\n" else re.escape(row) for row in block[2].splitlines(True))
            if not re.fullmatch(pattern, printed, re.S):
                print(f"{sys.argv[1]}:{line}: the page shows\n{block[2]}and it prints\n{printed}")
                failures += 1
    print(f"{count} programs, {skipped} need other packages, {failures} differ")
    sys.exit(failures > 0 or count == 0)


main()
