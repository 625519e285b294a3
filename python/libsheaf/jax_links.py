"""State and roles of a step, from the trees of its arguments and results.

A part of the results becomes a part of the arguments if it is the same tree of the same shapes, and only one can be
meant: by its name, its place, its donation, or because there is one alone. Where that leaves a doubt, nothing is said,
and the library finds links and roles from the flow of data.
"""

from __future__ import annotations

import re
from collections import defaultdict

import jax
import jax.numpy as jnp

from .jax_tree import form_of, is_key, is_module, loaded

FED = ("batch", "batches", "x", "y", "inputs", "labels", "targets", "images", "tokens", "ids", "data", "xs", "ys",
       "obs", "actions", "rewards")
KEYS = ("rng", "rngs", "key", "keys", "prng", "prng_key", "rng_key", "dropout_rng", "dropout_key")
PARAMS = ("params", "weights", "variables")


def one_level(tree):
    """The children of a tree with their keys; [] of a leaf."""
    found, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda at: at is not tree)
    return [] if len(found) == 1 and not found[0][0] else [(path[0], child) for path, child in found]


def word_of(key) -> str:
    """The name of a key of a dictionary, a field or an attribute; "" of a place in a list."""
    name = getattr(key, "key", getattr(key, "name", ""))
    return name if isinstance(name, str) else ""


class Node:
    """A part of the arguments or the results, and the leaves [first, last) in it."""

    def __init__(self, tree, words, first, is_top=False, index=None):
        self.tree, self.words, self.first, self.is_top, self.index = tree, words, first, is_top, index
        self.form = form_of(tree)
        self.last = first + len(self.form[1])

    def children(self):
        first = self.first
        for index, (key, child) in enumerate(one_level(self.tree)):
            node = Node(child, self.words + [word_of(key)], first, index=index)
            first = node.last
            yield node

    def word(self):
        return next((word for word in reversed(self.words) if word), "")

    def is_lone(self):
        return len(self.form[1]) == 1


class Links:
    """`next`: by leaf of the arguments, the leaf of the results that becomes it. `sure`: there is no doubt left."""

    def __init__(self, arguments: dict, results, donated: set[str]):
        self.next, self.sure = {}, True
        self.by_form = defaultdict(list)
        self.donated_leaves = set()
        first = 0
        for index, (name, tree) in enumerate(arguments.items()):
            node = Node(tree, [name], first, is_top=True, index=index)
            if name in donated:
                self.donated_leaves.update(range(node.first, node.last))
            self.collect(node)
            first = node.last
        self.placed = []
        self.match(Node(results, [], 0))
        rivals = [node for form in self.placed for node in self.by_form[form]]
        self.sure = self.sure and not any(self.is_free(node) and node.words[0] not in FED for node in rivals)

    def collect(self, node):
        if node.last > node.first:
            self.by_form[node.form].append(node)
            for child in node.children():
                self.collect(child)

    def is_free(self, node):
        return not any(leaf in self.next for leaf in range(node.first, node.last))

    def match(self, result):
        """Links the result as a whole, or its parts."""
        if result.last == result.first:
            return
        alike = self.by_form.get(result.form, [])
        candidates = [node for node in alike if self.is_free(node)]
        if alike and not candidates and not result.is_lone() and not result.word():
            self.sure = False
        chosen = self.choose(result, candidates) if candidates else None
        if chosen:
            for offset in range(result.last - result.first):
                self.next[chosen.first + offset] = result.first + offset
            return
        for child in result.children():
            self.match(child)

    def choose(self, result, candidates):
        donated = [node for node in candidates if node.first in self.donated_leaves]
        candidates = [node for node in candidates if node in donated or node.words[0] not in FED]
        named = [node for node in candidates if result.word() and node.word() == result.word()]
        if len(named) > 1 and result.words[-1:]:
            named = [node for node in named if node.words[-2:] == result.words[-2:]] or named
        named = [node for node in named if node in donated] or named
        if named and self.is_report(result) and named[0] not in donated:  # a rate, say, that is reported as it was given
            self.sure = False
            return None
        if named:
            return named[0]
        if not candidates:
            return None
        if self.is_report(result):  # the loss, or a number that is kept
            self.sure = False
            return None
        if len({node.first for node in donated}) == 1 and not result.word():
            return donated[0]
        if result.word() and not result.is_lone():  # it has another name: gradients, perhaps
            self.sure = False
            return None
        if len({node.first for node in candidates}) == 1 and (not result.is_lone() or self.is_counted(result)):
            return candidates[0]
        placed = [node for node in candidates if node.is_top and node.index == result.index and len(result.words) == 1]
        if placed and (not result.is_lone() or self.is_counted(result)):
            self.placed.append(result.form)
            return placed[0]
        self.sure = False
        return None

    @staticmethod
    def is_report(result):
        """A number that a step may report of its batch as well as keep."""
        shape, dtype = result.form[1][0]
        return result.is_lone() and shape == () and "float" in dtype

    @staticmethod
    def is_counted(result):
        """A key, or a count that has no name of its own."""
        return bool(re.match("key" if result.word() else "key|int|uint", result.form[1][0][1]))


def find_loss(results, links: Links) -> int | None:
    """The leaf that is called loss; else one with loss in its name; else the first floating scalar that is no state, where that is
    known."""
    linked = set(links.next.values()) if links.sure else set()
    found = []
    for number, (path, leaf) in enumerate(jax.tree.leaves_with_path(results)):
        name = jax.tree_util.keystr(path)
        if number not in linked and leaf.shape == () and jnp.issubdtype(leaf.dtype, jnp.floating):
            found.append((0 if re.search(r"\bloss\b", name) else 1 if "loss" in name else 2, number))
    rank, number = min(found, default=(2, None))
    return number if rank < 2 or links.sure else None


def nnx_role(kind) -> str | None:
    nnx = loaded("flax.nnx")
    if issubclass(kind, nnx.Param):
        return "param"
    if issubclass(kind, (nnx.RngKey,)):
        return "key"
    if issubclass(kind, nnx.Variable):
        return "opt_state"
    return None


def is_optimizer(part) -> bool:
    """The state of an optimizer of optax."""
    return isinstance(part, tuple) and type(part).__module__.startswith("optax")


def tree_roles(name: str, tree, links: Links, first: int, types: dict) -> list[str | None]:
    """A role for each leaf of an argument, None where its tree does not say it. `types`: of variables of flax.nnx."""
    nnx = loaded("flax.nnx")
    roles = []

    def is_known(part):
        return is_optimizer(part) or is_module(part) or (nnx is not None and isinstance(part, nnx.Variable))

    def role_of(path, leaf, part, number):
        words = {name} | {word_of(key) for key in path}
        linked = number in links.next
        kind = types.get((name, *(getattr(key, "key", None) for key in path)))
        if is_key(leaf) or (leaf.dtype == jnp.uint32 and leaf.shape == (2,) and words & set(KEYS)):
            return "key"
        if nnx is not None and isinstance(part, nnx.Variable):
            kind = type(part)
        if kind is not None:
            role = nnx_role(kind)
            return role if linked or role in ("param", "key") else None
        named = name in PARAMS or (path and word_of(path[0]) in PARAMS)
        if is_optimizer(part):
            return "opt_state" if linked and not named else None
        if is_module(part) and name not in FED and not linked:
            return "param"
        if named:
            return "param"
        return None if linked or name not in FED else "batch"

    for path, part in jax.tree.leaves_with_path(tree, is_leaf=is_known):
        for inner, leaf in jax.tree.leaves_with_path(part):
            roles.append(role_of(path + inner, leaf, part, first + len(roles)))
    return roles
