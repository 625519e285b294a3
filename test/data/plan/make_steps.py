#!/usr/bin/env python3
"""Lowers the steps that tests of the planner use: the GPT of examples/char-gpt in other sizes, for shapes
alone. They are planned and never run.

Usage: make_steps.py     writes NAME.stablehlo.mlir.xz and NAME.json into the folder of this file

Needs JAX.
"""

import lzma
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../examples/char-gpt"))
import make_step

STEPS = {
    # Many short sequences: as many tokens as weights.
    "gpt-batch": dict(VOCABULARY=8192, WIDTH=1024, LAYERS=2, HEADS=16, LENGTH=256, BATCH=64),
    # One long sequence: the tokens are most of the work.
    "gpt-long": dict(VOCABULARY=1024, WIDTH=512, LAYERS=2, HEADS=8, LENGTH=16384, BATCH=1),
    # One short sequence: the weights are.
    "gpt-wide": dict(VOCABULARY=1024, WIDTH=4096, LAYERS=2, HEADS=32, LENGTH=16, BATCH=1),
}


def main():
    os.chdir(HERE)
    for name, sizes in STEPS.items():
        vars(make_step).update(sizes)
        make_step.main(name)
        text = f"{name}.stablehlo.mlir"
        with open(text, "rb") as plain, lzma.open(f"{text}.xz", "wb", preset=9) as packed:
            packed.write(plain.read())
        os.remove(text)


main()
