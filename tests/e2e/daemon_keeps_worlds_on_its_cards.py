#!/usr/bin/env python3
"""A daemon with cards: sessions stay where they began and stay on their card between calls, with
the same bytes beside any other work; forks, snapshots, restarts, short memory; the choice of a card
by size and by name; metrics. The cards are played by the processor."""

from __future__ import annotations

import re
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BALL, BUILD, Report, make_models, scratch

import tribo

PLUGIN = str((BUILD / "tests" / "plugin" / "card.so").resolve())
report = Report()

#: Twelve boxes that fall onto each other.
PILE = (
    '<mujoco model="pile"><worldbody><geom type="plane" size="2 2 0.1"/>'
    + "".join(
        f'<body name="b{i}" pos="{0.03 * (i % 3)} {0.02 * (i % 2)} {0.11 + 0.21 * i}">'
        '<freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>'
        for i in range(12)
    )
    + "</worldbody></mujoco>"
).encode()


def environment(backend: str, **more: str) -> dict[str, str]:
    """Of a daemon with played cards."""
    return {"TRIBO_GPU_PLUGIN": PLUGIN, "TRIBOD_SERVER_BACKEND": backend, **more}


def metrics(daemon: tribo.Daemon) -> dict[str, float]:
    """The page as numbers by name and labels."""
    with urllib.request.urlopen(f"http://{daemon.http}/metrics", timeout=5) as page:
        lines = page.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def card(numbers: dict[str, float], name: str, device: str = "gpu:0") -> float:
    """One number of one device."""
    return numbers[f'tribod_{name}{{device="{device}"}}']


def stay(daemon: tribo.Daemon) -> None:
    """Steps cost no copies of worlds, answers and snapshots one; forks are made on the card."""
    with daemon.connect() as client:
        scene = client.load(PILE, name="pile.xml")
        session = client.create_session(scene, worlds=3)
        beside = client.create_session(scene, worlds=2)
        at_home = client.create_session(scene, worlds=3, device="cpu")
        session.step(20, state=False)
        beside.step(3, state=False)
        before = metrics(daemon)
        for _ in range(5):
            session.step(4, state=False)
        after = metrics(daemon)
        for name in ("gpu_uploads_total", "gpu_fetches_total", "gpu_moves_total"):
            report.equal(card(after, name), card(before, name), f"{name} over five steps")
        report.check(
            card(after, "gpu_launches_total") > card(before, "gpu_launches_total"), "launches"
        )
        report.equal(card(after, "gpu_worlds"), 5, "worlds on the card")
        report.equal(card(after, "device_sessions"), 2, "sessions there")
        report.equal(card(after, "device_sessions", "cpu"), 1, "sessions on the processors")

        report.check(session.state().q.shape[0] == 3, "the state comes")
        report.equal(
            card(metrics(daemon), "gpu_fetches_total"),
            card(after, "gpu_fetches_total") + 1,
            "and all worlds at once",
        )
        session.step(10)
        forks = session.fork(4)
        for fork in forks:
            fork.step(10)
        session.step(10)
        numbers = metrics(daemon)
        report.check(card(numbers, "gpu_moves_total") >= 12, "forks were copied on the card")
        report.equal(card(numbers, "gpu_uploads_total"), card(after, "gpu_uploads_total"), "only")
        digests = {s.snapshot(transient=True).sha256 for s in [session, *forks]}
        report.equal(len(digests), 1, "forks and their parent are the same after the same steps")

        at_home.step(60)
        report.check(
            abs(at_home.state().q - session.state().q).max() < 1e-6, "as on the processors, nearly"
        )


def come_back(folder: Path) -> None:
    """A session is on its card again after a restart, byte for byte."""
    gpu = environment("gpu", TRIBO_TEST_CARDS="2")
    with tribo.Daemon(data=folder, environment=gpu) as daemon, daemon.connect() as client:
        scene = client.load(PILE, name="pile.xml")
        where = {name: client.create_session(scene, device=name) for name in ("gpu:1", "cpu")}
        ids = {name: session.id for name, session in where.items()}
        digests = {}
        for name, session in where.items():
            session.step(25)
            digests[name] = session.snapshot().sha256
        report.equal(daemon.stop(), 0, "it stops")
    with tribo.Daemon(data=folder, environment=gpu) as daemon, daemon.connect() as client:
        devices = {s.session_id: s.device for s in client.sessions()}
        for name, session_id in ids.items():
            report.equal(devices[session_id], name, "it is where it was")
            there = client.session(session_id).snapshot(transient=True).sha256
            report.equal(there, digests[name], "as it was")
            client.session(session_id).step(5)
    alone = environment("cpu")
    with tribo.Daemon(data=folder, environment=alone) as daemon, daemon.connect() as client:
        report.equal({s.device for s in client.sessions()}, {"cpu"}, "without cards it moves")
        report.check(client.session(ids["gpu:1"]).step(5).steps > 0, "and steps")


def be_short(folder: Path) -> None:
    """More worlds than fit the card, on two cards of which each gets its share."""
    small = environment("gpu", TRIBO_TEST_CARD_MEMORY=str(6 << 20), TRIBO_TEST_CARDS="2")
    digests = []
    for more in (small, environment("gpu")):
        data = folder / f"short {len(digests)}"
        with tribo.Daemon(data=data, environment=more) as daemon, daemon.connect() as client:
            scene = client.load(PILE, name="pile.xml")
            sessions = [client.create_session(scene, worlds=40) for _ in range(8)]
            for _ in range(2):
                for session in sessions:
                    session.step(5)
            digests.append([s.snapshot(transient=True).sha256 for s in sessions])
            numbers = metrics(daemon)
            if more is small:
                for name in ("gpu:0", "gpu:1"):
                    report.equal(card(numbers, "device_sessions", name), 4, f"sessions of {name}")
                    report.equal(card(numbers, "gpu_worlds", name), 160, f"worlds of {name}")
                    report.check(
                        card(numbers, "gpu_evictions_total", name) > 0, f"{name} made room"
                    )
                    report.check(
                        card(numbers, "gpu_pool_bytes", name) <= 3 << 20, "within its bounds"
                    )
    report.equal(digests[0], digests[1], "the bytes with much memory and with little")


