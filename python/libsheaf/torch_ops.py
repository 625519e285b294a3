"""ATen ops as functions of JAX: the table by which a recorded step is lowered.

The functions take the arrays and numbers of a node, and `out`: what PyTorch says of its results, tensors without data. An op
that works element by element says only what it does with numbers; types are promoted around it.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax

OPS = {}
"""by the name of an ATen op: its function (out, *arguments, **options)"""

HALF = (jnp.bfloat16, jnp.float16)


def dtype_of(dtype: torch.dtype):
    return jnp.dtype(str(dtype).removeprefix("torch."))


def is_array(value) -> bool:
    return isinstance(value, (jax.Array, np.ndarray))


def op(*names):
    def add(function):
        for name in names:
            OPS[name] = function
        return function

    return add


def common(values, dtype):
    """Operands of an op that works element by element, in the type that it computes in. PyTorch computes numbers and half-precision
    tensors together in single precision, and rounds the result."""
    mixed = dtype in HALF and any(not is_array(v) or v.dtype != dtype for v in values)
    work = jnp.float32 if mixed else dtype
    return [jnp.asarray(value, work) for value in values]


def elementwise(function, *names):
    """Operands and result have the result's type."""

    def apply(out, *values, **options):
        return function(*common(values, dtype_of(out.dtype)), **options)

    op(*names)(apply)


def compared(function, *names):
    """Operands have a type in common, and the result another."""

    def apply(out, *values):
        return function(*common(values, result_type(values)))

    op(*names)(apply)


def result_type(values):
    def stand_in(value):
        if not is_array(value):
            return value
        return torch.empty((1,) * value.ndim, dtype=getattr(torch, str(value.dtype)), device="meta")

    values = [stand_in(value) for value in values]
    dtype = torch.result_type(*values) if len(values) == 2 else torch.result_type(values[0], 0)
    return dtype_of(dtype)


for name in """neg exp exp2 expm1 log log1p log2 log10 sqrt sin cos tan tanh sinh cosh asin acos atan asinh acosh atanh floor
        ceil trunc sign square reciprocal positive""".split():
    elementwise({"neg": jnp.negative, "asin": jnp.arcsin, "acos": jnp.arccos, "atan": jnp.arctan, "asinh": jnp.arcsinh,
                 "acosh": jnp.arccosh, "atanh": jnp.arctanh}.get(name) or getattr(jnp, name), name)
op("abs")(lambda out, x: jnp.abs(x))
op("_conj", "_conj_physical", "conj_physical")(lambda out, x: jnp.conj(x))
op("real")(lambda out, x: jnp.real(x))
op("imag")(lambda out, x: jnp.imag(x))
op("angle")(lambda out, x: jnp.angle(x))
op("complex")(lambda out, a, b: lax.complex(a, b))
op("polar")(lambda out, size, angle: lax.complex(size * jnp.cos(angle), size * jnp.sin(angle)))
op("view_as_complex")(lambda out, x: lax.complex(x[..., 0], x[..., 1]))
op("view_as_real", "view_as_real_copy")(lambda out, x: jnp.stack([jnp.real(x), jnp.imag(x)], -1))
elementwise(lax.rsqrt, "rsqrt")
elementwise(lambda x, decimals=0: jnp.round(x, decimals), "round")
elementwise(lax.erf, "erf")
elementwise(lax.erfc, "erfc")
elementwise(lax.erf_inv, "erfinv")
elementwise(jax.scipy.special.gammaln, "lgamma")
elementwise(jax.scipy.special.digamma, "digamma")
elementwise(jax.nn.sigmoid, "sigmoid")
elementwise(lambda x: jnp.maximum(x, 0), "relu")
elementwise(lambda x: jnp.clip(x, 0, 6), "relu6")
elementwise(lambda x: x * jax.nn.sigmoid(x), "silu")
elementwise(lambda x, approximate="none": jax.nn.gelu(x, approximate=approximate == "tanh"), "gelu")
elementwise(lambda x, slope=0.01: jnp.where(x > 0, x, x * slope), "leaky_relu")
elementwise(lambda x, alpha=1.0, scale=1.0, input_scale=1.0:
            jnp.where(x > 0, x * scale, jnp.expm1(x * input_scale) * (alpha * scale)), "elu")
