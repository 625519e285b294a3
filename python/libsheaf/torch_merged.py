"""Dimensions that PyTorch merges for a product, kept apart.

A linear layer of a batch of sequences is recorded as a reshape from [batch, tokens, features] to [batch * tokens, features], a product
of two matrices, and a reshape back; attention as a product of batch * heads matrices. A split along tokens or heads, and a kernel for
attention, want the dimensions themselves. So a merged tensor is an array that has them apart, and which of them each of its own
dimensions consists of; products and sums are done on the arrays.
"""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
from jax import lax


@dataclasses.dataclass
class Merged:
    array: object
    groups: tuple[tuple[int, ...], ...]
    """for each dimension of the tensor those of the array, the major one first"""

    @classmethod
    def of(cls, array) -> Merged:
        return cls(array, tuple((d,) for d in range(array.ndim)))

    def in_order(self):
        """The array with its dimensions in the order of the tensor's."""
        order = [d for group in self.groups for d in group]
        return self.array if order == sorted(order) else lax.transpose(self.array, order)

    def plain(self):
        array = self.in_order()
        shape = tuple(math.prod(self.sizes(d)) for d in range(len(self.groups)))
        return array if array.shape == shape else lax.reshape(array, shape)

    def sizes(self, d) -> list[int]:
        return [self.array.shape[i] for i in self.groups[d]]


def coarser(sizes, shape):
    """The groups of successive sizes whose products are the shape, or None."""
    groups, at = [], 0
    for wanted in shape:
        first, product = at, 1
        while at < len(sizes) and (product < wanted or at == first):
            product *= sizes[at]
            at += 1
        if product != wanted:
            return None
        groups.append(tuple(range(first, at)))
    if any(size != 1 for size in sizes[at:]) or not groups:
        return None
    groups[-1] += tuple(range(at, len(sizes)))
    return tuple(groups)


def reshaped(out, form, x, shape):
    array = form(x).in_order()
    groups = coarser(array.shape, tuple(out.shape))
    return Merged(array, groups) if groups else Merged.of(array.reshape(tuple(out.shape)))


def permuted(out, form, x, dims):
    x = form(x)
    return Merged(x.array, tuple(x.groups[d] for d in dims))


def swapped(out, form, x, a, b):
    dims = list(range(len(out.shape)))
    if dims:
        dims[a], dims[b] = dims[b], dims[a]
    return permuted(out, form, x, dims)


def same(out, form, x, *_, **__):
    """Element by element."""
    return form(x)


def expanded(out, form, x, shape, implicit=False):
    return form(x) if tuple(out.shape) == tuple(x.meta["val"].shape) else None


def product(out, form, a, b, batch=()):
    """Over the last dimension of `a` and the one before the last of `b`."""
    a, b = form(a), form(b)
    rows, columns = len(batch), len(batch) + 1
    if a.sizes(columns) != b.sizes(rows) or any(a.sizes(d) != b.sizes(d) for d in batch):
        a, b = Merged.of(a.plain()), Merged.of(b.plain())
    outer = [tuple(i for d in batch for i in x.groups[d]) for x in (a, b)]
    array = lax.dot_general(a.array, b.array, ((a.groups[columns], b.groups[rows]), tuple(outer)))
    # The product has the dimensions of the batch, then those of each operand that are left, in the order that the arrays have.
    free = [sorted(a.groups[rows]), sorted(b.groups[columns])]
    place = {(0, i): at for at, i in enumerate(outer[0])}
    place |= {(x, i): len(outer[0]) + at for at, (x, i) in enumerate((x, i) for x in (0, 1) for i in free[x])}
    of_batch = [tuple(place[0, i] for i in a.groups[d]) for d in batch]
    return Merged(array, (*of_batch, tuple(place[0, i] for i in a.groups[rows]), tuple(place[1, i] for i in b.groups[columns])))


def with_bias(out, form, bias, a, b, beta=1, alpha=1):
    """Of a linear layer: the bias has the last dimension alone."""
    if beta != 1 or alpha != 1 or len(bias.meta["val"].shape) != 1:
        return None
    y, last = product(out, form, a, b), form(bias).array
    shape = [1] * y.array.ndim
    for i, size in zip(y.groups[1], y.sizes(1)):
        shape[i] = size
    return Merged(y.array + last.reshape(shape).astype(y.array.dtype), y.groups)


def summed(out, form, x, dim=None, keepdim=False, dtype=None):
    """Over some dimensions of a merged tensor, as the gradient of a bias is."""
    x = form(x)
    if dim is None or keepdim or not dim or all(len(group) == 1 for group in x.groups) or x.array.dtype not in (jnp.float32, jnp.float64):
        return None
    over = [d % len(x.groups) for d in dim]
    gone = [i for d in over for i in x.groups[d]]
    kept = [i for i in range(x.array.ndim) if i not in gone]
    return Merged(jnp.sum(x.array, gone), tuple(tuple(kept.index(i) for i in group) for d, group in enumerate(x.groups) if d not in over))


MERGED = {"view": reshaped, "_unsafe_view": reshaped, "reshape": reshaped, "permute": permuted, "transpose": swapped,
          "t": lambda out, form, x: swapped(out, form, x, 0, -1) if len(out.shape) == 2 else None,
          "clone": same, "alias": same, "detach": same, "expand": expanded, "mm": product,
          "bmm": lambda out, form, a, b: product(out, form, a, b, (0,)), "addmm": with_bias, "sum": summed}
"""by the name of an ATen op: its function (out, form of a node, *arguments), None where the op is not of this kind"""
