"""Functions of Modelica on a daemon, called with numpy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, Union

import numpy as np
import numpy.typing as npt

from tribo.arguments import like
from tribo.arrays import AnyArray, decode
from tribo.errors import translated
from tribo.v1 import common_pb2, function_pb2

if TYPE_CHECKING:
    from tribo import aio
    from tribo.client import Client

Output = Union[AnyArray, float, int, bool]

BACKENDS = {
    "auto": function_pb2.FUNCTION_BACKEND_UNSPECIFIED,
    "interpreter": function_pb2.FUNCTION_BACKEND_INTERPRETER,
    "cpu": function_pb2.FUNCTION_BACKEND_CPU,
    "gpu": function_pb2.FUNCTION_BACKEND_GPU,
}


@dataclass(frozen=True)
class FunctionAnswer:
    """Outputs by name, and what the call took."""

    outputs: dict[str, Output]
    backend: str  # that ran
    compile_seconds: float  # of code that was not there yet
    seconds: float
    kernel_seconds: float  # on the card
    launches: int


def _encode(values: npt.ArrayLike) -> common_pb2.Array:
    array = np.asarray(values)
    if array.dtype == np.bool_:
        kind, dtype = common_pb2.DATA_TYPE_UINT8, "u1"
    elif np.issubdtype(array.dtype, np.integer):
        kind, dtype = common_pb2.DATA_TYPE_INT64, "<i8"
    else:
        kind, dtype = common_pb2.DATA_TYPE_FLOAT64, "<f8"
    array = np.ascontiguousarray(array, dtype=dtype).reshape(array.shape)
    return common_pb2.Array(dtype=kind, shape=array.shape, data=array.tobytes())


def _decode(array: common_pb2.Array, data: bytes, kind: str) -> Output:
    whole = decode(common_pb2.Array(dtype=array.dtype, shape=array.shape, data=data))
    if kind == "Boolean":
        whole = whole.astype(np.bool_)
    if whole.ndim > 0:
        return whole
    value: Output = whole.item()
    return value


def collect(
    responses: Iterable[function_pb2.CallResponse], info: function_pb2.FunctionInfo
) -> FunctionAnswer:
    """The answer from the messages of a call."""
    types = {a.name: a.type for a in info.outputs}
    arrays: dict[str, common_pb2.Array] = {}
    pieces: dict[str, list[bytes]] = {}
    summary = function_pb2.CallSummary()
    for response in responses:
        if response.WhichOneof("event") == "summary":
            summary = response.summary
            continue
        output = response.output
        arrays.setdefault(output.name, output.value)
        pieces.setdefault(output.name, []).append(output.value.data)
    names = {number: name for name, number in BACKENDS.items()}
    return FunctionAnswer(
        {n: _decode(a, b"".join(pieces[n]), types[n]) for n, a in arrays.items()},
        names[summary.backend],
        summary.compile_seconds,
        summary.seconds,
        summary.kernel_seconds,
        summary.launches,
    )


class CompiledFunction:
    """A function of a compiled source, without the client that calls it."""

    def __init__(self, source: str, file: str, info: function_pb2.FunctionInfo) -> None:
        self._source = source
        self._file = file
        self.info = info

    @property
    def name(self) -> str:
        """The dotted name."""
        return self.info.name

    @property
    def loops(self) -> str:
        """The compiler's report on each loop: a kernel, or the access that prevents one."""
        return self.info.loops

    def request(
        self,
        inputs: tuple[npt.ArrayLike, ...],
        named: dict[str, npt.ArrayLike],
        backend: str,
        seconds: float,
        memory_bytes: int,
    ) -> function_pb2.CallRequest:
        """The message of a call."""
        known = [a.name for a in self.info.inputs]
        if len(inputs) > len(known):
            message = f"{self.name} has {len(known)} inputs, not {len(inputs)}"
            raise TypeError(message)
        given = dict(zip(known, inputs))
        for name, value in named.items():
            if name in given or name not in known:
                message = f"{self.name}: input {name!r} is unknown or given twice"
                raise TypeError(message)
            given[name] = value
        return function_pb2.CallRequest(
            source=self._source,
            name=self._file,
            function=self.name,
            inputs=[
                function_pb2.FunctionValue(name=name, value=_encode(value))
                for name, value in given.items()
            ],
            backend=BACKENDS[backend],
            seconds=seconds,
            memory_bytes=memory_bytes,
        )

    def outputs(self, answer: FunctionAnswer) -> Any:
        """The output (a number, a truth or an array), or a tuple of the outputs in order."""
        outputs = tuple(answer.outputs[a.name] for a in self.info.outputs)
        return outputs[0] if len(outputs) == 1 else outputs


class Function(CompiledFunction):
    """A function of a compiled source: call it with its inputs, in order or by name.

    Fields of a record are one input each, "record.field". It returns its output, or a tuple.
    """

    def __init__(
        self, client: Client, source: str, file: str, info: function_pb2.FunctionInfo
    ) -> None:
        super().__init__(source, file, info)
        self._client = client

    def call(
        self,
        *inputs: npt.ArrayLike,
        backend: str = "auto",
        seconds: float = 0,
        memory_bytes: int = 0,
        **named: npt.ArrayLike,
    ) -> FunctionAnswer:
        """Calls the function; `seconds` and `memory_bytes` 0 mean the daemon's defaults."""
        request = self.request(inputs, named, backend, seconds, memory_bytes)
        with translated():
            return collect(self._client.call_function(request), self.info)

    def __call__(self, *inputs: npt.ArrayLike, **named: Any) -> Any:
        """Calls the function; see `outputs`."""
        return self.outputs(self.call(*inputs, **named))


class AsyncFunction(CompiledFunction):
    """A `Function` whose calls are awaited, for `tribo.aio`."""

    def __init__(
        self, client: aio.Client, source: str, file: str, info: function_pb2.FunctionInfo
    ) -> None:
        super().__init__(source, file, info)
        self._client = client

    @like(Function.call)
    async def call(
        self,
        *inputs: npt.ArrayLike,
        backend: str = "auto",
        seconds: float = 0,
        memory_bytes: int = 0,
        **named: npt.ArrayLike,
    ) -> FunctionAnswer:
        request = self.request(inputs, named, backend, seconds, memory_bytes)
        with translated():
            responses = [r async for r in self._client.call_function(request)]
        return collect(responses, self.info)

    @like(Function.__call__)
    async def __call__(self, *inputs: npt.ArrayLike, **named: Any) -> Any:
        return self.outputs(await self.call(*inputs, **named))


AnyFunction = TypeVar("AnyFunction", bound=CompiledFunction)


def choose(functions: Sequence[AnyFunction], name: str) -> AnyFunction:
    """The function of a dotted name or of its last part; "" means the only one."""
    found = [f for f in functions if f.name == name]
    if not found:
        found = [f for f in functions if f.name.rpartition(".")[2] == name]
    if not name:
        if len(functions) != 1:
            message = f"the source has {len(functions)} functions: name one"
            raise ValueError(message)
        found = list(functions)
    if len(found) != 1:
        raise KeyError(name)
    return found[0]


class Program:
    """The functions of a compiled source, by dotted name or by its last part."""

    def __init__(
        self, client: Client, source: str, file: str, compiled: function_pb2.CompileResponse
    ) -> None:
        self.key = compiled.key
        self.functions = [Function(client, source, file, info) for info in compiled.functions]

    def __getitem__(self, name: str) -> Function:
        return choose(self.functions, name)
