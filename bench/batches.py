"""Writes batches for a step of real size: batches.py SIDECAR FILE [COUNT]

SIDECAR is the JSON beside the step; FILE becomes a safetensors file with COUNT (default 2) batches, floats between -1
and 1 and integers below 256, so that timed steps do not wait for numbers to be drawn. Needs no packages.
"""
import array
import json
import random
import re
import struct
import sys

TYPES = {"float32": ("F32", "f"), "int32": ("I32", "i"), "uint32": ("U32", "I")}


def clean(name):
    return ".".join(re.findall(r"[A-Za-z0-9_]+", name))


def elements(code, count, seed):
    draw = random.Random(seed)
    few = [draw.uniform(-1, 1) if code == "f" else draw.randrange(256) for _ in range(4093)]
    return (array.array(code, few) * (count // 4093 + 1))[:count].tobytes()


def main():
    arguments = [a for a in json.load(open(sys.argv[1]))["args"] if a["role"] == "batch"]
    header, parts, at = {}, [], 0
    for number in range(int(sys.argv[3]) if len(sys.argv) > 3 else 2):
        for index, argument in enumerate(arguments):
            name, code = TYPES[argument["dtype"]]
            count = 1
            for size in argument["shape"]:
                count *= size
            parts.append(elements(code, count, 100 * number + index))
            header[f"batch.{number}.{clean(argument['name'])}"] = {
                "dtype": name, "shape": argument["shape"], "data_offsets": [at, at + len(parts[-1])]}
            at += len(parts[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(sys.argv[2], "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for part in parts:
            file.write(part)


main()
