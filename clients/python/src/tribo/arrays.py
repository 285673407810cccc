"""Converts numpy arrays to and from messages, without a copy if the layout allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tribo.v1 import common_pb2

AnyArray = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

_DTYPES: dict[int, np.dtype[Any]] = {
    common_pb2.DATA_TYPE_UNSPECIFIED: np.dtype("<f8"),
    common_pb2.DATA_TYPE_FLOAT64: np.dtype("<f8"),
    common_pb2.DATA_TYPE_FLOAT32: np.dtype("<f4"),
    common_pb2.DATA_TYPE_INT32: np.dtype("<i4"),
    common_pb2.DATA_TYPE_INT64: np.dtype("<i8"),
    common_pb2.DATA_TYPE_UINT8: np.dtype("u1"),
}


def decode(array: common_pb2.Array) -> AnyArray:
    """A read-only view of the message's bytes, in its shape."""
    return np.frombuffer(array.data, dtype=_DTYPES[array.dtype]).reshape(tuple(array.shape))


def encode(values: npt.ArrayLike) -> common_pb2.Array:
    """Values as float64 (float32 stays float32), row-major and little endian."""
    array = np.asarray(values)
    kind = common_pb2.DATA_TYPE_FLOAT64
    if array.dtype == np.float32:
        kind = common_pb2.DATA_TYPE_FLOAT32
    array = np.ascontiguousarray(array, dtype=_DTYPES[kind])
    return common_pb2.Array(dtype=kind, shape=array.shape, data=array.tobytes())
