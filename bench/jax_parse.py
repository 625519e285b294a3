"""How long JAX's own parsers need for a step, in milliseconds:

    jax_parse.py FILE

MLIR's parser and verifier for StableHLO text, XLA's for HLO text. Neither imports: nothing is inlined
or unrolled. Processor time of one thread, the best of several runs, as in load_bench.c. Exits with 77
where jaxlib cannot do it.
"""
import gzip
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
try:
    from jax._src.interpreters import mlir
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    read_hlo = xla_client.hlo.hlo_module_from_text
except (ImportError, AttributeError) as error:
    print(f"no usable jax: {error}", file=sys.stderr)
    sys.exit(77)


def parse_once(text, is_hlo):
    if is_hlo:
        start = time.process_time()
        module = read_hlo(text)
        return time.process_time() - start, module
    with mlir.make_ir_context() as context:
        context.enable_multithreading(False)
        start = time.process_time()
        module = ir.Module.parse(text)
        return time.process_time() - start, module


def main(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        text = file.read()
    times = []
    while len(times) < 3 or (sum(times) < 1 and len(times) < 50):
        times.append(parse_once(text, ".hlo" in path)[0])
    print(f"{min(times) * 1e3:.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
