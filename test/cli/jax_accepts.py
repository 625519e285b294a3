"""Gives StableHLO texts to JAX.

    jax_accepts.py parse FILE...        its parser and verifier take them
    jax_accepts.py run FILE VALUES      compiles and runs a step on the CPU with the inputs in VALUES,
                                        a safetensors file, and compares with the results there

Exits with 77 where JAX is not installed.
"""
import json
import os
import struct
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
try:
    import jax
    import jaxlib
    import numpy as np
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
except ImportError as error:
    print(f"jax is not installed: {error}")
    sys.exit(77)


def parse(path):
    with open(path, encoding="utf-8") as file:
        module = ir.Module.parse(file.read())
    module.operation.verify()
    return module


def parse_all(paths):
    failures = 0
    for path in paths:
        with mlir.make_ir_context():
            try:
                parse(path)
            except Exception as error:  # whatever JAX has against it
                failures += 1
                print(f"FAILED: {path}: {str(error)[:600]}")
    print(f"jaxlib {jaxlib.__version__}: {len(paths) - failures} of {len(paths)} texts accepted")
    return 1 if failures else 0


def read_safetensors(path):
    dtypes = {"F32": np.float32, "I32": np.int32, "U32": np.uint32, "I64": np.int64,
              "BOOL": np.bool_, "F64": np.float64, "U8": np.uint8}
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], dtypes[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def in_order(tensors, prefix):
    count = sum(name.startswith(prefix) for name in tensors)
    return [tensors[f"{prefix}{i}"] for i in range(count)]


def execute(path, inputs):
    import jax.extend.backend
    from jaxlib import _jax

    device = jax.devices("cpu")[0]
    with mlir.make_ir_context():
        module = parse(path)
        types = ir.SymbolTable(module.operation)["main"].type.inputs
        shapes = [tuple(ir.RankedTensorType(type).shape) for type in types]
        try:
            executable = jax.extend.backend.get_backend("cpu").compile_and_load(
                module, _jax.DeviceList((device,)))
        except (AttributeError, TypeError) as error:
            print(f"this version of jax is not known: {error}")
            sys.exit(77)
    # The file has scalars as tensors of one element.
    arguments = [jax.device_put(value.reshape(shape), device) for value, shape in zip(inputs, shapes)]
    results = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    return [np.asarray(result[0]) for result in results]


def is_noise(expected, index):
    """Whether the result is a weight whose gradient is zero in mathematics. Adam divides a gradient by
    its own size, so such a weight takes a step of full size in a direction that is noise. Results
    are the weights, a count, the first moments, the second moments, and the loss."""
    weights = (len(expected) - 2) // 3
    if index >= weights:
        return False
    moments = [np.max(np.abs(moment)) for moment in expected[weights + 1:2 * weights + 1]]
    return moments[index] < 5e-7 * max(moments)


def run(path, values):
    tensors = read_safetensors(values)
    expected = in_order(tensors, "out.")
    results = execute(path, in_order(tensors, "in."))
    if len(results) != len(expected):
        print(f"FAILED: {len(results)} results, {len(expected)} expected")
        return 1
    failures, noise = 0, 0
    for i, (ours, theirs) in enumerate(zip(results, expected)):
        if is_noise(expected, i):
            noise += 1
            continue
        error = np.max(np.abs(ours.astype(np.float64) - theirs.reshape(ours.shape)), initial=0)
        scale = np.sqrt(np.mean(np.square(theirs.astype(np.float64))))
        if ours.dtype != theirs.dtype or not error <= 1e-4 * scale + 1e-9:
            failures += 1
            print(f"FAILED: result {i}: {ours.dtype}{ours.shape}, off by {error:.3g} of {scale:.3g}")
    print(f"jax {jax.__version__} runs it: {len(results)} results, {noise} of them noise, "
          f"{failures} wrong")
    return 1 if failures else 0


def main(arguments):
    if len(arguments) >= 2 and arguments[0] == "parse":
        return parse_all(arguments[1:])
    if len(arguments) == 3 and arguments[0] == "run":
        return run(arguments[1], arguments[2])
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