def choose(folder: Path) -> None:
    """By size, by name, and refusals."""
    auto = environment("auto", TRIBOD_SCHEDULER_GPU_WORLDS="16", TRIBOD_SCHEDULER_GPU_BODIES="10")
    make_models(folder)
    data = folder / "choose"
    with tribo.Daemon(data=data, environment=auto) as daemon, daemon.connect() as client:
        devices = [d.name for d in client.server_info().devices]
        report.equal(devices, ["gpu:0", "cpu"], "devices")
        ball, pile = client.load(BALL), client.load(PILE, name="pile.xml")
        for scene, worlds, asked, expected in (
            (ball, 1, "", "cpu"),
            (ball, 15, "", "cpu"),
            (ball, 16, "", "gpu:0"),
            (pile, 1, "", "gpu:0"),
            (ball, 1, "gpu:0", "gpu:0"),
            (pile, 50, "cpu", "cpu"),
        ):
            session = client.create_session(scene, worlds=worlds, device=asked)
            device = next(s.device for s in client.sessions() if s.session_id == session.id)
            report.equal(device, expected, f"{worlds} worlds, asked for '{asked}'")
            session.step(2)
        # every solver goes there
        staggered = tribo.StepOptions(solve=tribo.SolveOptions(solver="staggered"))
        session = client.create_session(pile, device="gpu:0", options=staggered)
        answer = session.step(100)
        report.equal(answer.certificates[0].solver, "staggered", "normals and friction in turn")
        # features that cards lack: the processors, and an error if a card was required
        direct = tribo.StepOptions(precision="single", report_energy=True)
        session = client.create_session(pile, worlds=50, options=direct)
        device = next(s.device for s in client.sessions() if s.session_id == session.id)
        report.equal(device, "cpu", "energies in float")
        error = report.raises(
            tribo.TriboError,
            "the same on a card",
            lambda: client.create_session(pile, device="gpu:0", options=direct),
        )
        report.check("not reported in float on the GPU" in str(error), f"it says why: {error}")
        report.raises(
            tribo.NotFoundError,
            "a card too many",
            lambda: client.create_session(ball, device="gpu:1"),
        )
    with tribo.Daemon(data=folder / "auto", environment=environment("auto")) as daemon:
        found = re.search(r"gpu_worlds=(\d+)", daemon.log.read_text())
        report.check(found is not None and int(found[1]) >= 2, "measured when it started")
        report.check(card(metrics(daemon), "device_warm_up_seconds") > 0, "and how long that took")


def grasp(folder: Path) -> None:
    """Grasps on a card give the processors' results."""
    make_models(folder)
    auto = environment("auto", TRIBOD_SCHEDULER_GPU_WORLDS="12")
    data = folder / "grasp"
    with tribo.Daemon(data=data, environment=auto) as daemon, daemon.connect() as client:
        seen = {}
        # a mug that is a mesh is quicker on the processors, its hull is as good on a card
        for convex, device, expected in (
            (False, "", "cpu"), (True, "", "gpu:0"), (False, "cpu", "cpu"),
            (False, "gpu:0", "gpu:0"),
        ):  # fmt: skip
            job = client.evaluate_grasps(
                tribo.GraspObject(folder / "mug.obj", friction=0.7, density=2400, convex=convex),
                tribo.Hand(folder / "hand.xml", closing_actuators=("close_left", "close_right")),
                [tribo.GraspPose((0, 0, z), force=20, name=f"{z}") for z in (0.055, 0.03, 0.4)],
                protocol=tribo.Protocol(lift=0.05, lift_seconds=0.1, hold_seconds=0.1),
                perturbation=tribo.Perturbation(count=4, seed=7, position=0.001, friction=0.1),
                device=device,
            )
            seen[device] = list(job)
            report.check(job.summary is not None, "a summary")
            if job.summary is not None:
                report.equal(job.summary.device, expected, f"who played, asked for '{device}'")
                report.equal(job.summary.trials, 12, "trials")
                report.equal(client.run(job.summary.run_id).run.device[:3], expected[:3], "the run")
        for there, here in zip(seen["gpu:0"], seen["cpu"], strict=True):
            report.equal(
                [t.verdict for t in there.trials], [t.verdict for t in here.trials], there.name
            )
            for a, b in zip(there.trials, here.trials, strict=True):
                report.check(abs(a.slip - b.slip) < 1e-6, f"slip {a.slip}, not {b.slip}")
        verdicts = {t.verdict for result in seen["cpu"] for t in result.trials}
        report.check(len(verdicts) > 1, f"grasps of several kinds: {verdicts}")


def main() -> None:
    """Every case with daemons of its own."""
    with scratch() as folder:
        with (
            report.case("worlds stay"),
            tribo.Daemon(data=folder / "stay", environment=environment("gpu")) as daemon,
        ):
            stay(daemon)
        with report.case("after a restart"):
            come_back(folder / "data")
        with report.case("short of memory"):
            be_short(folder)
        with report.case("who gets a card"):
            choose(folder)
        with report.case("grasps"):
            grasp(folder)
    report.finish()


main()
