#!/usr/bin/env python3
"""Lowers the steps that tests of the planner use, by their shapes alone: the GPT of examples/char-gpt in other sizes, models of
zoo/large with fewer layers, and a net of convolutions. They are planned and never run.

Usage: make_steps.py     writes NAME.stablehlo.mlir.xz and NAME.json into the folder of this file

Needs JAX and optax.
"""

import importlib.machinery
import importlib.util
import lzma
import os
import sys

import jax
import jax.numpy as jnp

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../../..")
sys.path.insert(0, os.path.join(ROOT, "examples/char-gpt"))
import make_step


def load_program(path):
    loader = importlib.machinery.SourceFileLoader("large", os.path.join(ROOT, path))
    sys.dont_write_bytecode = True
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("large", loader))
    loader.exec_module(module)
    return module


large = load_program("zoo/large")

STEPS = {
    # Many short sequences: as many tokens as weights.
    "gpt-batch": dict(VOCABULARY=8192, WIDTH=1024, LAYERS=2, HEADS=16, LENGTH=256, BATCH=64),
    # One long sequence: the tokens are most of the work.
    "gpt-long": dict(VOCABULARY=1024, WIDTH=512, LAYERS=2, HEADS=8, LENGTH=16384, BATCH=1),
    # One short sequence: the weights are.
    "gpt-wide": dict(VOCABULARY=1024, WIDTH=4096, LAYERS=2, HEADS=32, LENGTH=16, BATCH=1),
}


def classifier(widths, size, batch, classes):
    """Convolutions, after each of which a side is halved, and a dense layer for very many classes."""

    def loss_of(params, batch):
        x = batch["x"]
        for i in range(len(widths)):
            with jax.named_scope(f"conv{i}"):
                p = params[f"conv{i}"]
                x = jax.lax.conv_general_dilated(x, p["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
                x = jax.nn.relu(x + p["bias"])
                x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        with jax.named_scope("head"):
            return large.mistake(large.dense(params["head"], x.reshape(x.shape[0], -1)), batch["y"])

    params, made = {}, 3
    for i, width in enumerate(widths):
        params[f"conv{i}"] = {"kernel": large.of(3, 3, made, width), "bias": large.of(width)}
        made = width
    params["head"] = large.linear(made * (size >> len(widths)) ** 2, classes)
    images = jax.ShapeDtypeStruct((batch, size, size, 3), jnp.float32)
    return large.trained(loss_of, params, {"x": images, "y": jax.ShapeDtypeStruct((batch,), jnp.int32)})


LARGE = {
    # Experts in every other layer.
    "moe": lambda: large.gpt(4, 768, 16, 32000, 1024, 64, jnp.float32, 8 * 768, 8),
    # Three passes through the same layers, all but the last without gradient.
    "passes": lambda: large.evoformer(4, 256, 8, 128, 256, 32, jnp.float16),
    # A million classes.
    "classes": lambda: classifier([64, 128, 256, 512, 512], 32, 256, 1 << 20),
}


def pack(name):
    text = f"{name}.stablehlo.mlir"
    with open(text, "rb") as plain, lzma.open(f"{text}.xz", "wb", preset=9) as packed:
        packed.write(plain.read())
    os.remove(text)


def main():
    os.chdir(HERE)
    for name, sizes in STEPS.items():
        vars(make_step).update(sizes)
        make_step.main(name)
        pack(name)
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    for name, build in LARGE.items():
        step, arguments = build()
        with open(f"{name}.stablehlo.mlir", "w", encoding="utf-8") as file:
            file.write(jax.jit(step).lower(*arguments).as_text(debug_info=True))
        pack(name)


main()