elementwise(lambda x, low=-1.0, high=1.0: jnp.clip(x, low, high), "hardtanh")
elementwise(lambda x: x - jnp.trunc(x), "frac")
elementwise(lambda a, b, alpha=1: a + b * alpha if not is_one(alpha) else a + b, "add")
elementwise(lambda a, b, alpha=1: a - b * alpha if not is_one(alpha) else a - b, "sub")
elementwise(lambda a, b, alpha=1: b - a * alpha if not is_one(alpha) else b - a, "rsub")
elementwise(lambda a, b: a * b, "mul")
elementwise(jnp.maximum, "maximum", "fmax")
elementwise(jnp.minimum, "minimum", "fmin")
elementwise(jnp.fmod, "fmod")
elementwise(jnp.remainder, "remainder")
elementwise(jnp.arctan2, "atan2")
elementwise(jnp.bitwise_and, "bitwise_and")
elementwise(jnp.bitwise_or, "bitwise_or")
elementwise(jnp.bitwise_xor, "bitwise_xor")
elementwise(jnp.bitwise_not, "bitwise_not")
elementwise(jnp.left_shift, "bitwise_left_shift", "__lshift__")
elementwise(jnp.right_shift, "bitwise_right_shift", "__rshift__")
elementwise(lambda a, b, c, value=1: a + b * c * value if not is_one(value) else a + b * c, "addcmul")
elementwise(lambda a, b, c, value=1: a + b / c * value if not is_one(value) else a + b / c, "addcdiv")
elementwise(lambda a, b, weight: a + (b - a) * weight, "lerp")
elementwise(lambda gradient, x, width: jnp.where(jnp.abs(x) > width, gradient, 0), "softshrink_backward")
compared(jnp.equal, "eq")
compared(jnp.not_equal, "ne")
compared(jnp.less, "lt")
compared(jnp.less_equal, "le")
compared(jnp.greater, "gt")
compared(jnp.greater_equal, "ge")
compared(jnp.logical_and, "logical_and")
compared(jnp.logical_or, "logical_or")
compared(jnp.logical_xor, "logical_xor")
compared(jnp.logical_not, "logical_not")
compared(jnp.isnan, "isnan")
compared(jnp.isinf, "isinf")
compared(jnp.isfinite, "isfinite")
compared(jnp.sign, "sgn")


def is_one(value) -> bool:
    return isinstance(value, (int, float)) and value == 1


@op("div", "true_divide")
def divide(out, a, b, rounding_mode=None):
    a, b = common((a, b), dtype_of(out.dtype))
    if rounding_mode == "floor":
        return jnp.floor_divide(a, b)
    if rounding_mode == "trunc":
        return lax.div(*jnp.broadcast_arrays(a, b)) if jnp.issubdtype(a.dtype, jnp.integer) else jnp.trunc(a / b)
    return a / b


op("floor_divide")(lambda out, a, b: divide(out, a, b, "floor"))


@op("pow")
def power(out, a, b):
    if not is_array(b):
        a, = common((a,), dtype_of(out.dtype))
        if b in (-1, 0.5, -0.5):
            return {-1: jnp.reciprocal, 0.5: jnp.sqrt, -0.5: lax.rsqrt}[b](a)
        return lax.integer_pow(a, int(b)) if float(b).is_integer() and abs(b) < 32 else jnp.power(a, jnp.asarray(b, a.dtype))
    return jnp.power(*common((a, b), dtype_of(out.dtype)))


@op("clamp", "clamp_min", "clamp_max")
def clamp(out, x, min=None, max=None):
    values = [value for value in (x, min, max) if value is not None]
    x, *_ = values = common(values, dtype_of(out.dtype))
    x = x if min is None else jnp.maximum(x, values[1])
    return x if max is None else jnp.minimum(x, values[-1])


OPS["clamp_max"] = lambda out, x, max: clamp(out, x, None, max)


@op("where")
def where(out, condition, a, b):
    return jnp.where(condition, *common((a, b), dtype_of(out.dtype)))


@op("masked_fill")
def masked_fill(out, x, mask, value):
    return jnp.where(mask, jnp.asarray(value, x.dtype), x)


# Reductions. Half precision is summed in single precision, as PyTorch does.

def wide(x, out=None):
    return x.astype(jnp.float32) if x.dtype in HALF else x


