"""Joins answers that arrive in pieces, each with consecutive worlds."""

from __future__ import annotations

from collections.abc import Sequence

from tribo.v1 import simulation_pb2

_ROWS = ("q", "u", "controls", "bodies", "poses", "sensors", "pairs")


def _join_states(into: simulation_pb2.State, pieces: Sequence[simulation_pb2.State]) -> None:
    for name in _ROWS:
        if not into.HasField(name):
            continue
        arrays = [getattr(piece, name) for piece in pieces]
        whole = getattr(into, name)
        whole.data = b"".join(array.data for array in arrays)
        whole.shape[0] = sum(array.shape[0] for array in arrays)
    for piece in pieces[1:]:
        into.surfaces.extend(piece.surfaces)
        into.soft_certificates.extend(piece.soft_certificates)


def join_steps(pieces: Sequence[simulation_pb2.StepResponse]) -> simulation_pb2.StepResponse:
    """Joins the pieces of a step's answer. Returns a single piece unchanged, without a copy."""
    whole = pieces[0]
    if len(pieces) == 1:
        return whole
    _join_states(whole.state, [piece.state for piece in pieces])
    for piece in pieces[1:]:
        whole.certificates.extend(piece.certificates)
        whole.contacts.extend(piece.contacts)
        for column, more in piece.certificate_arrays.ListFields():
            array = getattr(whole.certificate_arrays, column.name)
            array.data += more.data
            array.shape[0] += more.shape[0]
    return whole


def join_watched(pieces: Sequence[simulation_pb2.WatchResponse]) -> simulation_pb2.WatchResponse:
    """Joins the pieces of one message to a watcher."""
    whole = pieces[0]
    if len(pieces) == 1:
        return whole
    _join_states(whole.state, [piece.state for piece in pieces])
    for piece in pieces[1:]:
        whole.contacts.extend(piece.contacts)
        whole.evaluations.extend(piece.evaluations)
    whole.more = False
    return whole
