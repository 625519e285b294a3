"""The structs of the package have the layouts that the C compiler gives, which test/abi/abi.txt holds."""

import ctypes
from pathlib import Path

import pytest

from libsheaf import prototypes

LINES = (Path(__file__).resolve().parents[1] / "abi" / "abi.txt").read_text().splitlines()


def rows(kind):
    return [line.split()[1:] for line in LINES if line.startswith(kind + " ")]


@pytest.mark.parametrize("name, size", rows("struct"))
def test_size(name, size):
    assert ctypes.sizeof(getattr(prototypes, name)) == int(size)


@pytest.mark.parametrize("field, offset", rows("field"))
def test_offset(field, offset):
    struct, name = field.split(".")
    assert getattr(getattr(prototypes, struct), name).offset == int(offset)


@pytest.mark.parametrize("name, value", rows("enum"))
def test_enumerator(name, value):
    assert getattr(prototypes, name) == int(value)


def test_functions():
    held = {line.split()[1].rstrip(":") for line in LINES if line.startswith("function ")}
    assert held == prototypes.FUNCTIONS.keys()
