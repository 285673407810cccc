"""Keyword arguments that the blocking and the asyncio client share.

Each group is a TypedDict beside the builder of its request in `tribo.requests`, which documents
the arguments and holds their defaults. `takes` gives a method the builder's documentation and
signature, so that `help` and notebooks show both; `like` gives an awaited method those of its
blocking counterpart.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Callable, TypedDict, TypeVar

from tribo.arrays import ArrayLike
from tribo.grasp_types import Perturbation, Protocol
from tribo.parameters import Values
from tribo.types import SolveOptions, StepOptions

if TYPE_CHECKING:
    import grpc

_Method = TypeVar("_Method", bound=Callable[..., Any])


class ConnectArguments(TypedDict, total=False):
    """Arguments of `tribo.connect`: see `requests.Connection`."""

    api_key: str | None
    credentials: grpc.ChannelCredentials | None
    timeout: float | None
    attempts: int
    message_bytes: int


class SceneArguments(TypedDict, total=False):
    """Arguments of `Client.load`: see `requests.create_scene`."""

    density: float
    floating_base: bool
    overlaps: str
    overlap_keyframe: str
    balance_inertia: bool


class SessionArguments(TypedDict, total=False):
    """Arguments of `Client.create_session`: see `requests.create_session`."""

    worlds: int
    options: StepOptions | None
    ttl: float
    on_disconnect: str
    keyframe: int | None
    label: str
    device: str


class GraspArguments(TypedDict, total=False):
    """Arguments of `Client.submit_grasps` and `Client.evaluate_grasps`."""

    protocol: Protocol | None
    perturbation: Perturbation | None
    solve: SolveOptions | None
    confidence: float
    label: str
    device: str


class InputArguments(TypedDict, total=False):
    """Inputs of a step: see `requests.step`."""

    controls: ArrayLike | None
    forces: ArrayLike | None
    wrenches: ArrayLike | None
    kinematic: ArrayLike | None


class WantArguments(TypedDict, total=False):
    """Contents of an answer: see `requests.want`."""

    state: bool
    contacts: bool
    bodies: bool
    sensors: bool
    surfaces: bool
    single: bool
    certificate_arrays: bool


class ParameterArguments(TypedDict, total=False):
    """Parameters of worlds: see `parameters.set_parameters`."""

    friction: Values | None
    mass: Values | None
    gain: Values | None
    bias: Values | None
    damping: Values | None
    dry_friction: Values | None
    size: Values | None


class StepArguments(InputArguments, WantArguments, total=False):
    """Arguments of `Session.step`."""


def _keywords(builder: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = inspect.signature(builder).parameters.values()
    return [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]


def _documented(builder: Callable[..., Any]) -> list[str]:
    """The lines below "Args:" of a builder, without their indent."""
    _, _, lines = inspect.cleandoc(builder.__doc__ or "").partition("Args:\n")
    return lines.rstrip().split("\n")


def _is_open(method: Callable[..., Any]) -> bool:
    """Whether a method's signature ends with `**arguments`."""
    parameters = inspect.signature(method).parameters.values()
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def _join(method: _Method, keywords: list[inspect.Parameter]) -> None:
    """Puts these keyword-only arguments in the place of a method's `**arguments`."""
    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())
    own = [p for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
    names = {p.name for p in own}
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=own + [p for p in keywords if p.name not in names]
    )


def like(blocking: Callable[..., Any]) -> Callable[[_Method], _Method]:
    """Documents a method of the asyncio client as that of the blocking client, `blocking`."""

    def dress(method: _Method) -> _Method:
        if _is_open(method) and not _is_open(blocking):
            _join(method, _keywords(blocking))
        method.__doc__ = blocking.__doc__
        return method

    return dress


def takes(*builders: Callable[..., Any]) -> Callable[[_Method], _Method]:
    """Documents `**arguments` of a method as the keyword-only arguments of these builders."""

    def dress(method: _Method) -> _Method:
        _join(method, [p for b in builders for p in _keywords(b)])
        text = inspect.cleandoc(method.__doc__ or "")
        lines = [text] if "Args:\n" in text else [text, "", "Args:"]
        method.__doc__ = "\n".join(lines + [line for b in builders for line in _documented(b)])
        return method

    return dress
