#!/usr/bin/env python3
"""Twenty times the daemon is killed under load, as a crash would end it, and started again over the
same store: everything that it had acknowledged is there, byte for byte.

A second daemon, which is not killed, makes the same sessions and the same steps. A recovered
session has the bytes of its counterpart after as many steps, and at least the acknowledged steps.
"""

from __future__ import annotations

import random
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import Report, make_models, scratch

import tribo
from tribo.v1.runs_pb2 import RUN_STATUS_DONE as DONE
from tribo.v1.runs_pb2 import RUN_STATUS_INTERRUPTED as INTERRUPTED
from tribo.v1.runs_pb2 import RUN_STATUS_RUNNING as RUNNING

ROUNDS = 20
THREADS = 4

#: Four bodies that fall onto each other and stay in contact.
PILE = b"""<mujoco model="pile"><worldbody>
  <geom type="plane" size="2 2 0.1"/>
  <body pos="0 0 0.06"><freejoint/><geom type="box" size="0.05 0.05 0.05" mass="1"/></body>
  <body pos="0.02 0 0.18"><freejoint/><geom type="box" size="0.05 0.05 0.05" mass="1"/></body>
  <body pos="0 0.02 0.3"><freejoint/><geom type="sphere" size="0.05" mass="0.5"/></body>
  <body pos="0.2 0 0.1"><freejoint/><geom type="capsule" size="0.04 0.05" mass="0.5"/></body>
</worldbody></mujoco>"""


@dataclass
class Kept:
    """A snapshot that the daemon has acknowledged."""

    id: str
    sha256: str
    steps: int


@dataclass
class Account:
    """The daemon's acknowledgements about one session, and requests without an answer."""

    id: str
    start: float  # m/s, of the first body along x: sets sessions apart
    steps: int = 0
    kept: list[Kept] = field(default_factory=list)
    delete_asked: bool = False
    deleted: bool = False


def start_velocity(client: tribo.Client, session: tribo.Session, speed: float) -> None:
    """Sets a session apart from the others."""
    velocity = [0.0] * 24
    velocity[0] = speed
    session.set_state(u=velocity)


class Load:
    """Threads that work on sessions until the daemon is gone, and remember its answers."""

    def __init__(
        self, daemon: tribo.Daemon, scene: str, accounts: list[Account], seed: int
    ) -> None:
        self.daemon, self.scene, self.accounts, self.seed = daemon, scene, accounts, seed
        self.made: list[Account] = []
        self.lock = threading.Lock()
        self.calls = 0
        self.wrong: list[str] = []
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def work(self, index: int) -> None:
        """One thread: its share of the sessions, and a new one at its beginning."""
        chance = random.Random(100 * self.seed + index)
        try:
            with tribo.connect(self.daemon.grpc, attempts=1, timeout=60) as client:
                mine = [a for a in self.accounts[index::THREADS] if not a.delete_asked]
                while True:
                    if len(mine) < 2:
                        mine.append(self.create(client, chance))
                    self.use(client, chance, mine)
                    with self.lock:
                        self.calls += 1
        except (tribo.UnavailableError, tribo.CancelledError):
            pass  # it has been killed
        except Exception as error:
            self.wrong.append(f"{type(error).__name__}: {error}")

    def create(self, client: tribo.Client, chance: random.Random) -> Account:
        """A session with a snapshot of where it begins."""
        session = client.create_session(self.scene, label="load")
        account = Account(session.id, chance.uniform(-1, 1))
        start_velocity(client, session, account.start)
        kept = session.snapshot()
        account.kept.append(Kept(kept.snapshot_id, kept.sha256, 0))
        with self.lock:
            self.made.append(account)
        return account

    def use(self, client: tribo.Client, chance: random.Random, mine: list[Account]) -> None:
        """One call on one session."""
        account = chance.choice(mine)
        session = client.session(account.id)
        dice = chance.random()
        if dice < 0.7:
            account.steps = session.step(chance.randint(1, 4)).steps
        elif dice < 0.97:
            kept = session.snapshot()
            account.kept.append(Kept(kept.snapshot_id, kept.sha256, account.steps))
        elif len(mine) > 1:
            mine.remove(account)
            account.delete_asked = True
            session.delete()
            account.deleted = True


