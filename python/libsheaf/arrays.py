"""Tensors of other packages, as memory of the library: NumPy, JAX, torch, and whatever else has DLPack or the buffer protocol.

A tensor on the host that is contiguous and of the type of the argument is not copied on its way to the library.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from .errors import usage
from .steps import Tensor

# StableHLO's type: NumPy's name, which is torch's and ml_dtypes' too, and DLPack's code and bits.
TYPES = {
    "f64": ("float64", 2, 64), "f32": ("float32", 2, 32), "f16": ("float16", 2, 16), "bf16": ("bfloat16", 4, 16),
    "i64": ("int64", 0, 64), "i32": ("int32", 0, 32), "i16": ("int16", 0, 16), "i8": ("int8", 0, 8),
    "ui64": ("uint64", 1, 64), "ui32": ("uint32", 1, 32), "ui16": ("uint16", 1, 16), "ui8": ("uint8", 1, 8),
    "i1": ("bool", 6, 8), "complex<f32>": ("complex64", 5, 64), "complex<f64>": ("complex128", 5, 128),
    "f8E4M3FN": ("float8_e4m3fn", 10, 8), "f8E5M2": ("float8_e5m2", 12, 8),
    "f8E4M3B11FNUZ": ("float8_e4m3b11fnuz", 9, 8), "f8E4M3FNUZ": ("float8_e4m3fnuz", 11, 8), "f8E5M2FNUZ": ("float8_e5m2fnuz", 13, 8),
    "i4": ("int4", 0, 8), "ui4": ("uint4", 1, 8),
}
BY_DLPACK = {(code, bits): name for name, code, bits in TYPES.values() if "int4" not in name}
HOST = (1, 3)
"""DLPack's devices whose memory is the host's: kDLCPU, kDLCUDAHost"""


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Memory:
    """The memory of a tensor: where it is, and what keeps it there."""

    def __init__(self, address: int, dtype: str, shape: tuple[int, ...], keeper):
        self.address, self.dtype, self.shape, self.keeper = address, dtype, shape, keeper


def numpy_dtype(tensor: Tensor) -> np.dtype:
    name = TYPES[tensor.dtype][0] if tensor.dtype in TYPES else tensor.dtype
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        raise usage(f"{tensor.path or tensor.name} is {tensor.dtype}, which NumPy has not",
                    "`pip install ml_dtypes` brings the type; torch has its own: framework=\"torch\"") from None


def of_numpy(array: np.ndarray, writable: bool) -> Memory | None:
    """None where it is not contiguous."""
    if not array.flags.c_contiguous or not array.dtype.isnative or (writable and not array.flags.writeable):
        return None
    return Memory(array.ctypes.data, array.dtype.name, array.shape, array)


def of_dlpack(value) -> Memory | None:
    """None where it is not contiguous, or not on the host."""
    if value.__dlpack_device__()[0] not in HOST:
        return None
    capsule = value.__dlpack__()
    tensor = DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
    shape = tuple(tensor.shape[: tensor.ndim])
    expected = 1
    for d in reversed(range(tensor.ndim)):
        if tensor.strides and shape[d] > 1 and tensor.strides[d] != expected:
            return None
        expected *= shape[d]
    dtype = BY_DLPACK.get((tensor.code, tensor.bits), f"DLPack {tensor.code}, {tensor.bits} bits")
    if tensor.lanes != 1:
        return None
    return Memory((tensor.data or 0) + tensor.byte_offset, dtype, shape, capsule)


def is_array(value) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__dlpack__") or hasattr(value, "__array__")


def memory_of(value, tensor: Tensor, shape: tuple[int, ...] | None = None) -> Memory:
    """The memory of a value for a tensor of the step, or for a shard of it. Numbers and lists take the type of the tensor; arrays
    must have it."""
    if not is_array(value) and not isinstance(value, (memoryview, bytearray)):
        value = np.asarray(value, dtype=numpy_dtype(tensor))
    if type(value).__module__.partition(".")[0] in ("jax", "jaxlib") and str(value.dtype).startswith("key<"):
        value = sys.modules["jax"].random.key_data(value)
    if getattr(value, "requires_grad", False):
        value = value.detach()
    memory = None
    if hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic)):
        memory = of_dlpack(value) or of_dlpack_copy(value)
    if memory is None:
        # A scalar has no dimensions; ascontiguousarray would give it one.
        array = np.asarray(value)
        memory = of_numpy(array, False) or of_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"), False)
    check(memory, tensor, shape)
    return memory


def of_dlpack_copy(value) -> Memory | None:
    """Of torch: a contiguous copy on the host."""
    if hasattr(value, "cpu") and hasattr(value, "contiguous"):
        return of_dlpack(value.cpu().contiguous())
    return None


def memory_to_write(out, tensor: Tensor, shape: tuple[int, ...] | None = None) -> Memory:
    """The memory of an array that is to be filled."""
    memory = None
    if type(out).__module__.partition(".")[0] in ("jax", "jaxlib"):
        raise usage("arrays of JAX cannot be written to", 'framework="jax" makes one')
    if isinstance(out, np.ndarray) or not hasattr(out, "__dlpack__"):
        array = np.asarray(out)
        memory = of_numpy(array, True)
    else:
        memory = of_dlpack(out)
    if memory is None:
        raise usage("`out` must be contiguous, writable and on the host")
    check(memory, tensor, shape)
    return memory


def check(memory: Memory, tensor: Tensor, shape: tuple[int, ...] | None) -> None:
    name, expected = tensor.path or tensor.name, tensor.shape if shape is None else shape
    dtype = TYPES[tensor.dtype][0] if tensor.dtype in TYPES else tensor.dtype
    if memory.dtype != dtype and not (dtype == "bool" and memory.dtype == "uint8"):
        raise usage(f"{name} is of type {dtype}, and the array of type {memory.dtype}", f"convert it: array.astype({dtype!r})")
    if tuple(memory.shape) != tuple(expected):
        raise usage(f"{name} has the shape {tuple(expected)}, and the array {tuple(memory.shape)}")


def new_array(tensor: Tensor, framework: str, shape: tuple[int, ...] | None = None):
    """An array of NumPy or torch to be filled."""
    shape = tensor.shape if shape is None else shape
    if framework == "torch":
        import torch

        return torch.empty(shape, dtype=getattr(torch, TYPES[tensor.dtype][0]))
    if framework not in ("numpy", "jax"):
        raise usage(f"there is no framework {framework!r}", "numpy, jax and torch are there")
    return np.empty(shape, dtype=numpy_dtype(tensor))


def finish(array, framework: str):
    if framework == "jax":
        import jax.numpy

        return jax.numpy.asarray(array)
    return array
