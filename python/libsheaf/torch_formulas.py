"""Functions of PyTorch as their formulas, while a step is recorded."""

from __future__ import annotations

import contextlib
import sys
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode


class Formulas(TorchFunctionMode):
    """Functions as their formulas, which each device then runs as it does best, where PyTorch would record the kernel of the device
    at hand, or strides. PyTorch's own functions call each other without modes, so their names are patched as well."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return FORMULAS.get(func, func)(*args, **(kwargs or {}))

    def __enter__(self):
        self.patches = contextlib.ExitStack()
        for function, formula in FORMULAS.items():
            self.patches.enter_context(mock.patch.object(torch.nn.functional, function.__name__, formula))
        return super().__enter__()

    def __exit__(self, *error):
        self.patches.close()
        return super().__exit__(*error)


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query @ key.transpose(-2, -1)).float() * scale
    if is_causal:
        rows, columns = (torch.arange(n, device=query.device) for n in scores.shape[-2:])
        attn_mask = rows[:, None] >= columns
    if attn_mask is not None:
        hidden = torch.finfo(scores.dtype).min
        scores = torch.where(attn_mask, scores, hidden) if attn_mask.dtype == torch.bool else scores + attn_mask
    weights = torch.softmax(scores, -1).to(value.dtype)
    return (torch.dropout(weights, dropout_p, True) if dropout_p else weights) @ value


@contextlib.contextmanager
def without_mkldnn():
    """Recurrent layers are then recorded as their formulas, too."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def average_pool(input, output_size):
    if output_size in (1, (1, 1), [1, 1]):
        return input.mean((-1, -2), keepdim=True)
    return torch.ops.aten._adaptive_avg_pool2d(input, [output_size] * 2 if isinstance(output_size, int) else [
        size if out is None else out for size, out in zip(input.shape[-2:], output_size)])


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    """From the logits alone: PyTorch keeps their logarithmic softmax for the backward pass as well."""
    is_old = size_average is not None or reduce is not None
    if target.is_floating_point() or weight is not None or is_old or label_smoothing or not input.ndim:
        return CROSS_ENTROPY(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
    input = input.float() if input.dtype in (torch.bfloat16, torch.float16) else input
    dim = min(1, input.ndim - 1)
    kept = target != ignore_index
    chosen = input.gather(dim, torch.where(kept, target, 0).unsqueeze(dim)).squeeze(dim)
    losses = torch.where(kept, input.logsumexp(dim) - chosen, 0)
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.sum() / kept.sum()


CROSS_ENTROPY = torch.nn.functional.cross_entropy
FORMULAS = {torch.nn.functional.scaled_dot_product_attention: attention, torch.nn.functional.adaptive_avg_pool2d: average_pool,
            CROSS_ENTROPY: cross_entropy}


@contextlib.contextmanager
def experts(capacity):
    """Experts of transformers as products of one batch: their own kernels have as many rows as the router sends. Each expert
    takes at most `capacity` times its even share of the tokens, in their order; None: all."""

    def forward(self, hidden, index, weights):
        tokens, choices = index.shape
        chosen = torch.nn.functional.one_hot(index, self.num_experts)
        if capacity is None:
            combine = (chosen * weights[..., None]).sum(1).t()[..., None]
            return (apply_experts(self, hidden.expand(self.num_experts, *hidden.shape)) * combine).sum(0).to(hidden.dtype)
        rows = -(-int(tokens * choices * capacity) // self.num_experts)
        flat = chosen.reshape(-1, self.num_experts)
        places = ((flat.cumsum(0) - 1) * flat).reshape(chosen.shape)
        slots = torch.nn.functional.one_hot(places.clamp(max=rows), rows + 1)[..., :rows] * chosen[..., None]
        combine = (slots * weights[..., None, None]).sum(1)
        given = torch.einsum("tec,tk->eck", slots.sum(1).to(hidden.dtype), hidden)
        return torch.einsum("tec,ecn->tn", combine.to(hidden.dtype), apply_experts(self, given))

    interface = getattr(sys.modules.get("transformers.integrations.moe"), "ExpertsInterface", None)
    with mock.patch.object(interface, "get_interface", lambda *_: forward) if interface else contextlib.nullcontext():
        yield


def apply_experts(self, rows):
    """[experts, rows, features] through each expert's two products."""

    def linear(name, rows):
        weight = getattr(self, name)
        y = rows @ (weight if self.is_transposed else weight.transpose(-2, -1))
        return y + getattr(self, f"{name}_bias")[:, None] if self.has_bias else y

    if self.has_gate:
        return linear("down_proj", self._apply_gate(linear("gate_up_proj", rows)))
    return linear("down_proj", self.act_fn(linear("up_proj", rows)))
