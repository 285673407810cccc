"""Worlds of a daemon as `TriboVectorEnv` steps them: a session with the calls of local `Worlds`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tribo.arrays import AnyArray, Floats
from tribo.client import Client
from tribo.parameters import Values
from tribo.types import Outcome, StepAnswer, StepOptions


class RemoteWorlds:
    """A session whose certificates come as arrays."""

    def __init__(
        self, client: Client, model: bytes, name: str, worlds: int, options: StepOptions | None
    ) -> None:
        self._scene = client.load(model, name=name)
        self._session = client.create_session(
            self._scene, worlds=worlds, options=options, label=f"gym {name}"
        )
        self._residuals = np.zeros(worlds)
        self._diverged = np.zeros(worlds, np.bool_)

    @property
    def coordinates(self) -> int:
        """Numbers in q."""
        return self._scene.coordinates

    @property
    def dofs(self) -> int:
        """Numbers in u."""
        return self._scene.dofs

    def advance(self, steps: int, controls: Floats) -> StepAnswer:
        """Steps all worlds; `residuals` has the accuracy."""
        answer = self._session.step(steps, controls=controls, certificate_arrays=True)
        self._residuals = np.asarray(answer.certificate_arrays["residuals"], float)
        self._diverged = answer.certificate_arrays["outcomes"] == Outcome.DIVERGED
        return answer

    def residuals(self) -> tuple[Floats, AnyArray]:
        """Of the last call of `step`: worst residual (worlds), and which worlds diverged."""
        return self._residuals, self._diverged

    def look(self) -> StepAnswer:
        """The current state."""
        return self._session.state(certificate_arrays=True)

    def start(
        self, q: Floats, u: Floats, mask: AnyArray, parameters: dict[str, dict[str, Any]]
    ) -> None:
        """Puts the worlds of the mask at q and u, with these parameters by name."""
        self._session.reset(worlds=mask)
        if parameters:
            values: dict[str, Values] = {**parameters}
            self._session.set_parameters(worlds=mask, **values)  # type: ignore[arg-type]
        self._session.set_state(q, u, worlds=mask)

    def delete(self) -> None:
        """Ends the session."""
        self._session.delete()
