"""Arrays between NumPy and the wire: round trips, conversions, views of a message."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tribo.arrays import decode, encode
from tribo.v1 import common_pb2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_round_trip(dtype: type) -> None:
    values: npt.NDArray[Any] = np.random.default_rng(1).normal(size=(3, 4)).astype(dtype)
    again = decode(encode(values))
    assert again.dtype == values.dtype
    np.testing.assert_array_equal(again, values)


def test_strided_and_integer_input_becomes_contiguous_float64() -> None:
    values = np.arange(24).reshape(4, 6)[:, ::2]
    message = encode(values)
    assert message.dtype == common_pb2.DATA_TYPE_FLOAT64
    np.testing.assert_array_equal(decode(message), values)


def test_decoded_arrays_are_views_of_the_message() -> None:
    message = common_pb2.Array(
        dtype=common_pb2.DATA_TYPE_INT32, shape=[2], data=b"\x01\0\0\0\x02\0\0\0"
    )
    array = decode(message)
    assert not array.flags.owndata
    assert not array.flags.writeable
    assert array.tolist() == [1, 2]
