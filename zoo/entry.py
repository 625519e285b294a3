"""What an entry of the zoo is, the list that all entries register in, and where their numbers come from."""

import dataclasses
from typing import Callable

import jax.numpy as jnp
import numpy as np

ENTRIES = []
ZERO = ("zero1", "zero2", "zero3")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One training step.

    `build()` gives the step and its example arguments. The step returns the new values of the arguments that
    `state` names, in that order, and then its loss, or a dict of metrics that has a 'loss'; with `loss_first`, the
    loss in front of them.

    `roles` says what the arguments truly are: a role for every beginning of a name, where the longest one
    counts. `recipes` are the ways to split it that somebody who wrote this step would expect to apply.
    """

    name: str
    summary: str
    build: Callable
    roles: dict
    state: tuple
    recipes: tuple
    loss_first: bool = False
    donate: bool = False   # lowered as with donate_argnums: the text says which result becomes which argument
    sidecar: bool = False  # a file beside the step names the roles


def expand(recipes):
    words = recipes.split()
    return tuple(word for word in words if word != "zero") + (ZERO if "zero" in words else ())


def entry(name, roles, state=("params", "opt_state"), recipes="dp zero megatron 2d", summary=None, **options):
    """Registers the function that builds a step. Its docstring is the summary, unless one is given."""
    def register(build):
        text = summary or build.__doc__.strip().splitlines()[0]
        ENTRIES.append(Entry(name, text, build, roles, tuple(state), expand(recipes), **options))
        return build
    return register


class Draw:
    """Numbers for weights and batches: the same in every run."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape, scale=1.0):
        return jnp.asarray(scale * self.rng.standard_normal(shape), jnp.float32)

    def uniform(self, *shape):
        return jnp.asarray(self.rng.random(shape), jnp.float32)

    def integers(self, below, *shape):
        return jnp.asarray(self.rng.integers(0, below, shape), jnp.int32)

    def weight(self, *shape):
        """A matrix, or a stack of them, for values of about 1."""
        return self.normal(*shape, scale=shape[-2] ** -0.5)

    def dense(self, inputs, outputs):
        return {"kernel": self.weight(inputs, outputs), "bias": jnp.zeros(outputs)}
