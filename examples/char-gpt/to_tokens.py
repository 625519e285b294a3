#!/usr/bin/env python3
"""Turns a text into tokens: every byte becomes a little-endian uint16.

Usage: to_tokens.py TEXT TOKENS.u16
"""

import array
import sys

if len(sys.argv) != 3:
    sys.exit(__doc__.strip())
with open(sys.argv[1], "rb") as file:
    tokens = array.array("H", list(file.read()))
if sys.byteorder == "big":
    tokens.byteswap()
with open(sys.argv[2], "wb") as file:
    tokens.tofile(file)
print(f"{len(tokens)} tokens, the largest is {max(tokens)}")
