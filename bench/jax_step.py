"""Times a step of StableHLO text under JAX: jax_step.py SECONDS FILE [cpu|gpu]

On the CPU, the default, the thread count is that of the process's affinity (use taskset). Prints a line of JSON: the best step in
milliseconds, the time to compile, and the memory of arguments, results and everything between, as XLA
planned it. What the text donates is gone after a step, and the next one takes the result that it became.
"""
import json
import re
import sys
import time

import jax
import jax.extend
import numpy as np
from jax._src.interpreters import mlir as jax_mlir
from jaxlib import xla_client
from jaxlib.mlir import ir

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": jax.numpy.bfloat16,
         "i32": np.int32, "ui32": np.uint32, "i1": np.bool_}


def read_arguments(text):
    """Their types, and the results that some of them become in place."""
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        main = next(o for o in module.body.operations if "main" in str(o.attributes["sym_name"]))
        types = [str(t) for t in main.type.inputs]
        attributes = main.attributes["arg_attrs"] if "arg_attrs" in main.attributes else [{}] * len(types)
        return types, {i: ir.IntegerAttr(a["tf.aliasing_output"]).value for i, a in enumerate(attributes)
                       if "tf.aliasing_output" in a}


def argument(index, type_text):
    dims, name = re.match(r"tensor<((?:\d+x)*)([a-z0-9]+)>", type_text).groups()
    shape = [int(d) for d in dims.split("x") if d]
    count = np.arange(int(np.prod(shape, dtype=np.int64)))
    if "f" in name:
        return (0.02 * np.sin(0.1 * count + index)).astype(TYPES[name]).reshape(shape)
    return (count % 7).astype(TYPES[name]).reshape(shape)


def planned_mb(step):
    plan = step.get_compiled_memory_stats()
    return (plan.argument_size_in_bytes + plan.output_size_in_bytes + plan.temp_size_in_bytes -
            plan.alias_size_in_bytes) / 1e6


def main():
    seconds, path = float(sys.argv[1]), sys.argv[2]
    text = open(path).read()
    backend = jax.extend.backend.get_backend(sys.argv[3] if len(sys.argv) > 3 else "cpu")
    types, becomes = read_arguments(text)
    before = time.time()
    options = xla_client.CompileOptions()
    device = backend.local_devices()[0]
    if hasattr(backend, "compile_and_load"):
        step = backend.compile_and_load(text, xla_client.DeviceList((device,)), options)
    else:
        step = backend.compile(text, options)
    compiled = time.time() - before
    values = [jax.device_put(argument(i, t), device) for i, t in enumerate(types)]
    best, steps, start = float("inf"), 0, time.time()
    while steps < 3 or time.time() - start < seconds:
        results = None  # or those of the step before would still take up memory
        before = time.time()
        results = step.execute_sharded(values).disassemble_into_single_device_arrays()
        for result in results:
            result[0].block_until_ready()
        best, steps = min(best, time.time() - before), steps + 1
        for i, value in enumerate(values):
            if value.is_deleted():
                values[i] = results[becomes[i]][0] if i in becomes else jax.device_put(argument(i, types[i]), device)
    print(json.dumps({"step_ms": round(best * 1e3, 3), "compile_s": round(compiled, 2),
                      "memory_mb": round(planned_mb(step), 1), "steps": steps}))


main()
