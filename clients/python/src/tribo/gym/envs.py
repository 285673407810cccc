"""Many worlds as one vectorised environment, and one world as a plain one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space

from tribo.arrays import AnyArray, Floats
from tribo.client import Client
from tribo.gym.remote import RemoteWorlds
from tribo.gym.tasks import TASKS, Task, View
from tribo.local import Model, Worlds
from tribo.types import StepAnswer, StepOptions


def _task(task: str | Task) -> Task:
    if isinstance(task, Task):
        return task
    if task not in TASKS:
        raise ValueError(f"task is {task!r}, expected a Task or one of {', '.join(TASKS)}")
    return TASKS[task]()


class LocalWorlds(Worlds):
    """Worlds in this process, as an environment starts and steps them."""

    @property
    def coordinates(self) -> int:
        """Numbers in q."""
        return int(self.model.coordinates)

    @property
    def dofs(self) -> int:
        """Numbers in u."""
        return int(self.model.dofs)

    def advance(self, steps: int, controls: Floats) -> StepAnswer:
        """Steps all worlds; `residuals` has the accuracy."""
        return self.step(steps, controls=controls, certificates=False)

    def look(self) -> StepAnswer:
        """The current state."""
        return self.state(certificates=False)

    def start(
        self, q: Floats, u: Floats, mask: AnyArray, parameters: dict[str, dict[str, Any]]
    ) -> None:
        """Puts the worlds of the mask at q and u, with these parameters by name."""
        self.reset(worlds=mask)
        if parameters:
            self.set_parameters(worlds=mask, **parameters)
        self.set_state(q, u, worlds=mask)


class TriboVectorEnv(gymnasium.vector.VectorEnv):
    """Worlds of one task, stepped together in this process or by a daemon.

    A world's episode depends on its seed and its actions alone, whatever the others do. An episode
    that ends starts again within the same step (`AutoresetMode.SAME_STEP`): the observation is the
    new one's, `infos["final_obs"]` has the last of the old one. A world that diverges is truncated,
    and `infos["diverged"]` names it.
    """

    metadata = {  # noqa: RUF012
        "autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP,
        "render_modes": [],
    }

    def __init__(
        self,
        task: str | Task = "reach",
        num_envs: int = 1,
        *,
        options: StepOptions | None = None,
        threads: int = 0,
        client: Client | None = None,
    ) -> None:
        """Makes the worlds.

        Args:
            task: a task, or the name of one.
            num_envs: number of worlds.
            options: stepping options.
            threads: worlds in parallel in this process; 0: all processors.
            client: steps the worlds in a session of its daemon, with the same results.
        """
        self.task = _task(task)
        self.num_envs = num_envs
        name = f"{type(self.task).__name__}.xml".lower()
        self.worlds: LocalWorlds | RemoteWorlds
        if client is None:
            model = Model(self.task.model, name=name)
            self.worlds = LocalWorlds(model, num_envs, options=options, threads=threads)
        else:
            self.worlds = RemoteWorlds(client, self.task.model, name, num_envs, options)
        bound = np.float32(np.inf)
        self.single_observation_space = gymnasium.spaces.Box(
            -bound, bound, (self.task.observations,), np.float32
        )
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.task.actions,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._random = [np.random.default_rng() for _ in range(num_envs)]
        self._goals = np.zeros((num_envs, self.task.goals))
        self._steps = np.zeros(num_envs, int)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[AnyArray, dict[str, Any]]:
        """Starts new episodes.

        Args:
            seed: of the first world, the next one's is one more; or one for each world.
            options: {"reset_mask": (worlds) booleans} starts those worlds only.
        """
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed
        for i, number in enumerate(seeds or []):
            if number is not None:
                self._random[i] = np.random.default_rng(number)
        mask = np.ones(self.num_envs, np.bool_)
        if options and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"], np.bool_)
            if mask.shape != (self.num_envs,):
                raise ValueError(f"reset_mask has shape {mask.shape}, not ({self.num_envs},)")
        self._start(mask)
        answer = self.worlds.look()
        assert answer.q is not None
        assert answer.u is not None
        return self._observe(answer.q, answer.u), {}

    def _start(self, mask: AnyArray) -> None:
        """New episodes in the worlds of the mask."""
        q = np.zeros((self.num_envs, self.worlds.coordinates))
        u = np.zeros((self.num_envs, self.worlds.dofs))
        parameters: dict[str, dict[str, Any]] = {}
        for i in np.flatnonzero(mask):
            q[i], u[i], self._goals[i] = self.task.start(self._random[i])
            for what, values in self.task.parameters(self._random[i]).items():
                for name, value in values.items():
                    rows = parameters.setdefault(what, {}).setdefault(
                        name, np.full((self.num_envs, *np.shape(value)), value, float)
                    )
                    rows[i] = value
        self.worlds.start(q, u, mask, parameters)
        self._steps[mask] = 0

    def _observe(self, q: Floats, u: Floats) -> AnyArray:
        return self.task.observe(View(q, u, self._goals)).astype(np.float32)

    def step(self, actions: Any) -> tuple[AnyArray, Floats, AnyArray, AnyArray, dict[str, Any]]:
        """Observations, rewards, terminated, truncated and infos, each with a row a world."""
        wanted = np.clip(np.asarray(actions, float), -1, 1)
        answer = self.worlds.advance(self.task.steps, self.task.controls(wanted))
        assert answer.q is not None
        assert answer.u is not None
        view = View(answer.q, answer.u, self._goals)
        rewards, reached = self.task.reward(view, wanted)
        residuals, diverged = self.worlds.residuals()
        self._steps += 1
        terminated = np.zeros(self.num_envs, np.bool_)
        truncated = (self._steps >= self.task.episode) | diverged
        infos: dict[str, Any] = {"residual": residuals, "success": reached, "diverged": diverged}
        observations = self._observe(answer.q, answer.u)
        if truncated.any():
            infos["final_obs"], infos["_final_obs"] = observations, truncated
            self._start(truncated)
            now = self.worlds.look()
            assert now.q is not None
            assert now.u is not None
            observations = self._observe(now.q, now.u)
        return observations, rewards, terminated, truncated, infos

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the worlds."""
        self.worlds.delete()


class TriboEnv(gymnasium.Env):
    """One world of a task as a plain environment."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, task: str | Task = "reach", *, options: StepOptions | None = None) -> None:
        self._vector = TriboVectorEnv(task, 1, options=options, threads=1)
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[AnyArray, dict[str, Any]]:
        """Starts a new episode."""
        super().reset(seed=seed)
        observations, infos = self._vector.reset(seed=seed)
        return observations[0], infos

    def step(self, action: Any) -> tuple[AnyArray, float, bool, bool, dict[str, Any]]:
        """Observation, reward, terminated, truncated and infos."""
        observations, rewards, _, truncated, infos = self._vector.step(np.asarray(action)[None])
        last = infos.pop("final_obs", observations)[0]
        infos.pop("_final_obs", None)
        told = {name: values[0] for name, values in infos.items()}
        return last, float(rewards[0]), False, bool(truncated[0]), told

    def close(self) -> None:
        """Frees the world."""
        self._vector.close()
