"""Tasks for learners: a model, initial states, observations and rewards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tribo.arrays import AnyArray, Floats


@dataclass(frozen=True)
class View:
    """Worlds as a task sees them: q (worlds, coordinates), u (worlds, dofs), goals (worlds, n)."""

    q: Floats
    u: Floats
    goals: Floats


class Task(ABC):
    """A task: subclass it for your own.

    Attributes:
        model: MJCF.
        steps: of the simulation, for each action.
        episode: actions, after which an episode is truncated.
        observations: numbers in an observation.
        actions: numbers in an action, each in [-1, 1].
        goals: numbers in a goal.
    """

    model: bytes
    steps: int
    episode: int
    observations: int
    actions: int
    goals: int

    @abstractmethod
    def start(self, random: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """q, u and the goal of a new episode of one world."""

    def parameters(self, random: np.random.Generator) -> dict[str, dict[str, Any]]:
        """Friction, masses and gains of a new episode of one world, by name; the same names always.

        return {"mass": {"cube": random.uniform(0.1, 0.3)}}
        """
        return {}

    @abstractmethod
    def controls(self, actions: Floats) -> Floats:
        """Controls (worlds, actuators) of actions (worlds, actions)."""

    @abstractmethod
    def observe(self, view: View) -> Floats:
        """Observations (worlds, observations)."""

    @abstractmethod
    def reward(self, view: View, actions: Floats) -> tuple[Floats, AnyArray]:
        """Rewards (worlds), and whether the goal is reached (worlds)."""


class Reach(Task):
    """An arm of two links in a plane reaches a point with its tip, by torques.

    The motors take the tip to any goal in a small part of an episode, so the share of its steps at
    the goal measures the policy and not the motors.
    """

    model = b"""<mujoco model="reach"><option timestep="0.01" gravity="0 0 0"/>
    <default><geom type="capsule" size="0.02" contype="0" conaffinity="0" density="1000"/>
    <joint type="hinge" axis="0 0 1" damping="0.6" armature="0.005"/></default>
    <worldbody><body name="upper"><joint name="shoulder"/><geom fromto="0 0 0 0.25 0 0"/>
      <body name="lower" pos="0.25 0 0"><joint name="elbow" limited="true" range="-160 160"/>
        <geom fromto="0 0 0 0.25 0 0"/></body></body></worldbody>
    <actuator><motor joint="shoulder" gear="4"/><motor joint="elbow" gear="2"/></actuator>
    </mujoco>"""
    steps, episode, observations, actions, goals = 2, 100, 10, 2, 2
    link = 0.25  # m
    near = 0.02  # m, from the goal: reached

    def start(self, random: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """An arm in any pose at rest, and a point that its tip can reach."""
        q = np.array([random.uniform(-np.pi, np.pi), random.uniform(-2.0, 2.0)])
        r, angle = random.uniform(0.15, 0.45), random.uniform(-np.pi, np.pi)
        return q, np.zeros(2), np.array([r * np.cos(angle), r * np.sin(angle)])

    def tip(self, q: Floats) -> Floats:
        """m, (worlds, 2)."""
        a, b = q[:, 0], q[:, 0] + q[:, 1]
        return self.link * np.stack([np.cos(a) + np.cos(b), np.sin(a) + np.sin(b)], axis=1)

    def controls(self, actions: Floats) -> Floats:
        """Torques over their gear."""
        return actions

    def observe(self, view: View) -> Floats:
        """Angles as sines and cosines, velocities, goal, and the way from the tip to it."""
        q, u = view.q, view.u
        away = view.goals - self.tip(q)
        return np.concatenate([np.cos(q), np.sin(q), 0.1 * u, 2 * view.goals, 4 * away], axis=1)

    def reward(self, view: View, actions: Floats) -> tuple[Floats, AnyArray]:
        """Less for distance and torque, more near the goal."""
        distance = np.linalg.norm(view.goals - self.tip(view.q), axis=1)
        near = distance < self.near
        return near - 2 * distance - 0.02 * (actions**2).sum(axis=1), near


class Lift(Task):
    """A jaw closes on a box that stands on the floor, and lifts it by friction alone."""

    model = b"""<mujoco model="lift"><option timestep="0.004"/>
    <default><geom friction="0.8"/></default>
    <worldbody><geom name="floor" type="plane" size="1 1 0.1"/>
      <body name="box" pos="0 0 0.03"><freejoint name="box"/>
        <geom type="box" size="0.02 0.02 0.03" mass="0.1"/></body>
      <body name="palm" pos="0 0 0.11"><joint name="rise" type="slide" axis="0 0 1"
          range="-0.06 0.3"/><geom type="box" size="0.06 0.02 0.01" mass="0.3"/>
        <body name="left" pos="-0.045 0 -0.04"><joint name="left" type="slide" axis="1 0 0"
            range="0 0.04" damping="10"/><geom type="box" size="0.005 0.015 0.03" mass="0.05"/>
        </body>
        <body name="right" pos="0.045 0 -0.04"><joint name="right" type="slide" axis="-1 0 0"
            range="0 0.04" damping="10"/><geom type="box" size="0.005 0.015 0.03" mass="0.05"/>
        </body>
      </body></worldbody>
    <actuator><position name="rise" joint="rise" kp="400" kv="60" ctrlrange="-0.06 0.3"/>
      <motor name="left" joint="left" ctrlrange="-10 10"/>
      <motor name="right" joint="right" ctrlrange="-10 10"/></actuator></mujoco>"""
    steps, episode, observations, actions, goals = 5, 60, 11, 2, 1
    high = 0.15  # m, of the box's centre: lifted

    def start(self, random: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """The box somewhere between the fingers, the palm at some height, both at rest."""
        x, y = random.uniform(-0.012, 0.012), random.uniform(-0.005, 0.005)
        rise = random.uniform(-0.01, 0.03)
        q = np.array([x, y, 0.03, 1, 0, 0, 0, rise, 0, 0], float)
        return q, np.zeros(9), np.array([self.high])

    def controls(self, actions: Floats) -> Floats:
        """Where the palm is to be, and the force of both fingers."""
        rise = 0.12 + 0.18 * actions[:, 0]
        grip = 10 * actions[:, 1]
        return np.stack([rise, grip, grip], axis=1)

    def observe(self, view: View) -> Floats:
        """Palm, fingers and box: places and velocities, scaled to about one."""
        q, u = view.q, view.u
        palm = 0.11 + q[:, 7:8]
        return np.concatenate(
            [
                10 * q[:, 0:2],
                10 * q[:, 2:3],
                10 * (palm - q[:, 2:3]),
                10 * q[:, 7:8],
                25 * q[:, 8:10],
                2 * u[:, 2:3],
                2 * u[:, 6:7],
                2 * u[:, 7:9],
            ],
            axis=1,
        )

    def reward(self, view: View, actions: Floats) -> tuple[Floats, AnyArray]:
        """The box's height, and before that a palm that comes down and fingers that close."""
        height = view.q[:, 2]
        above = np.abs(0.11 + view.q[:, 7] - height - 0.05)
        closed = view.q[:, 8:10].sum(axis=1)
        lifted = np.clip((height - 0.03) / (self.high - 0.03), 0, 1)
        reached = height > self.high
        return lifted + reached - above + 2 * closed - 0.005 * (actions**2).sum(axis=1), reached


TASKS: Mapping[str, type[Task]] = {"reach": Reach, "lift": Lift}
