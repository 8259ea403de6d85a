"""Arrays on their way to libkiln.

tvm-ffi takes any object that speaks DLPack.  NumPy refuses to speak it for the types of ml_dtypes
(bf16, fp8) and for arrays that are read-only; such arrays go as a DLPack capsule made here.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

__all__ = ["argument", "empty", "is_array"]


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Managed(ctypes.Structure):
    """DLPack's DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("dtype", _DType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_CPU = 1
#: DLPack's codes, by NumPy's kind; then the names of ml_dtypes.
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_SMALL_FLOATS = {"bfloat16": (4, 16), "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8)}

# A prototype of its own: other packages set that of ctypes.pythonapi.PyCapsule_New to theirs.
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


class _Exported:
    """A NumPy array that says what it holds.  It lives longer than the call that it is given to."""

    def __init__(self, array: np.ndarray, code: int, bits: int) -> None:
        rank = array.ndim
        self.array = array
        self.shape = (ctypes.c_int64 * max(rank, 1))(*array.shape)
        self.strides = (ctypes.c_int64 * max(rank, 1))(
            *(s // array.itemsize for s in array.strides)
        )
        self.managed = _Managed(
            array.ctypes.data,
            _Device(_CPU, 0),
            rank,
            _DType(code, bits, 1),
            self.shape,
            self.strides,
            0,
            None,
            None,
        )

    def __dlpack__(self, **_: Any) -> Any:
        return _capsule(ctypes.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0


def is_array(value: Any) -> bool:
    """Whether it speaks DLPack, as arrays of NumPy, CuPy and torch do."""
    return hasattr(value, "__dlpack__")


def argument(where: str, value: Any, written: bool) -> Any:
    """What tvm-ffi takes for an array.

    where: names the operation and the argument, for the message.
    Raises TypeError if it is no array, ValueError if it would be written and cannot be, or has a
    type or strides that no kernel knows.
    """
    if not is_array(value):
        raise TypeError(
            f"{where} is of type {type(value).__name__}; give an array (NumPy's, CuPy's, torch's)"
        )
    if not isinstance(value, np.ndarray):
        # A view that is to be negated or conjugated when it is read: its memory holds other
        # numbers.
        for lazy in ("is_neg", "is_conj"):
            if getattr(value, lazy, bool)():
                raise ValueError(
                    f"{where} is a view whose {lazy[3:]} is not computed; give"
                    f" {lazy.replace('is', 'resolve')}()"
                )
        return value
    writeable = value.flags.writeable
    if written and not writeable:
        raise ValueError(f"{where} is read-only; give an array that can be written")
    dtype = value.dtype
    code = _SMALL_FLOATS.get(dtype.name) or (_CODES.get(dtype.kind), 8 * dtype.itemsize)
    if code[0] is None or not dtype.isnative:
        raise ValueError(
            f"{where} has the dtype {dtype.str}; give f32, f16, bf16 or fp8 (of ml_dtypes), i8, i32"
            f" or i64, {sys.byteorder} endian"
        )
    if any(stride % dtype.itemsize for stride in value.strides):
        raise ValueError(
            f"{where} has strides of {value.strides} bytes, no multiples of {dtype.itemsize}; give"
            " a copy"
        )
    if writeable and dtype.name not in _SMALL_FLOATS:
        return value  # NumPy's own DLPack is faster
    return _Exported(value, *code)


def empty(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A new array of the same library and device as `like`.  dtype: the name that libkiln has for
    it."""
    if isinstance(like, np.ndarray):
        return np.empty(shape, numpy_dtype(dtype))
    module = type(like).__module__.partition(".")[0]
    if module == "torch":
        import torch

        return torch.empty(shape, dtype=getattr(torch, _LONG[dtype]), device=like.device)
    if module == "cupy":
        import cupy

        with like.device:
            return cupy.empty(shape, numpy_dtype(dtype))
    raise TypeError(
        f"kiln: outputs for arrays of {module} are yours to make; give them by `out` and by their"
        " names"
    )


_LONG = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
}


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's dtype of libkiln's name.  Raises ImportError for bf16 and fp8 without ml_dtypes."""
    long = _LONG[name]
    if long not in _SMALL_FLOATS:
        return np.dtype(long)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, long))
