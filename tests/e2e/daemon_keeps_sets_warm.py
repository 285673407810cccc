#!/usr/bin/env python3
"""A grasp in a session, one step a call: a step's warm start is the session's own.

The statuses of the last step, the history of its solves and the linear solves that they save are
the same whether the calls come alone or by turns with those of another session, after a fork, and
after the daemon was stopped and started again: the same sums in the certificates, the same bytes.
On the processors, and on a card that they play; there also as tests/bench/gpu asks a real one.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BUILD, Report, scratch

import tribo

report = Report()

PLUGIN = str((BUILD / "tests" / "plugin" / "card.so").resolve())
CARD = {"TRIBO_GPU_PLUGIN": PLUGIN, "TRIBOD_SERVER_BACKEND": "gpu"}
#: where, and the environment of the daemon
DEVICES: tuple[tuple[str, dict[str, str]], ...] = (("cpu", {}), ("gpu:0", CARD))

#: A jaw closes around a block on the floor and lifts it.
JAW = b"""<mujoco model="jaw"><compiler autolimits="true"/><option timestep="0.002"/>
<default><geom friction="0.6 0 0" condim="3"/></default><worldbody>
  <geom type="plane" size="1 1 1"/>
  <body name="block" pos="0 0 0.03"><freejoint/>
    <geom type="box" size="0.02 0.02 0.03" mass="0.3"/></body>
  <body pos="0 0 0.04"><joint name="lift" type="slide" axis="0 0 1" armature="0.5"/>
    <geom type="box" size="0.05 0.01 0.01" pos="0 0 0.06" mass="0.5" contype="0" conaffinity="0"/>
    <body pos="-0.04 0 0"><joint name="left" type="slide" axis="1 0 0" damping="80"/>
      <geom type="box" size="0.005 0.01 0.02" mass="0.05"/></body>
    <body pos="0.04 0 0"><joint name="right" type="slide" axis="-1 0 0" damping="80"/>
      <geom type="box" size="0.005 0.01 0.02" mass="0.05"/></body></body></worldbody>
<actuator><position name="lift" joint="lift" kp="3000" kv="150" forcerange="-60 60"/>
  <motor joint="left"/><motor joint="right"/></actuator></mujoco>"""

STEPS, MIDDLE, SHIFT = 240, 150, 60
DT = 0.002
SUMS = ("iterations", "known_statuses", "kept_statuses", "linear_solves", "factorizations")
#: of the certificate, as the sessions ask for it
TOLERANCE = 1e-8


class Played:
    """A session between calls, and the sums of its certificates."""

    def __init__(self, session: tribo.Session, shift: int = 0, made: int = 0) -> None:
        self.session = session
        self.shift = shift
        self.made = made
        self.sums: Counter[str] = Counter()

    def step(self) -> None:
        """One call: close, lift, and a pull to and fro."""
        time = DT * (self.made + self.shift)
        controls = [0.1 * min(max((time - 0.2) / 0.3, 0), 1), 15.0, 15.0]
        pull = 2 * math.sin(80 * time) if time > 0.35 else 0.0
        answer = self.session.step(1, controls=controls, forces=[0, pull] + 7 * [0], state=False)
        certificate = answer.certificates[0]
        report.check(certificate.residual <= TOLERANCE, f"residual {certificate.residual}")
        self.sums.update({name: getattr(certificate, name) for name in SUMS})
        self.made += 1

    def digest(self) -> str:
        """Of all that the next step depends on."""
        return self.session.snapshot(transient=True).sha256


def begin(client: tribo.Client, scene: tribo.Scene, device: str, shift: int = 0) -> Played:
    """A session of one world."""
    options = tribo.StepOptions(
        solve=tribo.SolveOptions(solver="auto", tolerance=TOLERANCE, maximum_iterations=2000)
    )
    return Played(client.create_session(scene, options=options, device=device), shift)


def play(folder: Path, device: str, environment: dict[str, str]) -> None:
    """Alone, by turns, forked, and over a restart."""
    with tribo.Daemon(data=folder, environment=environment) as daemon, daemon.connect() as client:
        scene = client.load(JAW, name="jaw.xml")
        alone = [begin(client, scene, device), begin(client, scene, device, SHIFT)]
        for one in alone:
            for _ in range(STEPS):
                one.step()
        turns = [begin(client, scene, device), begin(client, scene, device, SHIFT)]
        for _ in range(MIDDLE):
            for one in turns:
                one.step()
        fork = Played(turns[0].session.fork()[0], 0, MIDDLE)
        before = [Counter(one.sums) for one in turns]
        ids = [one.session.id for one in (*turns, fork)]
        report.equal(daemon.stop(), 0, "it stops")

    with tribo.Daemon(data=folder, environment=environment) as daemon, daemon.connect() as client:
        for one, session_id in zip((*turns, fork), ids, strict=True):
            one.session = client.session(session_id)
        report.equal({s.device for s in client.sessions()}, {device}, "where they were")
        for _ in range(MIDDLE, STEPS):
            for one in (*turns, fork):
                one.step()
        for one, other in zip(alone, turns, strict=True):
            report.equal(other.sums, one.sums, "sums by turns and over a restart")
            report.equal(
                other.digest(), client.session(one.session.id).snapshot(transient=True).sha256,
                "bytes by turns and over a restart",
            )  # fmt: skip
        report.equal(fork.digest(), turns[0].digest(), "bytes of the fork")
        report.equal(fork.sums, turns[0].sums - before[0], "sums of the fork")
        report.check(turns[0].digest() != turns[1].digest(), "two sessions are two")

    sums = alone[0].sums
    print({name: sums[name] for name in SUMS})
    kept, known = sums["kept_statuses"], sums["known_statuses"]
    report.check(known > 4 * STEPS, f"{known} statuses were known")
    report.check(0.95 * known < kept <= known, f"{kept} of {known} statuses were kept")
    report.check(0 < sums["linear_solves"] < 2 * STEPS, f"{sums['linear_solves']} linear solves")
    report.check(
        0 < sums["factorizations"] <= sums["linear_solves"],
        f"{sums['factorizations']} factorizations",
    )


def ask_as_a_bench() -> None:
    """The checks of run.py on a real card, on the played one."""
    script = Path(__file__).parent.parent / "bench" / "gpu" / "daemon_resume.py"
    done = subprocess.run(
        [sys.executable, script, "--build", BUILD, "--plugin", PLUGIN],
        capture_output=True, text=True, check=False, env={**os.environ, **CARD},
    )  # fmt: skip
    report.equal(done.returncode, 0, f"{script.name}: {done.stdout} {done.stderr}")


def main() -> None:
    """A daemon before, a daemon after."""
    with scratch() as folder:
        for device, environment in DEVICES:
            with report.case(f"sets stay with their session, {device}"):
                play(folder / device, device, environment)
        with report.case("and seen over HTTP"):
            ask_as_a_bench()
    report.finish()


main()
