"""Converts numpy arrays to and from messages, without a copy if the layout allows."""

from __future__ import annotations

from typing import Any, Protocol, Union

import numpy as np
import numpy.typing as npt

from tribo.v1 import common_pb2


class SupportsDLPack(Protocol):
    """A tensor of torch, JAX or another library."""

    def __dlpack__(self) -> Any:
        """Its memory as a capsule."""
        ...


AnyArray = npt.NDArray[Any]
#: anything that numpy converts to an array, or a tensor
ArrayLike = Union[npt.ArrayLike, SupportsDLPack]
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


def from_dlpack(values: Any) -> Any:
    """A view of a tensor of torch, JAX or another library in host memory; others as they are.

    Tensors that are in device memory, or of which torch keeps a graph, are copied by their own
    library's rules: `tensor.detach().cpu()`.
    """
    if isinstance(values, (np.ndarray, np.generic)) or not hasattr(values, "__dlpack__"):
        return values
    try:
        return np.from_dlpack(values)
    except (BufferError, RuntimeError, ValueError) as error:
        raise ValueError(f"{type(values).__name__}: {error}; give it in host memory") from error


def to_dlpack(array: AnyArray) -> AnyArray:
    """An array that every library takes by DLPack: `torch.from_dlpack(to_dlpack(answer.q))`.

    Arrays of answers are read-only views of the message. DLPack of most libraries knows no
    read-only memory, so that such an array is copied; one that can be written is returned itself.
    """
    return array if array.flags.writeable else array.copy()


def encode(values: ArrayLike) -> common_pb2.Array:
    """Values as float64 (float32 stays float32), row-major and little endian; tensors by DLPack."""
    array = np.asarray(from_dlpack(values))
    kind = common_pb2.DATA_TYPE_FLOAT64
    if array.dtype == np.float32:
        kind = common_pb2.DATA_TYPE_FLOAT32
    array = np.ascontiguousarray(array, dtype=_DTYPES[kind])
    return common_pb2.Array(dtype=kind, shape=array.shape, data=array.tobytes())
