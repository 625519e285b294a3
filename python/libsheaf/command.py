"""The command `sheaf` of the package."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Becomes the program, which finds the CUDA libraries of the `nvidia-*` packages by LD_LIBRARY_PATH."""
    from .library import FOLDER, find_cuda

    program = FOLDER / "bin" / "sheaf"
    if not program.exists():
        sys.exit(f"sheaf: {program} is not there: `pip install libsheaf` brings it, `make` builds one")
    folders = dict.fromkeys(str(path.parent) for path in find_cuda())
    if folders:
        os.environ["LD_LIBRARY_PATH"] = ":".join([*filter(None, [os.environ.get("LD_LIBRARY_PATH")]), *folders])
    os.execv(program, ["sheaf", *sys.argv[1:]])


if __name__ == "__main__":
    main()
