"""Puts answers together that came in pieces: consecutive worlds, message after message."""

from __future__ import annotations

from collections.abc import Sequence

from tribo.v1 import simulation_pb2

_ROWS = ("q", "u", "controls", "bodies")


def _join_states(into: simulation_pb2.State, pieces: Sequence[simulation_pb2.State]) -> None:
    for name in _ROWS:
        if not into.HasField(name):
            continue
        arrays = [getattr(piece, name) for piece in pieces]
        whole = getattr(into, name)
        whole.data = b"".join(array.data for array in arrays)
        whole.shape[0] = sum(array.shape[0] for array in arrays)


def join_steps(pieces: Sequence[simulation_pb2.StepResponse]) -> simulation_pb2.StepResponse:
    """The whole answer to a step. A single piece is given back as it is, without a copy."""
    whole = pieces[0]
    if len(pieces) == 1:
        return whole
    _join_states(whole.state, [piece.state for piece in pieces])
    for piece in pieces[1:]:
        whole.certificates.extend(piece.certificates)
        whole.contacts.extend(piece.contacts)
    return whole


def join_watched(pieces: Sequence[simulation_pb2.WatchResponse]) -> simulation_pb2.WatchResponse:
    """The whole of what a watcher was told at once."""
    whole = pieces[0]
    if len(pieces) == 1:
        return whole
    _join_states(whole.state, [piece.state for piece in pieces])
    for piece in pieces[1:]:
        whole.contacts.extend(piece.contacts)
    whole.more = False
    return whole
