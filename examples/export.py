"""Writes a JAX training step as sheaf reads it: the text, the roles of its arguments, and values to verify it with.

    from export import export
    export(step, (state, batch, rng), "step")

`step` is any function from arguments to results, jitted or not; arguments are pytrees of arrays, Python numbers and
keys, a flax TrainState as well as nested dictionaries. `state={"params": 0, "opt": 1}` says which result becomes which
argument in the next step. Without it that is guessed and printed: the results that come one after another and look as
arguments do, the same tree of the same shapes; the rest is what the step reports: a loss, or a dictionary with "loss" in
it. A single array or number that may be either is refused. Written are

    NAME.stablehlo.mlir      the step, with the state donated, so that the text says what becomes what
    NAME.json                the sidecar: the role of every argument, which result is the loss, and with `state` the links
    NAME.io.safetensors      arguments and results of the first step, batches and losses of all: sheaf verify --against

With jax.ShapeDtypeStruct instead of arrays, of a model that is too large to create, there are no values. Needs JAX and
nothing else.
"""

import inspect
import json
import re
import struct
import sys

import jax
import jax.numpy as jnp
import numpy as np

TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "bool": "BOOL", "int64": "I64",
         "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8"}
FED = ("batch", "batches", "x", "y", "inputs", "labels", "targets", "images", "tokens", "ids", "data")
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


def is_number(form):
    """Of a lone number; a key is none."""
    return len(form[1]) == 1 and form[1][0][0] == () and not form[1][0][1].startswith("key")


class Step:
    def __init__(self, step, arguments, state=None):
        self.step = step
        self.names = list(inspect.signature(step).parameters)[:len(arguments)]
        self.arguments = [jax.tree.map(as_array, argument) for argument in arguments]
        self.forms = [form_of(argument) for argument in self.arguments]
        shapes = jax.eval_shape(step, *self.arguments)
        self.alone = not isinstance(shapes, (tuple, list)) or hasattr(shapes, "_fields")
        results = [shapes] if self.alone else list(shapes)
        self.results = [form_of(result) for result in results]
        self.next = self.guess_state() if state is None else self.said_state(state)
        self.loss = self.find_loss(results)
        if not any(after is not None for after in self.next):
            raise ValueError("no result of the step has the form of an argument: what is its state?")

    def said_state(self, state):
        after = [None] * len(self.results)
        for name, result in state.items():
            argument = self.names.index(name)
            if self.results[result] != self.forms[argument]:
                raise ValueError(f"result {result} has not the form of the argument {name}")
            after[result] = argument
        return after

    def guess_state(self):
        """For each result the argument that it becomes, or None. State comes back one after another, in the order of the
        arguments of one form; a number does where another one, the loss, comes after it. A lone array or number may as
        well be what the step reports of its batch: that is for the caller to say."""
        after, doubts, ended = [], [], False
        for i, form in enumerate(self.results):
            fits = [k for k, name in enumerate(self.names)
                    if self.forms[k] == form and form[1] and k not in after and name not in FED]
            loss_follows = any(re.search("float", leaf[1]) and leaf[0] == () for later in self.results[i + 1:]
                               for leaf in later[1])
            is_state = bool(fits) and not ended and (loss_follows or not is_number(form))
            first = all(k is None for k in after)
            sure = len(form[1]) > 1 or re.search("key|int", form[1][0][1]) or (first and len(fits) == 1)
            if is_state and not sure:
                said = {self.names[k]: n for n, k in enumerate(after + [fits[0]]) if k is not None}
                raise ValueError(f"result {i} may be what {self.names[fits[0]]!r} is in the next step, or only look so: "
                                 f"export(..., state={said}) and further pairs say what becomes what")
            if fits and not is_state and form[1] != [((), "float32")]:
                doubts.append(i)
            after.append(fits[0] if is_state else None)
            ended = ended or (not is_state and not first)
        said = {self.names[k]: i for i, k in enumerate(after) if k is not None}
        print(f"{getattr(self.step, '__name__', 'step')}: taken as its state is {said}", file=sys.stderr)
        if doubts:
            print(f"    results {doubts} look like arguments, but are taken for what it reports; else say state={{...}}",
                  file=sys.stderr)
        return after

    def run(self, arguments):
        results = self.jitted(*arguments)
        return [results] if self.alone else list(results)

    def lower(self):
        donated = [i for i in self.next if i is not None]
        self.jitted = jax.jit(self.step)
        return jax.jit(self.step, donate_argnums=donated, keep_unused=True).lower(*self.arguments).as_text(debug_info=True)

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
        if argument in self.next:
            return "opt_state"
        is_frozen = len(self.forms[argument][1]) > 1 and self.forms[argument] in [
            self.forms[after] for after in self.next if after is not None]
        return "param" if is_frozen else "batch"

    def outputs(self):
        """The numbers of the leaves that become nothing."""
        owners = [after for form, after in zip(self.results, self.next) for _ in form[1]]
        return [i for i, after in enumerate(owners) if after is None]

    def links(self):
        """ARGUMENT=RESULT for each leaf of the state, by numbers: JAX pairs donated arguments with results by type alone."""
        first, pairs, result = [], [], 0
        for form in [None, *self.forms[:-1]]:
            first.append(first[-1] + len(form[1]) if form else 0)
        for form, after in zip(self.results, self.next):
            if after is not None:
                pairs += [f"{first[after] + k}={result + k}" for k in range(len(form[1]))]
            result += len(form[1])
        return ",".join(pairs)

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


def export(step, arguments, name, batches=None, steps=3, state=None):
    """Writes the files. `batches` has, for each step, the arguments that change, by name; else all steps have those of
    the first. `state` has, by the name of an argument, the number of the result that it becomes. Returns what it wrote."""
    made = Step(step, arguments, state)
    written = [f"{name}.stablehlo.mlir"]
    with open(written[0], "w", encoding="utf-8") as file:
        file.write(made.lower())
    entries = [{"name": leaf_name, "role": role, "shape": list(shape_of(leaf).shape), "dtype": str(shape_of(leaf).dtype)}
               for leaf_name, role, leaf in made.leaves()]
    if any(entry["role"] == "param" for entry in entries):  # else sheaf finds out which they are
        written.append(f"{name}.json")
        with open(written[-1], "w", encoding="utf-8") as file:
            loss = "" if made.loss is None else f', "loss": {made.loss}'
            said = f', "state": "{made.links()}", "outputs": {made.outputs()}' if state is not None else ""
            file.write('{"args": [\n' + ",\n".join(map(json.dumps, entries)) + f"\n]{loss}{said}}}\n")
    if not any(isinstance(leaf, jax.ShapeDtypeStruct) for _, _, leaf in made.leaves()):
        written.append(f"{name}.io.safetensors")
        write_safetensors(written[-1], made.values(batches or [{}] * steps))
    return written