def axes(dim, x):
    """None or [] are all dimensions."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return tuple(range(x.ndim))
    return tuple(d % max(x.ndim, 1) for d in ([dim] if isinstance(dim, int) else dim)) if x.ndim else ()


def typed(x, out):
    return x.astype(dtype_of(out.dtype)) if x.dtype == bool or jnp.issubdtype(x.dtype, jnp.integer) else wide(x)


@op("sum")
def sum_(out, x, dim=None, keepdim=False, dtype=None):
    return jnp.sum(typed(x, out), axes(dim, x), keepdims=keepdim)


@op("mean")
def mean(out, x, dim=None, keepdim=False, dtype=None):
    return jnp.mean(typed(x, out), axes(dim, x), keepdims=keepdim)


@op("prod")
def prod(out, x, dim=None, keepdim=False, dtype=None):
    return jnp.prod(typed(x, out), axes(dim, x), keepdims=keepdim)


op("amax")(lambda out, x, dim=None, keepdim=False: jnp.max(x, axes(dim, x), keepdims=keepdim))
op("amin")(lambda out, x, dim=None, keepdim=False: jnp.min(x, axes(dim, x), keepdims=keepdim))
op("any")(lambda out, x, dim=None, keepdim=False: jnp.any(x != 0, axes(dim, x), keepdims=keepdim))
op("all")(lambda out, x, dim=None, keepdim=False: jnp.all(x != 0, axes(dim, x), keepdims=keepdim))


def extreme(values, places):
    def apply(out, x, dim=None, keepdim=False):
        if dim is None:
            return values(x)
        return values(x, dim, keepdims=keepdim), places(x, dim, keepdims=keepdim)

    return apply


op("max")(extreme(jnp.max, jnp.argmax))
op("min")(extreme(jnp.min, jnp.argmin))


def place(function):
    def apply(out, x, dim=None, keepdim=False):
        if dim is None:
            return function(x.reshape(-1)).reshape(out.shape)
        return function(x, dim, keepdims=keepdim)

    return apply


op("argmax")(place(jnp.argmax))
op("argmin")(place(jnp.argmin))


@op("var")
def variance(out, x, dim=None, correction=None, keepdim=False):
    return jnp.var(wide(x), axes(dim, x), ddof=1 if correction is None else correction, keepdims=keepdim)


@op("var_mean")
def variance_and_mean(out, x, dim=None, correction=None, keepdim=False):
    return variance(None, x, dim, correction, keepdim), jnp.mean(wide(x), axes(dim, x), keepdims=keepdim)


@op("logsumexp")
def logsumexp(out, x, dim, keepdim=False):
    return jax.scipy.special.logsumexp(wide(x), axes(dim, x), keepdims=keepdim)


@op("linalg_vector_norm")
def vector_norm(out, x, ord=2, dim=None, keepdim=False, dtype=None):
    x, at = wide(x), axes(dim, x)
    if ord == 2:
        return jnp.sqrt(jnp.sum(x * x, at, keepdims=keepdim))
    if ord in (math.inf, -math.inf):
        return (jnp.max if ord > 0 else jnp.min)(jnp.abs(x), at, keepdims=keepdim)
    if ord == 0:
        return jnp.sum((x != 0).astype(x.dtype), at, keepdims=keepdim)
    return jnp.sum(jnp.abs(x) ** ord, at, keepdims=keepdim) ** (1 / ord)


op("cumsum")(lambda out, x, dim, dtype=None: jnp.cumsum(typed(x, out).reshape(x.shape or (1,)), dim).reshape(x.shape))
op("cumprod")(lambda out, x, dim, dtype=None: jnp.cumprod(typed(x, out), dim))


@op("sort")
def sort(out, x, dim=-1, descending=False, stable=False):
    dim = dim % x.ndim
    indices = lax.broadcasted_iota(jnp.int64, x.shape, dim)
    if not descending:
        return lax.sort((x, indices), dimension=dim, num_keys=1, is_stable=True)
    order = jnp.argsort(x, dim, stable=True, descending=True)
    return jnp.take_along_axis(x, order, dim), order


@op("topk")
def topk(out, x, k, dim=-1, largest=True, sorted=True):
    dim = dim % x.ndim
    x = jnp.moveaxis(x, dim, -1)
    values, indices = lax.top_k(x if largest else -x, k)
    return jnp.moveaxis(values if largest else -values, -1, dim), jnp.moveaxis(indices, -1, dim)


# Softmax and norms.

op("_softmax", "_safe_softmax")(lambda out, x, dim, half_to_float=False: jax.nn.softmax(wide(x), dim))
op("_log_softmax")(lambda out, x, dim, half_to_float=False: jax.nn.log_softmax(wide(x), dim))


@op("native_layer_norm")
def layer_norm(out, x, shape, weight, bias, eps):
    at = tuple(range(x.ndim - len(shape), x.ndim))
    x = wide(x)
    mean = jnp.mean(x, at, keepdims=True)
    scale = lax.rsqrt(jnp.mean((x - mean) ** 2, at, keepdims=True) + eps)
    y = (x - mean) * scale
    y = y if weight is None else y * wide(weight)
    return y if bias is None else y + wide(bias), mean, scale


@op("native_group_norm")
def group_norm(out, x, weight, bias, n, c, hw, groups, eps):
    x = wide(x)
    grouped = x.reshape(n, groups, -1)
    mean = jnp.mean(grouped, -1)
    scale = lax.rsqrt(jnp.mean((grouped - mean[..., None]) ** 2, -1) + eps)
    y = ((grouped - mean[..., None]) * scale[..., None]).reshape(x.shape)
    along = (1, c) + (1,) * (x.ndim - 2)
    y = y if weight is None else y * wide(weight).reshape(along)
    return y if bias is None else y + wide(bias).reshape(along), mean, scale


@op("_native_batch_norm_legit_functional", "_native_batch_norm_legit")
def batch_norm(out, x, weight, bias, mean, variance, training, momentum, eps):
    dtype, x = x.dtype, wide(x)
    at, along = (0, *range(2, x.ndim)), (1, -1) + (1,) * (x.ndim - 2)
    if training:
        count = x.size // x.shape[1]
        m = jnp.mean(x, at)
        v = jnp.mean((x - m.reshape(along)) ** 2, at)
        after = (None if mean is None else mean + (m - mean) * momentum,
                 None if variance is None else variance + (v * (count / max(count - 1, 1)) - variance) * momentum)
    else:
        m, v, after = wide(mean), wide(variance), (mean, variance)
    scale = lax.rsqrt(v + eps)
    y = (x - m.reshape(along)) * scale.reshape(along)
    y = y if weight is None else y * wide(weight).reshape(along)
    y = y if bias is None else y + wide(bias).reshape(along)
    saved = (m, scale) if training else (jnp.zeros(0, x.dtype),) * 2
    return y.astype(dtype), *saved, *after


OPS["_native_batch_norm_legit.no_stats"] = lambda out, x, weight, bias, training, momentum, eps: batch_norm(
    out, x, weight, bias, None, None, True, momentum, eps)[:3]


# Shapes.

op("view", "_unsafe_view", "reshape", "view_copy", "_reshape_copy")(lambda out, x, shape: x.reshape(tuple(out.shape)))
op("permute", "permute_copy")(lambda out, x, dims: lax.transpose(x, [d % x.ndim for d in dims]))
op("t", "t_copy")(lambda out, x: x.T)
op("transpose", "transpose_copy")(lambda out, x, a, b: jnp.swapaxes(x, a, b) if x.ndim else x)
op("expand", "expand_copy")(lambda out, x, shape, implicit=False: jnp.broadcast_to(x, tuple(out.shape)))
op("unsqueeze", "unsqueeze_copy")(lambda out, x, dim: x.reshape(tuple(out.shape)))
op("squeeze", "squeeze_copy")(lambda out, x, dim=None: x.reshape(tuple(out.shape)))
op("clone", "alias", "detach", "lift_fresh_copy", "lift_fresh", "lift", "contiguous", "alias_copy", "detach_copy", "resolve_conj",
   "resolve_neg")(
    lambda out, x, memory_format=None: x)
op("_to_copy", "to", "prims::convert_element_type", "convert_element_type")(
    lambda out, x, *_, **__: x != 0 if out.dtype == torch.bool else x.astype(dtype_of(out.dtype)))
op("copy")(lambda out, x, y, non_blocking=False: jnp.broadcast_to(y.astype(x.dtype), x.shape))
op("cat")(lambda out, tensors, dim=0: lax.concatenate(
    [x.astype(dtype_of(out.dtype)) for x in tensors if x.shape != (0,)], dim % len(out.shape)))
op("stack")(lambda out, tensors, dim=0: jnp.stack(tensors, dim))
op("flip")(lambda out, x, dims: jnp.flip(x, dims))
op("roll")(lambda out, x, shifts, dims=(): jnp.roll(x, shifts, dims or None))
op("repeat")(lambda out, x, repeats: jnp.tile(x, repeats))
op("tril")(lambda out, x, k=0: jnp.tril(x, k))
op("triu")(lambda out, x, k=0: jnp.triu(x, k))
op("diagonal", "diagonal_copy")(lambda out, x, offset=0, dim1=0, dim2=1: jnp.diagonal(x, offset, dim1, dim2))
op("select", "select_copy")(lambda out, x, dim, index: lax.index_in_dim(x, index, dim, keepdims=False))
op("unbind", "unbind_copy")(lambda out, x, dim=0: [lax.index_in_dim(x, i, dim, keepdims=False) for i in range(x.shape[dim])])


def part_of(x, dim, start, end, step):
    size = x.shape[dim]
    start, end = (0 if start is None else start), (size if end is None else end)
    start, end = (min(max(at + size if at < 0 else at, 0), size) for at in (start, end))
    return dim % x.ndim, start, max(start, end), step


@op("slice", "slice_copy")
def slice_(out, x, dim=0, start=None, end=None, step=1):
    dim, start, end, step = part_of(x, dim, start, end, step)
    return lax.slice_in_dim(x, start, end, step, dim)


@op("slice_scatter")
def slice_scatter(out, x, source, dim=0, start=None, end=None, step=1):
    dim, start, end, step = part_of(x, dim, start, end, step)
    if (start, end, step) == (0, x.shape[dim], 1):
        return source.astype(x.dtype)
    return x.at[(slice(None),) * dim + (slice(start, end, step),)].set(source.astype(x.dtype))


@op("select_scatter")
def select_scatter(out, x, source, dim, index):
    return x.at[(slice(None),) * (dim % x.ndim) + (index,)].set(source.astype(x.dtype))


@op("split", "split_copy")
def split(out, x, size, dim=0):
    sizes = [part.shape[dim] for part in out]
    return jnp.split(x, np.cumsum(sizes)[:-1], dim)


OPS["split_with_sizes"] = OPS["split_with_sizes_copy"] = OPS["chunk"] = split


def places_of(shape, stride, offset):
    """Of a view with strides, in the flat tensor."""
    places = np.full((1,) * len(shape), offset or 0)
    for d, (size, step) in enumerate(zip(shape, stride)):
        places = places + (np.arange(size) * step).reshape((-1,) + (1,) * (len(shape) - d - 1))
    return places.reshape(-1)


@op("as_strided", "as_strided_copy")
def as_strided(out, x, shape, stride, offset=0):
    return x.reshape(-1)[places_of(shape, stride, offset)].reshape(tuple(shape))


@op("as_strided_scatter")
def as_strided_scatter(out, x, source, shape, stride, offset=0):
    return x.reshape(-1).at[places_of(shape, stride, offset)].set(source.reshape(-1)).reshape(x.shape)


@op("diagonal_scatter")
def diagonal_scatter(out, x, source, offset=0, dim1=0, dim2=1):
    places = np.diagonal(np.arange(x.size).reshape(x.shape), offset, dim1, dim2)
    return x.reshape(-1).at[places.reshape(-1)].set(source.reshape(-1)).reshape(x.shape)


@op("constant_pad_nd")
def constant_pad(out, x, pad, value=0):
    config = [(0, 0, 0)] * x.ndim
    for i in range(len(pad) // 2):
        config[x.ndim - 1 - i] = (pad[2 * i], pad[2 * i + 1], 0)
    return lax.pad(x, jnp.asarray(value, x.dtype), config)


@op("unfold", "unfold_copy")
def unfold(out, x, dim, size, step):
    dim = dim % max(x.ndim, 1)
    places = np.arange(0, x.shape[dim] - size + 1, step)[:, None] + np.arange(size)
    taken = jnp.take(x, jnp.asarray(places.reshape(-1)), dim, mode="clip")
    return jnp.moveaxis(taken.reshape(x.shape[:dim] + places.shape + x.shape[dim + 1:]), dim + 1, -1)


# New tensors. What PyTorch leaves empty is zero here.

op("empty", "empty_like", "new_empty", "empty_permuted", "empty_strided", "new_empty_strided", "zeros", "zeros_like", "new_zeros")(
    lambda out, *_, **__: jnp.zeros(tuple(out.shape), dtype_of(out.dtype)))
op("ones", "ones_like", "new_ones")(lambda out, *_, **__: jnp.ones(tuple(out.shape), dtype_of(out.dtype)))
op("full", "full_like", "new_full")(lambda out, like, *rest, **__: jnp.full(tuple(out.shape), rest[-1], dtype_of(out.dtype)))
op("scalar_tensor")(lambda out, value, **_: jnp.asarray(value, dtype_of(out.dtype)))
op("arange", "prims::iota")(lambda out, *bounds, **_: arange(out, *bounds))
op("eye")(lambda out, n, m=None, **_: jnp.eye(n, m, dtype=dtype_of(out.dtype)))
op("linspace")(lambda out, start, end, steps, **_: jnp.linspace(start, end, steps, dtype=dtype_of(out.dtype)))


def arange(out, *bounds):
    start, step = (0, 1) if len(bounds) == 1 else (bounds[0], bounds[2] if len(bounds) > 2 else 1)
    dtype = dtype_of(out.dtype)
    counts = lax.iota(dtype if jnp.issubdtype(dtype, jnp.integer) else jnp.int32, out.shape[0]).astype(dtype)
    counts = counts if step == 1 else counts * jnp.asarray(step, dtype)
    return counts if start == 0 else counts + jnp.asarray(start, dtype)


OPS["iota"] = lambda out, length, start=0, step=1, **_: arange(out, start, start + length * step, step)


# Indices.

def wrapped(index, size):
    """PyTorch counts negative indices from the end."""
    return jnp.where(index < 0, index + size, index)


op("embedding")(lambda out, table, index, *_, **__: jnp.take(table, index, 0, mode="clip"))
op("index_select")(lambda out, x, dim, index: jnp.take(x, index, dim, mode="clip"))


def indices_of(x, indices):
    """For `.at`: None is the whole dimension."""
    indices = list(indices) + [None] * (x.ndim - len(indices))
    if any(index is not None and index.dtype == bool for index in indices):
        raise NotImplementedError("an index of booleans has as many results as there are true ones")
    return tuple(slice(None) if index is None else wrapped(index, x.shape[d]) for d, index in enumerate(indices))


@op("index", "_unsafe_index")
def index_(out, x, indices):
    return x.at[indices_of(x, indices)].get(mode="clip")


@op("index_put", "_unsafe_index_put")
def index_put(out, x, indices, values, accumulate=False, unsafe=False):
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype == bool:
        mask = indices[0].reshape(indices[0].shape + (1,) * (x.ndim - indices[0].ndim))
        if values.size == 1:
            return jnp.where(mask, values.reshape(()) + x if accumulate else values.reshape(()), x)
    at = x.at[indices_of(x, indices)]
    return (at.add if accumulate else at.set)(values.astype(x.dtype), mode="drop")


@op("gather")
def gather(out, x, dim, index, sparse_grad=False):
    if not x.ndim:
        return jnp.broadcast_to(x, index.shape)
    x = x[tuple(slice(0, n) if d != dim % x.ndim else slice(None) for d, n in enumerate(index.shape))]
    return jnp.take_along_axis(x, index, dim, mode="clip")


def positions(x, dim, index):
    grid = [lax.broadcasted_iota(index.dtype, index.shape, d) for d in range(x.ndim)]
    grid[dim % x.ndim] = index
    return tuple(grid)


def few_of_each_row(x, dim, index) -> bool:
    return index.shape[dim] <= 8 and index.shape[:dim] + index.shape[dim + 1:] == x.shape[:dim] + x.shape[dim + 1:]


def chosen(x, dim, index):
    """For each place in a row of the index: where it points to in the row of `x`, and the place. Choices can be split along all
    dimensions, which a scatter by computed indices cannot."""
    along = lax.broadcasted_iota(index.dtype, x.shape, dim)
    for k in range(index.shape[dim]):
        yield along == lax.slice_in_dim(index, k, k + 1, axis=dim), k


@op("scatter")
def scatter(out, x, dim, index, source, reduce=None):
    dim = dim % x.ndim
    if reduce:
        return scatter_reduce(out, x, dim, index, source, {"add": "sum", "multiply": "prod"}[reduce])
    source = jnp.asarray(source, x.dtype)
    if source.ndim:
        source = source[tuple(slice(0, n) for n in index.shape)]
    if few_of_each_row(x, dim, index):
        for here, k in chosen(x, dim, index):
            x = jnp.where(here, lax.slice_in_dim(source, k, k + 1, axis=dim) if source.ndim else source, x)
        return x
    return x.at[positions(x, dim, index)].set(source, mode="drop")


@op("scatter_add")
def scatter_add(out, x, dim, index, source):
    dim, source = dim % x.ndim, source[tuple(slice(0, n) for n in index.shape)].astype(x.dtype)
    if few_of_each_row(x, dim, index):
        for here, k in chosen(x, dim, index):
            x = x + jnp.where(here, lax.slice_in_dim(source, k, k + 1, axis=dim), jnp.zeros((), x.dtype))
        return x
    return x.at[positions(x, dim, index)].add(source, mode="drop")


@op("scatter_reduce")
def scatter_reduce(out, x, dim, index, source, reduce, include_self=True):
    if not include_self:
        raise NotImplementedError("include_self=False")
    at = x.at[positions(x, dim, index)]
    how = {"sum": at.add, "prod": at.multiply, "amax": at.max, "amin": at.min}.get(reduce)
    if how is None:
        raise NotImplementedError(f"reduce={reduce!r}")
    return how(jnp.broadcast_to(source, index.shape).astype(x.dtype), mode="drop")


op("index_add")(lambda out, x, dim, index, source, alpha=1: x.at[(slice(None),) * (dim % x.ndim) + (index,)].add(
    source.astype(x.dtype) * alpha, mode="drop"))


# Products.

op("mm", "bmm")(lambda out, a, b, **_: a @ b)
op("mv", "dot", "vdot")(lambda out, a, b: a @ b)


@op("addmm", "baddbmm")
def addmm(out, x, a, b, beta=1, alpha=1):
    product = a @ b
    product = product if is_one(alpha) else product * jnp.asarray(alpha, product.dtype)
    return product if beta == 0 else product + (x if is_one(beta) else x * jnp.asarray(beta, x.dtype))


# Convolutions and windows.

def convolve(x, weight, stride, padding, dilation, transposed, output_padding, groups):
    n = x.ndim - 2
    stride, padding, dilation = ([v[0]] * n if len(v) == 1 else list(v) for v in (stride, padding, dilation))
    letters = "DHW"[3 - n:]
    if not transposed:
        return lax.conv_general_dilated(x, weight, stride, [(p, p) for p in padding], rhs_dilation=dilation, feature_group_count=groups,
                                        dimension_numbers=("NC" + letters, "OI" + letters, "NC" + letters))
    # [inputs, outputs of a group, ...]: the weight's gradient form, with the kernel reversed and groups brought outside.
    i, o = weight.shape[:2]
    weight = jnp.flip(weight, range(2, 2 + n)).reshape(groups, i // groups, o, *weight.shape[2:])
    weight = jnp.swapaxes(weight, 1, 2).reshape(groups * o, i // groups, *weight.shape[3:])
    pads = [(d * (k - 1) - p, d * (k - 1) - p + extra)
            for d, k, p, extra in zip(dilation, weight.shape[2:], padding, output_padding)]
    return lax.conv_general_dilated(x, weight, [1] * n, pads, lhs_dilation=stride, rhs_dilation=dilation, feature_group_count=groups,
                                    dimension_numbers=("NC" + letters, "OI" + letters, "NC" + letters))


@op("convolution")
def convolution(out, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    y = convolve(x, weight, stride, padding, dilation, transposed, output_padding, groups)
    return y if bias is None else y + bias.reshape((1, -1) + (1,) * (x.ndim - 2))


@op("convolution_backward")
def convolution_backward(out, gradient, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask):
    def run(x, weight):
        return convolve(x, weight, stride, padding, dilation, transposed, output_padding, groups)

    of_x = jax.vjp(lambda x: run(x, weight), x)[1](gradient)[0] if mask[0] else None
    of_weight = jax.vjp(lambda weight: run(x, weight), weight)[1](gradient)[0] if mask[1] else None
    return of_x, of_weight, jnp.sum(wide(gradient), (0, *range(2, gradient.ndim))).astype(gradient.dtype) if mask[2] else None


def each(value, n):
    value = [value] if isinstance(value, int) else list(value)
    return value * n if len(value) == 1 else value


def pool_window(x, n, kernel, stride, padding, ceil_mode, out_shape, dilation=1):
    kernel, padding, dilation = each(kernel, n), each(padding, n), each(dilation, n)
    stride = each(stride, n) if stride != [] and stride is not None else kernel
    high = [(o - 1) * s + d * (k - 1) + 1 - size - p for o, s, d, k, size, p in
            zip(out_shape[-n:], stride, dilation, kernel, x.shape[-n:], padding)]
    lead = x.ndim - n
    return dict(window_dimensions=(1,) * lead + tuple(kernel), window_strides=(1,) * lead + tuple(stride),
                padding=[(0, 0)] * lead + [(p, h if ceil_mode else min(max(h, -p), p)) for p, h in zip(padding, high)],
                window_dilation=(1,) * lead + tuple(dilation))


def max_pool(x, window):
    low = -np.inf if jnp.issubdtype(x.dtype, jnp.floating) else np.iinfo(x.dtype).min
    return lax.reduce_window(x, np.array(low, x.dtype), lax.max, **window)


def max_pool_nd(n):
    def forward(out, x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
        window = pool_window(x, n, kernel, stride, padding, ceil_mode, out[0].shape, dilation)
        return max_pool(x, window), None

    def backward(out, gradient, x, kernel, stride, padding, dilation, ceil_mode, places):
        window = pool_window(x, n, kernel, stride, padding, ceil_mode, gradient.shape, dilation)
        return jax.vjp(lambda x: max_pool(x, window), x)[1](gradient)[0]

    op(f"max_pool{n}d_with_indices")(forward)
    op(f"max_pool{n}d_with_indices_backward")(backward)


def average_pool(x, window, count_padding, divisor, n):
    total = lax.reduce_window(wide(x), np.zeros((), wide(x).dtype), lax.add, **window)
    if divisor:
        return (total / divisor).astype(x.dtype)
    if count_padding or all(p == (0, 0) for p in window["padding"]):
        return (total / math.prod(window["window_dimensions"])).astype(x.dtype)
    ones = np.ones((1,) * (x.ndim - n) + x.shape[-n:], np.float32)
    return (total / lax.reduce_window(jnp.asarray(ones), np.float32(0), lax.add, **window)).astype(x.dtype)


def average_pool_nd(n):
    def run(shape, x, kernel, stride, padding, ceil_mode, count, divisor):
        window = pool_window(x, n, kernel, stride, padding, ceil_mode, shape)
        return average_pool(x, window, count and not ceil_mode, divisor, n)

    def forward(out, x, kernel, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        return run(out.shape, x, kernel, list(stride), padding, ceil_mode, count_include_pad, divisor_override)

    def backward(out, gradient, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
        return jax.vjp(lambda x: run(gradient.shape, x, kernel, list(stride), padding, ceil_mode, count_include_pad, divisor_override),
                       x)[1](gradient)[0]

    op(f"avg_pool{n}d")(forward)
    op(f"avg_pool{n}d_backward")(backward)


for n in (1, 2, 3):
    max_pool_nd(n)
    average_pool_nd(n)


def adaptive_matrix(size, out):
    """[out, size]: each row averages the part of the dimension that falls to it."""
    matrix = np.zeros((out, size), np.float32)
    for i in range(out):
        first, last = i * size // out, -((-(i + 1) * size) // out)
        matrix[i, first:last] = 1 / (last - first)
    return jnp.asarray(matrix)


def adaptive_average(x, shape):
    n = len(shape)
    if all(size % out == 0 for size, out in zip(x.shape[-n:], shape)):
        parts = [part for size, out in zip(x.shape[-n:], shape) for part in (out, size // out)]
        split = wide(x).reshape(x.shape[:-n] + tuple(parts))
        return jnp.mean(split, [x.ndim - n + 2 * i + 1 for i in range(n)]).astype(x.dtype)
    y = wide(x)
    for d, out in enumerate(shape):
        axis = x.ndim - n + d
        y = jnp.moveaxis(jnp.tensordot(y, adaptive_matrix(x.shape[axis], out), ((axis,), (1,))), -1, axis)
    return y.astype(x.dtype)


op("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")(lambda out, x, shape: adaptive_average(x, shape))
op("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")(
    lambda out, gradient, x: jax.vjp(lambda x: adaptive_average(x, gradient.shape[2 - x.ndim:]), x)[1](gradient)[0])


def with_backward(name, function):
    """An op and the one that PyTorch has for its gradient, whose arguments are the gradient, perhaps the operand, and the options."""

    def forward(out, x, *options):
        return function(x, tuple(out.shape), *options)

    def backward(out, gradient, *options):
        options = options[1:] if is_array(options[0]) else options
        shape = tuple(gradient.shape)
        return jax.vjp(lambda x: function(x, shape, *options), jnp.zeros(tuple(out.shape), gradient.dtype))[1](gradient)[0]

    op(name)(forward)
    op(f"{name}_backward")(backward)


def padded(mode):
    def pad(x, shape, sizes):
        widths = [(0, 0)] * x.ndim
        for i in range(len(sizes) // 2):
            widths[x.ndim - 1 - i] = (sizes[2 * i], sizes[2 * i + 1])
        return jnp.pad(x, widths, mode)

    return pad


def nearest(x, shape, *_):
    for d in range(2, x.ndim):
        size, wanted = x.shape[d], shape[d]
        if wanted % size == 0:
            x = jnp.repeat(x, wanted // size, d)
        else:
            x = jnp.take(x, jnp.asarray(np.arange(wanted) * size // wanted), d, mode="clip")
    return x


def linear_matrix(size, wanted, corners, scale):
    """[wanted, size]: the weights of linear interpolation."""
    at = np.arange(wanted)
    if corners:
        at = at * ((size - 1) / max(wanted - 1, 1))
    else:
        at = np.maximum((at + 0.5) * (1 / scale if scale else size / wanted) - 0.5, 0)
    low = np.minimum(np.floor(at).astype(int), size - 1)
    matrix, part = np.zeros((wanted, size), np.float32), at - low
    np.add.at(matrix, (np.arange(wanted), low), 1 - part)
    np.add.at(matrix, (np.arange(wanted), np.minimum(low + 1, size - 1)), part)
    return matrix


def linear(x, shape, size, *options):
    *_, corners = [option for option in options if isinstance(option, bool)]
    scales = [option for option in options if option is None or isinstance(option, float)]
    y = wide(x)
    for d in range(2, x.ndim):
        matrix = jnp.asarray(linear_matrix(x.shape[d], shape[d], corners, scales[d - 2] if scales else None), y.dtype)
        y = jnp.moveaxis(jnp.tensordot(y, matrix, ((d,), (1,))), -1, d)
    return y.astype(x.dtype)


for d, kind in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
    with_backward(f"upsample_nearest{d}d", nearest)
    with_backward(f"upsample_{kind}{d}d", linear)
    with_backward(f"replication_pad{d}d", padded("edge"))
    with_backward(f"reflection_pad{d}d", padded("reflect"))


def adaptive_max(x, shape):
    n = len(shape)
    cells = []
    for place in np.ndindex(*shape):
        box = tuple(slice(i * size // out, -((-(i + 1) * size) // out)) for i, size, out in zip(place, x.shape[-n:], shape))
        cells.append(jnp.max(x[(..., *box)], tuple(range(x.ndim - n, x.ndim))))
    return jnp.stack(cells, -1).reshape(x.shape[:-n] + tuple(shape))


op("adaptive_max_pool2d", "adaptive_max_pool3d")(lambda out, x, shape: (adaptive_max(x, shape), None))
op("adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward")(
    lambda out, gradient, x, places: jax.vjp(lambda x: adaptive_max(x, gradient.shape[2 - x.ndim:]), x)[1](gradient)[0])


# Fourier transforms. `normalization`: 0: none, 1: by the root of the size, 2: by the size.

def scaled(x, sizes, normalization):
    n = math.prod(sizes)
    return x if normalization == 0 else x / (n if normalization == 2 else math.sqrt(n))


@op("_fft_r2c")
def fft_of_real(out, x, dim, normalization, onesided):
    sizes = [x.shape[d] for d in dim]
    y = jnp.fft.fftn(jnp.fft.rfft(x, axis=dim[-1]), axes=dim[:-1]) if onesided and len(dim) > 1 else (
        jnp.fft.rfft(x, axis=dim[-1]) if onesided else jnp.fft.fftn(x, axes=dim))
    return scaled(y, sizes, normalization)


@op("_fft_c2c")
def fft(out, x, dim, normalization, forward):
    sizes = [x.shape[d] for d in dim]
    return scaled(jnp.fft.fftn(x, axes=dim) if forward else jnp.fft.ifftn(x, axes=dim) * math.prod(sizes), sizes, normalization)


@op("_fft_c2r")
def fft_to_real(out, x, dim, normalization, last):
    sizes = [out.shape[d] for d in dim]
    y = jnp.fft.ifftn(x, axes=dim[:-1]) if len(dim) > 1 else x
    return scaled(jnp.fft.irfft(y, last, axis=dim[-1]) * math.prod(sizes), sizes, normalization)


# Random numbers: `key` is the key of the op.

DRAWS = {
    "bernoulli": lambda key, out, x, p=None, generator=None: jax.random.bernoulli(key, wide(x) if p is None else p, tuple(out.shape)),
    "rand": lambda key, out, *_, **__: jax.random.uniform(key, tuple(out.shape)),
    "randn": lambda key, out, *_, **__: jax.random.normal(key, tuple(out.shape)),
    "uniform": lambda key, out, x, low=0.0, high=1.0, generator=None: jax.random.uniform(key, x.shape, minval=low, maxval=high),
    "normal": lambda key, out, x, mean=0.0, std=1.0, generator=None: jax.random.normal(key, x.shape) * std + mean,
    "normal_functional": lambda key, out, x, mean=0.0, std=1.0, generator=None: jax.random.normal(key, x.shape) * std + mean,
    "exponential": lambda key, out, x, rate=1.0, generator=None: jax.random.exponential(key, x.shape) / rate,
    "randint": lambda key, out, *bounds, **_: jax.random.randint(key, tuple(out.shape), *integer_bounds(bounds)),
    "randperm": lambda key, out, n, **_: jax.random.permutation(key, n),
    "native_dropout": lambda key, out, x, p, train: dropout(key, x, p),
}
DRAWS |= {"rand_like": DRAWS["rand"], "randn_like": DRAWS["randn"]}


def integer_bounds(bounds):
    numbers = [bound for bound in bounds if isinstance(bound, int)]
    return (0, *numbers) if len(numbers) == 1 else tuple(numbers)


def dropout(key, x, p):
    kept = jax.random.bernoulli(key, 1 - p, x.shape)
    return jnp.where(kept, x / (1 - p), jnp.zeros((), x.dtype)), kept
