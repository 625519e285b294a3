"""Writes a JAX training step as sheaf reads it: the text, the roles of its arguments, and values to verify it with.

    from export import export
    export(step, (state, batch, rng), "step")

`step` is any function from arguments to results, jitted or not; arguments are pytrees of arrays, Python numbers and
keys, a flax TrainState as well as nested dictionaries. A result that looks as an argument does, the same tree of the
same shapes, becomes that argument in the next step; the rest is what the step reports: a loss, or a dictionary with
"loss" in it. Written are

    NAME.stablehlo.mlir      the step, with the state donated, so that the text says what becomes what
    NAME.json                the sidecar: the role of every argument, and which result is the loss
    NAME.io.safetensors      arguments and results of the first step, batches and losses of all: sheaf verify --against

With jax.ShapeDtypeStruct instead of arrays, of a model that is too large to create, there are no values. Needs JAX and
nothing else.
"""

import inspect
import json
import re
import struct

import jax
import jax.numpy as jnp
import numpy as np

TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "bool": "BOOL", "int64": "I64",
         "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8"}
KEYS = ("rng", "rngs", "key", "keys", "prng", "dropout_rng", "dropout_key")


def as_array(leaf):
    """Python numbers are arrays to a step: as such they keep their type from step to step."""
    return leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jnp.asarray(leaf)


def is_key(leaf):
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def words_of(leaf):
    """The values of a leaf; of a key, the words that it is made of."""
    return np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)


def shape_of(leaf):
    return jax.eval_shape(jax.random.key_data, leaf) if is_key(leaf) else leaf


def path_name(name, path):
    """As JAX writes it into the text."""
    return name + re.sub(r"<flat index (\d+)>", r"\1", jax.tree_util.keystr(path))


def form_of(tree):
    """What two trees have in common if one can take the place of the other."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(tuple(leaf.shape), str(leaf.dtype)) for leaf in leaves]


class Step:
    def __init__(self, step, arguments):
        self.step = step
        self.names = list(inspect.signature(step).parameters)[:len(arguments)]
        self.arguments = [jax.tree.map(as_array, argument) for argument in arguments]
        shapes = jax.eval_shape(step, *self.arguments)
        self.alone = not isinstance(shapes, (tuple, list)) or hasattr(shapes, "_fields")
        results = [shapes] if self.alone else list(shapes)
        self.next = self.match_state(results)
        self.loss = self.find_loss(results)

    def match_state(self, results):
        """For each result the argument that it becomes, or None. A single scalar is something that is reported, a key is not."""
        taken, after = set(), []
        forms = [form_of(argument) for argument in self.arguments]
        for result in results:
            form = form_of(result)
            fits = [i for i in range(len(forms)) if i not in taken and forms[i] == form and forms[i][1]]
            scalar = len(form[1]) == 1 and form[1][0][0] == () and not is_key(jax.tree.leaves(result)[0])
            chosen = fits[0] if fits and not scalar else None
            taken.add(chosen)
            after.append(chosen)
        if not any(after_one is not None for after_one in after):
            raise ValueError("no result of the step has the form of an argument: what is its state?")
        return after

    def run(self, arguments):
        results = self.jitted(*arguments)
        return [results] if self.alone else list(results)

    def lower(self):
        donated = [i for i in self.next if i is not None]
        self.jitted = jax.jit(self.step)
        return jax.jit(self.step, donate_argnums=donated).lower(*self.arguments).as_text(debug_info=True)

    def find_loss(self, results):
        """The number of the leaf that is called loss; else of one with loss in its name; else of the first floating scalar
        that is no state. None: there is none."""
        leaves = [(after, jax.tree_util.keystr(path[-1:]), leaf) for result, after in zip(results, self.next)
                  for path, leaf in jax.tree.leaves_with_path(result)]
        found = [(0 if re.search(r"\bloss\b", name) else 1 if "loss" in name else 2, i)
                 for i, (after, name, leaf) in enumerate(leaves)
                 if after is None and leaf.shape == () and jnp.issubdtype(leaf.dtype, jnp.floating)]
        return min(found, default=(2, None))[1]

    def loss_of(self, results):
        if self.loss is None:
            raise ValueError("the step reports no loss: no result is a floating scalar")
        return float(jax.tree.leaves(results)[self.loss])

    def role(self, argument, path, leaf):
        """By the place of a leaf: in which argument, and under which field of it."""
        name = self.names[argument]
        first = re.sub(r"\W", "", jax.tree_util.keystr(path[:1]))
        if is_key(leaf) or (leaf.dtype == jnp.uint32 and leaf.shape == (2,) and {name, first} & set(KEYS)):
            return "key"
        if "params" in (name, first):
            return "param"
        return "opt_state" if argument in self.next else "batch"

    def leaves(self):
        for i, (name, argument) in enumerate(zip(self.names, self.arguments)):
            for path, leaf in jax.tree.leaves_with_path(argument):
                yield path_name(name, path), self.role(i, path, leaf), leaf

    def values(self, batches):
        values = {f"in.{i}": words_of(leaf) for i, (_, _, leaf) in enumerate(self.leaves())}
        arguments, losses = list(self.arguments), []
        for k, batch in enumerate(batches):
            for name, value in batch.items():
                arguments[self.names.index(name)] = jax.tree.map(as_array, value)
            for i, (name, argument) in enumerate(zip(self.names, arguments)):
                for path, leaf in jax.tree.leaves_with_path(argument):
                    if self.role(i, path, leaf) == "batch":
                        values[f"batch.{k}.{path_name(name, path)}"] = words_of(leaf)
            results = self.run(arguments)
            if k == 0:
                values |= {f"out.{i}": words_of(leaf) for i, leaf in enumerate(jax.tree.leaves(results))}
            losses.append(self.loss_of(results))
            for result, after in zip(results, self.next):
                if after is not None:
                    arguments[after] = result
        return values | {"losses": np.array(losses, np.float32)}


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": TYPES[str(tensor.dtype)], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.tobytes())


def export(step, arguments, name, batches=None, steps=3):
    """Writes the files. `batches` has, for each step, the arguments that change, by name; else all steps have those of
    the first. Returns what it wrote."""
    made = Step(step, arguments)
    written = [f"{name}.stablehlo.mlir"]
    with open(written[0], "w", encoding="utf-8") as file:
        file.write(made.lower())
    entries = [{"name": leaf_name, "role": role, "shape": list(shape_of(leaf).shape), "dtype": str(shape_of(leaf).dtype)}
               for leaf_name, role, leaf in made.leaves()]
    if any(entry["role"] == "param" for entry in entries):  # else sheaf finds out which they are
        written.append(f"{name}.json")
        with open(written[-1], "w", encoding="utf-8") as file:
            loss = "" if made.loss is None else f', "loss": {made.loss}'
            file.write('{"args": [\n' + ",\n".join(map(json.dumps, entries)) + f"\n]{loss}}}\n")
    if not any(isinstance(leaf, jax.ShapeDtypeStruct) for _, _, leaf in made.leaves()):
        written.append(f"{name}.io.safetensors")
        write_safetensors(written[-1], made.values(batches or [{}] * steps))
    return written
