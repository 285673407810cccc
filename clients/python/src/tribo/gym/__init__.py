"""Environments of Gymnasium over Tribod's worlds (`pip install 'tribo[gym]'`).

    env = tribo.gym.TriboVectorEnv("lift", num_envs=64)
    observations, infos = env.reset(seed=1)
    observations, rewards, terminated, truncated, infos = env.step(env.action_space.sample())

Every step of every world is solved to its tolerance: `infos["residual"]` has the figures.
"""

from tribo.gym.envs import TriboEnv, TriboVectorEnv
from tribo.gym.tasks import TASKS, Lift, Reach, Task

__all__ = ["TASKS", "Lift", "Reach", "Task", "TriboEnv", "TriboVectorEnv"]
