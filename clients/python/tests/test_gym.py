"""Environments: Gymnasium's own checker, one world as many, nothing left behind."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import tribo

pytest.importorskip("gymnasium")
pytest.importorskip("cffi")
gym: Any = pytest.importorskip("tribo.gym")
from gymnasium.utils.env_checker import check_env  # noqa: E402

try:
    tribo.local.library()
except FileNotFoundError as error:
    pytest.skip(str(error), allow_module_level=True)

TASKS = ("reach", "lift")


@pytest.mark.parametrize("task", TASKS)
def test_gymnasium_checks_the_environment(task: str) -> None:
    env = gym.TriboEnv(task)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # an unbounded observation is only unusual
        warnings.filterwarnings("ignore", message=".*observation space.*infinity.*")
        warnings.filterwarnings("ignore", message=".*not having a spec.*")
        warnings.filterwarnings("ignore", message=".*[Rr]ender.*")
        check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_worlds_do_not_leak_into_each_other(task: str) -> None:
    """Each of 5 worlds gives the bytes of a world alone, over several episodes of some."""
    n, steps = 5, 70
    vector = gym.TriboVectorEnv(task, n)
    seen, _ = vector.reset(seed=3)
    random = np.random.default_rng(0)
    actions = random.uniform(-1, 1, (steps, n, vector.task.actions)).astype(np.float32)
    rows = [seen]
    # worlds 1 and 3 start anew in between: the others must not notice
    for k in range(steps):
        if k == 20:
            vector.reset(options={"reset_mask": [False, True, False, True, False]})
        rows.append(vector.step(actions[k])[0])
    for world in (0, 2, 4):
        alone = gym.TriboVectorEnv(task, 1)
        first, _ = alone.reset(seed=3 + world)
        np.testing.assert_array_equal(first[0], rows[0][world])
        for k in range(steps):
            again = alone.step(actions[k][world : world + 1])[0]
            np.testing.assert_array_equal(again[0], rows[k + 1][world], f"world {world}, step {k}")
        alone.close()
    vector.close()


def test_vector_environment_keeps_the_interface() -> None:
    env = gym.TriboVectorEnv("lift", 4)
    seen, _ = env.reset(seed=[1, 2, 3, 4])
    assert env.observation_space.contains(seen)
    assert not np.array_equal(seen[0], seen[1])
    again, _ = env.reset(seed=[1, 2, 3, 4])
    np.testing.assert_array_equal(seen, again)
    for k in range(env.task.episode):
        seen, rewards, terminated, truncated, infos = env.step(env.action_space.sample())
        assert env.observation_space.contains(seen)
        assert rewards.shape == (4,)
        assert not terminated.any()
        assert truncated.all() == (k == env.task.episode - 1)
        assert (infos["residual"] <= 1e-6).all()
    assert infos["_final_obs"].all()
    assert not np.array_equal(infos["final_obs"], seen)
    with pytest.raises(ValueError, match="reset_mask has shape"):
        env.reset(options={"reset_mask": [True]})
    with pytest.raises(ValueError, match="task is 'fly'"):
        gym.TriboVectorEnv("fly")
    env.close()


def test_a_scripted_hand_lifts_and_no_world_stays_behind() -> None:
    env = gym.TriboVectorEnv("lift", 3)
    states = [weakref.ref(s) for s in env.worlds.states]
    env.reset(seed=0)
    for k in range(env.task.episode - 1):
        rise = -1.0 if k < 20 else 0.7
        infos = env.step(np.tile([rise, -1.0 if k < 8 else 1.0], (3, 1)))[4]
    assert infos["success"].all()
    env.close()
    del env
    gc.collect()
    assert [s() for s in states] == [None] * 3


class _Varied(gym.Lift):  # type: ignore[misc]
    """Every episode has another cube and other servos."""

    def parameters(self, random: np.random.Generator) -> dict[str, dict[str, Any]]:
        kp = random.uniform(500, 1500)
        names = tribo.local.Model(self.model, name="lift.xml").names
        return {
            "mass": {names.bodies[-1]: random.uniform(0.05, 0.3)},
            "gain": {names.actuators[0]: [kp, 0, 0]},
            "bias": {names.actuators[0]: [0, -kp, -40]},
        }


@pytest.mark.parametrize("task", ["reach", "lift", _Varied])
def test_a_daemon_steps_them_with_the_same_results(client: tribo.Client, task: Any) -> None:
    n, steps = 4, 130
    task = task if isinstance(task, str) else task()
    random = np.random.default_rng(5)
    here = gym.TriboVectorEnv(task, n)
    there = gym.TriboVectorEnv(task, n, client=client)
    np.testing.assert_array_equal(here.reset(seed=1)[0], there.reset(seed=1)[0])
    for _ in range(steps):
        actions = random.uniform(-1, 1, (n, here.task.actions))
        ours, theirs = here.step(actions), there.step(actions)
        for a, b in zip(ours[:4], theirs[:4]):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(ours[4]["residual"], theirs[4]["residual"])
    sessions = sum(1 for _ in client.sessions())
    there.close()
    assert sum(1 for _ in client.sessions()) == sessions - 1
    here.close()


def test_episodes_differ_by_their_parameters_alone() -> None:
    env = gym.TriboVectorEnv(_Varied(), 3)
    env.reset(seed=[7, 7, 8])
    masses = [s.parameters()["mass"][-1] for s in env.worlds.states]
    assert masses[0] == masses[1] != masses[2]
    with pytest.raises(TypeError, match="no parameter weight"):
        env.worlds.set_parameters(weight={"cube": 1})
    env.close()