def sha_at(session: tribo.Session, steps: int, now: int) -> str:
    """Steps the reference daemon on and gives the digest of its snapshot."""
    if steps > now:
        session.step(steps - now)
    return session.snapshot(transient=True).sha256


def check_session(
    report: Report, client: tribo.Client, twin: tribo.Client, twins: dict[str, int], a: Account
) -> None:
    """A recovered session equals the reference after as many steps."""
    session = client.session(a.id)
    came_back = session.state()
    last = a.kept[-1]
    report.check(
        came_back.steps >= last.steps,
        f"session {a.id} is back at step {came_back.steps}, step {last.steps} was acknowledged",
    )
    sha = session.snapshot(transient=True, data=True)
    expected = sha_at(twin.session(twin_ids[a.id]), came_back.steps, twins[a.id])
    twins[a.id] = came_back.steps
    report.equal(sha.sha256, expected, f"bytes of session {a.id} at step {came_back.steps}")
    if came_back.steps == last.steps:
        report.equal(sha.sha256, last.sha256, f"bytes of snapshot {last.id}")
    a.steps = came_back.steps


def check_old_snapshot(
    report: Report, client: tribo.Client, twin: tribo.Client, scene: str, a: Account, kept: Kept
) -> None:
    """A snapshot of any age restores in a fork, which then steps as an undisturbed session does."""
    fork = client.session(a.id).fork()[0]
    fork.restore(kept.id)
    report.equal(fork.snapshot(transient=True).sha256, kept.sha256, f"restored {kept.id}")
    fork.step(7)
    with twin.create_session(scene) as undisturbed:
        start_velocity(twin, undisturbed, a.start)
        report.equal(
            fork.snapshot(transient=True).sha256,
            sha_at(undisturbed, kept.steps + 7, 0),
            f"{kept.id} and seven steps",
        )
    fork.delete()


twin_ids: dict[str, str] = {}


def check_round(
    report: Report,
    client: tribo.Client,
    twin: tribo.Client,
    scene: str,
    accounts: list[Account],
    twins: dict[str, int],
    chance: random.Random,
) -> None:
    """Everything that was acknowledged before the kill is there after it."""
    open_now = {s.session_id for s in client.sessions()}
    runs = {r.run_id: r for r in client.runs()}
    for a in accounts:
        # a delete that was not answered may have been done or not
        a.delete_asked = a.deleted or (a.delete_asked and a.id not in open_now)
    alive = [a for a in accounts if not a.delete_asked]
    for a in alive:
        if a.id not in twin_ids:
            session = twin.create_session(scene)
            start_velocity(twin, session, a.start)
            twin_ids[a.id], twins[a.id] = session.id, 0
        if report.check(a.id in open_now, f"session {a.id} is lost"):
            check_session(report, client, twin, twins, a)
    for a in accounts:
        if report.check(a.id in runs, f"the run of session {a.id} is lost") and a in alive:
            report.equal(runs[a.id].status, RUNNING, f"status of run {a.id}")
        if a.deleted:
            report.check(a.id not in open_now, f"session {a.id} was deleted, and is back")
    a = chance.choice(alive)
    check_old_snapshot(report, client, twin, scene, a, chance.choice(a.kept))


def finish_runs(report: Report, client: tribo.Client, accounts: list[Account]) -> None:
    """Sessions that are deleted at last end their runs, with all their steps."""
    for a in accounts:
        if not a.delete_asked:
            client.session(a.id).step()
            client.session(a.id).delete()
            a.steps += 1
    runs = {r.run_id: r for r in client.runs()}
    for a in accounts:
        report.equal(runs[a.id].status, DONE, f"status of run {a.id} at its end")
        report.check(runs[a.id].end_time_us >= runs[a.id].start_time_us > 0, f"times of run {a.id}")


