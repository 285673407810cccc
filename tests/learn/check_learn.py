#!/usr/bin/env python3
"""PPO learns tasks of `tribo.gym`; check_env passes; tensors of torch and JAX come and go.

    make check-learn ARGS="--task reach --steps 150000"

Prints the return curve, wall times and the environment's steps per second with 1, 64 and 4,096
worlds, in this process and over a daemon, as JSON lines with --json. PPO of stable-baselines3
learns on processors. The check fails where the last tenth of the episodes is at the goal for less
than the task's mark, which a policy without learning does not reach. That the mark of reach can be
reached at all is shown first, by a controller that knows the arm's kinematics.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import gymnasium
import numpy as np
import stable_baselines3
import torch
from gymnasium.utils.env_checker import check_env
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_checker import check_env as check_env_of_sb3

import tribo
from tribo import local
from tribo.gym import TriboEnv, TriboVectorEnv
from tribo.gym.sb3 import StableBaselinesEnv

#: mean share of an episode's steps at the goal that counts as learned; chance reaches below 0.05
MARK = {"reach": 0.5, "lift": 0.3}
STEPS = {"reach": 600_000, "lift": 150_000}


#: share of an episode's steps at the goal that the controller below reaches
ATTAINABLE = 0.7


def angles_to(goals: np.ndarray, q: np.ndarray, link: float) -> np.ndarray:
    """The turns of both joints that take the tip to the goals, by the nearer of two elbows."""
    radius = np.minimum(np.linalg.norm(goals, axis=1), 2 * link)
    bend = 2 * np.arccos(radius / (2 * link))
    direction = np.arctan2(goals[:, 1], goals[:, 0])
    ways = []
    for side in (1, -1):
        turn = np.angle(np.exp(1j * (direction - side * bend / 2 - q[:, 0])))
        ways.append(np.stack([turn, side * bend - q[:, 1]], axis=1))
    nearer = np.abs(ways[0]).max(axis=1) < np.abs(ways[1]).max(axis=1)
    return np.where(nearer[:, None], *ways)


def check_attainable(worlds: int = 256) -> float:
    """Share of reach's steps at the goal under a spring and damper in the joints."""
    env = TriboVectorEnv("reach", worlds)
    env.reset(seed=0)
    task, share = env.task, 0.0
    for _ in range(task.episode):
        now = env.worlds.look()
        torque = 20 * angles_to(env._goals, now.q, task.link) - 1.5 * now.u
        share += float(env.step(torque / (4, 2))[4]["success"].mean()) / task.episode
    env.close()
    return share


