"""The arguments and results of a user's function as trees of arrays alone.

A step takes and gives arrays. What else a user's trees hold (functions, names, configurations) is set aside when a tree
is split, and put back when it is joined. Modules of flax.nnx, which a step changes in place, become the nested dictionary
of their arrays.
"""

from __future__ import annotations

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np

NUMBERS = (bool, int, float, complex)


def loaded(name: str):
    """A module that the user has imported, or None: no object of it can be among the arguments otherwise."""
    return sys.modules.get(name)


def is_array(leaf) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)) or (
        hasattr(leaf, "shape") and hasattr(leaf, "dtype") and hasattr(leaf, "__jax_array__"))


def is_key(leaf) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def is_abstract(leaf) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def as_array(leaf):
    """A Python number is an array to a step: as such it keeps its type from step to step."""
    return leaf if is_array(leaf) and not isinstance(leaf, np.generic) else jnp.asarray(leaf)


def words_of(leaf) -> np.ndarray:
    """The values of a leaf; of a key, the words that it is made of."""
    return np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)


def word_shape(leaf):
    """The type of a leaf in the text: of a key, that of its words."""
    return jax.eval_shape(jax.random.key_data, leaf) if is_key(leaf) else leaf


def path_name(name: str, path) -> str:
    """As JAX writes it into the text."""
    return name + re.sub(r"<flat index (\d+)>", r"\1", jax.tree_util.keystr(path))


def form_of(tree):
    """What two trees have in common if one can take the place of the other."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((tuple(leaf.shape), str(leaf.dtype)) for leaf in leaves)


def is_nnx_node(value) -> bool:
    """A module, an optimizer, a metric or a stream of keys of flax.nnx, or one of its variables."""
    nnx = loaded("flax.nnx")
    return nnx is not None and isinstance(value, (nnx.Pytree, nnx.Variable))


def is_module(value) -> bool:
    """A module of equinox: a tree in which functions and numbers are configuration, and arrays are what is trained."""
    equinox = loaded("equinox")
    return equinox is not None and isinstance(value, equinox.Module)


class Split:
    """A tree, as its arrays and the rest. Keeps no array."""

    def __init__(self, tree, numbers: bool = True):
        """`numbers`: Python numbers are arrays, but for those inside of a module of equinox."""

        def keep(leaf, numbers):
            return is_array(leaf) or (numbers and isinstance(leaf, NUMBERS))

        def kept_in(part):
            inside = numbers and not is_module(part)
            return jax.tree.map(lambda leaf: as_array(leaf) if keep(leaf, inside) else None, part)

        def rest_of(part):
            inside = numbers and not is_module(part)
            return jax.tree.map(lambda leaf: None if keep(leaf, inside) else leaf, part)

        self.arrays = jax.tree.map(kept_in, tree, is_leaf=is_module)
        self.rest = jax.tree.map(rest_of, tree, is_leaf=is_module)

    def take_arrays(self):
        """The tree with None in the place of what is no array."""
        arrays, self.arrays = self.arrays, None
        return arrays

    def join(self, arrays):
        """The tree with these arrays."""
        return jax.tree.map(lambda rest, array: array if rest is None else rest, self.rest, arrays,
                            is_leaf=lambda leaf: leaf is None)


class Modules:
    """Those of several values that are nodes of flax.nnx, split together, so that what they share is there once."""

    def __init__(self, values: dict):
        nnx = loaded("flax.nnx")
        self.names = [name for name, value in values.items() if self.holds_nodes(value)]
        self.types = {}  # of variables, by name of the value and path
        if self.names:
            self.graph, self.state = nnx.split([values[name] for name in self.names])
            for path, variable in nnx.to_flat_state(self.state):
                self.types[(self.names[path[0]], *path[1:])] = type(variable)

    @staticmethod
    def holds_nodes(value) -> bool:
        return any(is_nnx_node(leaf) for leaf in jax.tree.leaves(value, is_leaf=is_nnx_node))

    def take_arrays(self) -> dict:
        """The arrays of each value, a nested dictionary."""
        nnx = loaded("flax.nnx")
        found = nnx.to_pure_dict(self.state) if self.names else {}
        return {name: found.get(number, {}) for number, name in enumerate(self.names)}

    def join(self, arrays: dict) -> dict:
        """The values, made anew of these arrays."""
        nnx = loaded("flax.nnx")
        if not self.names:
            return {}

        def array_at(path):
            at = arrays[self.names[path[0]]]
            for key in path[1:]:
                at = at[key]
            return at

        flat = [(path, leaf.replace(array_at(path)) if isinstance(leaf, nnx.Variable) else array_at(path))
                for path, leaf in nnx.to_flat_state(self.state)]
        return dict(zip(self.names, nnx.merge(self.graph, nnx.from_flat_state(flat))))