def grasp_jobs(report: Report, folder: Path) -> None:
    """A job with a summary stays done; one at work at the end reports that."""

    def evaluate(client: tribo.Client, label: str, hold: float) -> tribo.client.GraspJob:
        return client.evaluate_grasps(
            tribo.GraspObject(folder / "mug.obj", friction=0.7, density=2400),
            tribo.Hand(folder / "hand.xml", closing_actuators=("close_left", "close_right")),
            [tribo.GraspPose((0, 0, 0.055), force=20, name=f"grasp {i}") for i in range(2)],
            protocol=tribo.Protocol(lift=0.05, lift_seconds=0.1, hold_seconds=hold),
            label=label,
        )

    make_models(folder)
    daemon = tribo.Daemon(data=folder / "grasps")
    with daemon.connect() as client:
        job = evaluate(client, "done", 0.1)
        held = sum(r.verdict == tribo.Verdict.HELD for r in job)
        long = evaluate(client, "interrupted", 10000)
        for _ in range(600):
            if any(r.label == "interrupted" for r in client.runs()):
                break
            threading.Event().wait(0.05)
        daemon.kill()
        try:
            list(long)
            report.check(False, "a job that was killed has ended well")
        except tribo.TriboError:
            pass
    with tribo.Daemon(data=folder / "grasps") as daemon, daemon.connect(timeout=60) as client:
        runs = {r.label: r for r in client.runs()}
        report.equal(set(runs), {"done", "interrupted"}, "runs of grasp jobs")
        if report.check(job.summary is not None, "the summary of a job") and job.summary:
            run = client.run(job.summary.run_id).run
            report.equal((run.label, run.status), ("done", DONE), "the job that was done")
            report.equal((run.grasps, run.grasps_held), (2, held), "its counts")
            report.equal(run.steps, job.summary.world_steps, "its steps")
        run = runs["interrupted"]
        report.equal(run.status, INTERRUPTED, "the job that was killed")
        report.check(run.end_time_us >= run.start_time_us > 0, "its times")
        kinds = [e.kind for e in client.run(run.run_id).events]
        report.check("interrupted" in kinds, f"its events: {kinds}")


def main() -> None:
    """Runs the rounds."""
    report = Report()
    chance = random.Random(9)
    accounts: list[Account] = []
    twins: dict[str, int] = {}
    calls = 0
    with scratch() as folder, tribo.Daemon(data=folder / "twin") as twin_daemon:
        twin = twin_daemon.connect(timeout=60)
        scene = twin.load(PILE, name="pile.xml").id
        for number in range(ROUNDS):
            # in every other round, automatic checkpoints
            seconds = {"TRIBOD_SESSIONS_CHECKPOINT_SECONDS": "0.1" if number % 2 else "0"}
            daemon = tribo.Daemon(data=folder / "killed", environment=seconds)
            with report.case(f"round {number}"), daemon.connect(timeout=60) as client:
                if number == 0:
                    report.equal(client.load(PILE, name="pile.xml").id, scene, "id of the scene")
                else:
                    check_round(report, client, twin, scene, accounts, twins, chance)
                load = Load(daemon, scene, accounts, number)
                threading.Event().wait(chance.uniform(0.2, 0.6))
                daemon.kill()
                for thread in load.threads:
                    thread.join(60)
                report.check(not any(t.is_alive() for t in load.threads), "calls hang")
                report.equal(load.wrong, [], "errors under load")
                accounts += load.made
                calls += load.calls
        with tribo.Daemon(data=folder / "killed") as daemon, daemon.connect(timeout=60) as client:
            check_round(report, client, twin, scene, accounts, twins, chance)
            kept = sum(len(a.kept) for a in accounts)
            finish_runs(report, client, accounts)
            report.equal(daemon.stop(), 0, "exit status")
        twin.close()
        with report.case("grasp jobs"):
            grasp_jobs(report, folder)
    print(f"{ROUNDS} kills, {calls} calls, {len(accounts)} sessions, {kept} snapshots acknowledged")
    report.finish()


if __name__ == "__main__":
    main()
