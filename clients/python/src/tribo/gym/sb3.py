"""Stable-Baselines3's vectorised environment over `TriboVectorEnv`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from tribo.gym.envs import TriboVectorEnv


class StableBaselinesEnv(VecEnv):
    """For PPO and its like: `PPO("MlpPolicy", StableBaselinesEnv(TriboVectorEnv("reach", 64)))`.

    The info of an episode's last step has "episode" with its return "r", length "l", and the share
    of its steps at the goal, "success".
    """

    def __init__(self, env: TriboVectorEnv) -> None:
        self.env = env
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self._actions: Any = None
        self._seeded: int | None = None
        self._return = np.zeros(env.num_envs)
        self._success = np.zeros(env.num_envs)
        self._length = np.zeros(env.num_envs, int)

    def reset(self) -> Any:
        """Starts all worlds."""
        observations, _ = self.env.reset(seed=self._seeded)
        self._seeded = None
        for kept in (self._return, self._success, self._length):
            kept[:] = 0
        return observations

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Of the first world at the next reset; the next ones' are one more each."""
        self._seeded = seed
        return [None if seed is None else seed + i for i in range(self.num_envs)]

    def step_async(self, actions: Any) -> None:
        """Keeps the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Observations, rewards, ends and a list of infos."""
        observations, rewards, terminated, truncated, infos = self.env.step(self._actions)
        self._return += rewards
        self._success += infos["success"]
        self._length += 1
        done = terminated | truncated
        told: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(done):
            n = int(self._length[i])
            told[i] = {
                "terminal_observation": infos["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
                "episode": {"r": self._return[i], "l": n, "success": self._success[i] / n},
            }
            self._return[i] = self._success[i] = self._length[i] = 0
        return observations, rewards.astype(np.float32), done, told

    def close(self) -> None:
        """Frees the worlds."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute, the same for every world."""
        return [getattr(self.env, attr_name)] * len(self._chosen(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Worlds have no attributes of their own."""
        raise AttributeError(f"{attr_name}: worlds have no attributes of their own")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        """Calls a method of the vectorised environment once."""
        result = getattr(self.env, method_name)(*args, **kwargs)
        return [result] * len(self._chosen(indices))

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Worlds have no wrappers."""
        return [False] * len(self._chosen(indices))

    def _chosen(self, indices: Any) -> list[int]:
        return list(self._get_indices(indices))