class Curve(BaseCallback):
    """Mean return and share of steps at the goal of the episodes, by time."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[dict[str, float]] = []
        self.returns: list[float] = []
        self.shares: list[float] = []
        self._began = time.perf_counter()

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                self.returns.append(info["episode"]["r"])
                self.shares.append(info["episode"]["success"])
        return True

    def _on_rollout_end(self) -> None:
        if self.returns:
            self.rows.append(
                {
                    "steps": self.num_timesteps,
                    "seconds": time.perf_counter() - self._began,
                    "return": float(np.mean(self.returns[-100:])),
                    "success": float(np.mean(self.shares[-100:])),
                }
            )


def learn(task: str, steps: int, worlds: int, seed: int) -> tuple[Curve, float]:
    """Trains; returns the curve and the seconds."""
    torch.set_num_threads(1)  # the network is small: threads that wait for each other cost more
    env = StableBaselinesEnv(TriboVectorEnv(task, worlds))
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=128,
        batch_size=1024,
        n_epochs=8,
        gamma=0.97,
        learning_rate=1e-3,
        policy_kwargs={"net_arch": [64, 64]},
        seed=seed,
        device="cpu",
    )
    curve = Curve()
    began = time.perf_counter()
    model.learn(steps, callback=curve)
    seconds = time.perf_counter() - began
    env.close()
    return curve, seconds


def speed(
    task: str, worlds: int, client: tribo.Client | None = None, seconds: float = 3.0
) -> dict[str, Any]:
    """Steps of the environment per second, all worlds together, here or by a daemon."""
    env = TriboVectorEnv(task, worlds, client=client)
    env.reset(seed=0)
    actions = env.action_space.sample()
    env.step(actions)
    began, done, worst = time.perf_counter(), 0, 0.0
    while time.perf_counter() - began < seconds:
        infos = env.step(actions)[4]
        worst = max(worst, float(infos["residual"].max()))
        done += worlds
    rate = done / (time.perf_counter() - began)
    env.close()
    by = "this process" if client is None else "a daemon"
    return {"worlds": worlds, "by": by, "steps_per_second": rate, "worst_residual": worst}


def check_daemon(task: str, worlds: int = 8, steps: int = 50) -> None:
    """An environment over a daemon has the bytes of one in this process, and leaves no session."""
    random = np.random.default_rng(1)
    with tribo.Daemon() as daemon, daemon.connect() as client:
        here, there = TriboVectorEnv(task, worlds), TriboVectorEnv(task, worlds, client=client)
        assert np.array_equal(here.reset(seed=1)[0], there.reset(seed=1)[0])
        for _ in range(steps):
            actions = random.uniform(-1, 1, (worlds, here.task.actions))
            ours, theirs = here.step(actions), there.step(actions)
            assert all(np.array_equal(a, b) for a, b in zip(ours[:4], theirs[:4]))
        here.close()
        there.close()
        assert not list(client.sessions()), "a session is left"


def check_tensors() -> None:
    """Tensors of torch and JAX are taken and given by DLPack."""
    model = local.Model(TriboVectorEnv("lift", 1).task.model, name="lift.xml")
    worlds = local.Worlds(model, 4)
    controls = torch.zeros(4, model.actuators, dtype=torch.float64)
    controls[:, 0] = torch.arange(4) * 0.05
    answer = worlds.step(100, controls=controls)
    q = torch.from_dlpack(tribo.to_dlpack(answer.q))
    assert q.shape == (4, model.coordinates)
    assert bool((q[1:, 7] > q[:-1, 7]).all()), "the palms rise in order"
    learned = torch.zeros(4, model.actuators, requires_grad=True)
    refused = ""
    try:
        worlds.step(1, controls=learned)
    except ValueError as error:
        refused = str(error)
    assert "host memory" in refused, "a tensor with a graph was taken"
    import jax

    same = jax.dlpack.from_dlpack(tribo.to_dlpack(answer.q.astype(np.float32)))
    worlds.step(1, controls=jax.numpy.zeros((4, model.actuators), "float32"))
    assert np.allclose(np.asarray(same), answer.q, atol=1e-6)


def main() -> int:
    """Runs all checks, or those that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=["reach", "lift", "both"], default="both")
    parser.add_argument("--steps", type=int, default=0, help="of the environments, in all")
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="a JSON object for each result")
    options = parser.parse_args()

    def tell(**row: Any) -> None:
        text = " ".join(
            f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()
        )
        print(json.dumps(row) if options.json else text, flush=True)

    tell(
        stable_baselines3=stable_baselines3.__version__,
        torch=torch.__version__,
        gymnasium=gymnasium.__version__,
    )
    check_tensors()
    tell(check="tensors of torch and JAX", passed=True)
    failed = 0
    for task in ["reach", "lift"] if options.task == "both" else [options.task]:
        for checker, name in ((check_env, "gymnasium"), (check_env_of_sb3, "stable_baselines3")):
            env = TriboEnv(task)
            checker(env)
            env.close()
            tell(check=f"check_env of {name}", task=task, passed=True)
        check_daemon(task)
        tell(check="the same bytes over a daemon", task=task, passed=True)
        for worlds in (1, 64, 4096):
            tell(task=task, **speed(task, worlds))
        with tribo.Daemon() as daemon, daemon.connect() as client:
            for worlds in (1, 64, 4096):
                tell(task=task, **speed(task, worlds, client))
        if task == "reach":
            share = check_attainable()
            failed += share < ATTAINABLE
            tell(check="a controller reaches", passed=share >= ATTAINABLE, task=task, success=share)
        steps = options.steps or STEPS[task]
        curve, seconds = learn(task, steps, options.worlds, options.seed)
        stride = max(1, len(curve.rows) // 10)
        for row in curve.rows[::stride]:
            tell(task=task, **row)
        last = float(np.mean(curve.shares[-max(10, len(curve.shares) // 10) :]))
        first = float(np.mean(curve.shares[: options.worlds]))
        good = last >= MARK[task] and first < MARK[task] / 2
        failed += not good
        tell(task=task, learned=good, first=first, last=last, seconds=seconds,
             steps_per_second=steps / seconds)  # fmt: skip
    return failed


if __name__ == "__main__":
    sys.exit(main())
