"""Functions of Modelica on a daemon, called with numpy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

Output = Union[AnyArray, float, int, bool, "Kept"]
Input = Union[npt.ArrayLike, "Kept"]
Keep = Union[Sequence[str], Mapping[str, str]]

BACKENDS = {
    "auto": function_pb2.FUNCTION_BACKEND_UNSPECIFIED,
    "interpreter": function_pb2.FUNCTION_BACKEND_INTERPRETER,
    "cpu": function_pb2.FUNCTION_BACKEND_CPU,
    "gpu": function_pb2.FUNCTION_BACKEND_GPU,
}


@dataclass(frozen=True)
class Kept:
    """An array that the daemon keeps for this client under a name, on the card where it can.

    Calls return one for each output that they keep. As an input, `Kept(name, values)` sends the
    values and has them kept; `Kept(name)` uses what is kept. It is forgotten when the client
    closes or forgets it, when no call names it for ten minutes, and when memory is short: then a
    call raises NotFoundError.
    """

    name: str
    values: npt.ArrayLike | None = None
    shape: tuple[int, ...] = ()  # of an output


@dataclass(frozen=True)
class FunctionAnswer:
    """Outputs by name, and the times of the call."""

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


def _input(name: str, value: Input) -> function_pb2.FunctionValue:
    if not isinstance(value, Kept):
        return function_pb2.FunctionValue(name=name, value=_encode(value))
    values = None if value.values is None else _encode(value.values)
    return function_pb2.FunctionValue(name=name, value=values, kept=value.name)


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
    kept: dict[str, Kept] = {}
    summary = function_pb2.CallSummary()
    for response in responses:
        if response.WhichOneof("event") == "summary":
            summary = response.summary
            continue
        output = response.output
        if output.kept:
            kept[output.name] = Kept(output.kept, shape=tuple(output.value.shape))
            continue
        arrays.setdefault(output.name, output.value)
        pieces.setdefault(output.name, []).append(output.value.data)
    names = {number: name for name, number in BACKENDS.items()}
    sent = {n: _decode(a, b"".join(pieces[n]), types[n]) for n, a in arrays.items()}
    return FunctionAnswer(
        {**sent, **kept},
        names[summary.backend],
        summary.compile_seconds,
        summary.seconds,
        summary.kernel_seconds,
        summary.launches,
    )


CLOSE_SECONDS = 2.0  # longest wait of a client that closes for its arrays to be forgotten


def name_of(kept: Kept | str) -> str:
    """The name of a kept array."""
    return kept.name if isinstance(kept, Kept) else kept


def fetched(responses: Iterable[function_pb2.FetchResponse]) -> AnyArray:
    """The kept array that the messages of a fetch bring."""
    pieces = list(responses)
    array = pieces[0].value
    data = b"".join(piece.value.data for piece in pieces)
    whole = decode(common_pb2.Array(dtype=array.dtype, shape=array.shape, data=data))
    return whole.astype(np.bool_) if array.dtype == common_pb2.DATA_TYPE_UINT8 else whole


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
        inputs: tuple[Input, ...],
        named: dict[str, Input],
        backend: str,
        seconds: float,
        memory_bytes: int,
        keep: Keep,
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
            inputs=[_input(name, value) for name, value in given.items()],
            backend=BACKENDS[backend],
            seconds=seconds,
            memory_bytes=memory_bytes,
            keep=[
                function_pb2.KeepOutput(output=output, name=name)
                for output, name in (keep.items() if isinstance(keep, Mapping) else zip(keep, keep))
            ],
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
        *inputs: Input,
        backend: str = "auto",
        seconds: float = 0,
        memory_bytes: int = 0,
        keep: Keep = (),
        **named: Input,
    ) -> FunctionAnswer:
        """Calls the function; `seconds` and `memory_bytes` 0 mean the daemon's defaults.

        `keep` names outputs that stay in the daemon and come back as `Kept`, or gives each the
        name that it is kept under.
        """
        request = self.request(inputs, named, backend, seconds, memory_bytes, keep)
        with translated():
            return collect(self._client.call_function(request), self.info)

    def __call__(self, *inputs: Input, **named: Any) -> Any:
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
        *inputs: Input,
        backend: str = "auto",
        seconds: float = 0,
        memory_bytes: int = 0,
        keep: Keep = (),
        **named: Input,
    ) -> FunctionAnswer:
        request = self.request(inputs, named, backend, seconds, memory_bytes, keep)
        with translated():
            responses = [r async for r in self._client.call_function(request)]
        return collect(responses, self.info)

    @like(Function.__call__)
    async def __call__(self, *inputs: Input, **named: Any) -> Any:
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
