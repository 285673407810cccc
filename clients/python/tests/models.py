"""Models that the tests upload."""

from __future__ import annotations

from pathlib import Path

#: A ball that rests on a floor.
BALL = b"""<mujoco model="ball"><worldbody>
  <geom name="floor" type="plane" size="1 1 0.1"/>
  <body name="ball" pos="0 0 0.1"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
</worldbody></mujoco>"""

#: A box above a floor, a lift that a servo moves, and a keyframe.
LIFT = b"""<mujoco model="lift">
  <option timestep="0.002" gravity="0 0 -9.81"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 0.1"/>
    <body name="box" pos="0 0 0.15">
      <freejoint name="box"/>
      <geom type="box" size="0.1 0.1 0.1" mass="1"/>
    </body>
    <body name="stage" pos="1 0 0.5">
      <joint name="lift" type="slide" axis="0 0 1" range="-0.1 0.4" damping="5"/>
      <geom type="box" size="0.05 0.05 0.05" mass="2"/>
    </body>
  </worldbody>
  <actuator><position name="servo" joint="lift" kp="5000" kv="200"/></actuator>
  <keyframe><key name="high" qpos="0 0 1 1 0 0 0  0.1"/></keyframe>
</mujoco>"""

#: A hand of two slides with motors, without a palm.
HAND = b"""<mujoco model="jaws"><worldbody><body name="palm">
  <geom type="box" size="0.05 0.02 0.01" pos="0 0 0.08" mass="0.3"/>
  <body name="left" pos="-0.05 0 0">
    <joint name="l" type="slide" axis="1 0 0" range="0 0.05" damping="20"/>
    <geom type="box" size="0.005 0.01 0.02" mass="0.05"/>
  </body>
  <body name="right" pos="0.05 0 0">
    <joint name="r" type="slide" axis="-1 0 0" range="0 0.05" damping="20"/>
    <geom type="box" size="0.005 0.01 0.02" mass="0.05"/>
  </body>
</body></worldbody><actuator>
  <motor name="close_left" joint="l" ctrlrange="0 40"/>
  <motor name="close_right" joint="r" ctrlrange="0 40"/>
</actuator></mujoco>"""


def write_box(path: Path, half: float) -> None:
    """A cube as OBJ, faces outwards."""
    corners = [(x, y, z) for x in (-half, half) for y in (-half, half) for z in (-half, half)]
    faces = [
        (1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4),
    ]  # fmt: skip
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    lines += [f"f {a} {b} {c}\nf {a} {c} {d}" for a, b, c, d in faces]
    path.write_text("\n".join([*lines, ""]))
