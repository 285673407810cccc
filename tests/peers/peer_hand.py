"""The Shadow hand of gymnasium-robotics, uploaded with its meshes and streamed by a remote client.

The Python client uploads the model with everything it includes, opens a session, and sends 10,000
steps on one stream, each with new targets for the hand's position servos, WINDOW of them on the
way. `tribo run --controls` plays the same targets without a server; both must end in the same
bytes. Told are steps/s, the worst residual, and the daemon's memory before and after.

Environment: STEPS (10000).
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import Array, Report, scratch
from common_process import resident_bytes

import tribo
from tribo.files import collect
from tribo.v1 import runs_pb2

MODEL = common.package("gymnasium_robotics") / "envs/assets/hand/manipulate_block.xml"
STEPS = int(os.environ.get("STEPS", "10000"))
WINDOW = 32
SEED = 20263
LARGEST_RESIDUAL = 1e-6  # of the worst step, the tolerance that is asked for
MEMORY_GROWTH = 32 << 20


def targets(client: tribo.Client, scene: tribo.Scene) -> tuple[list[str], Array]:
    """Slow waves, one a servo, between 20 % and 80 % of its joint's range."""
    told = client.describe(scene)
    limits = {joint.name: (joint.lower, joint.upper) for joint in told.joints if joint.limited}
    rng = np.random.default_rng(SEED)
    time_s = scene.dt * np.arange(STEPS)
    columns = []
    for name in told.actuators:
        # robot0:A_FFJ3 moves robot0:FFJ3; coupled ones (FFJ1 with FFJ0) have names of their own
        joint = name.replace(":A_", ":")
        lower, upper = limits.get(joint, (0.0, 1.0))
        wave = 0.5 + 0.3 * np.sin(2 * np.pi * rng.uniform(0.2, 1.0) * time_s + rng.uniform(0, 6))
        columns.append(lower + wave * (upper - lower))
    return list(told.actuators), np.stack(columns, axis=1)


def write_controls(file: Path, dt: float, names: list[str], controls: Array) -> None:
    rows = (
        ",".join([repr(float(dt * i)), *(repr(float(v)) for v in row)])
        for i, row in enumerate(controls)
    )
    file.write_text("\n".join([",".join(["time", *names]), *rows, ""]))


def flat(joints: dict[str, dict[str, Any]], key: str) -> Array:
    """The coordinates of `tribo run --json`, in the model's order."""
    return np.concatenate([np.atleast_1d(np.array(j[key], float)) for j in joints.values()])


def stream(session: tribo.Session, controls: Array) -> tuple[tribo.StepAnswer, float, float]:
    """The last answer, seconds, worst residual."""
    worst = 0.0
    began = time.perf_counter()
    with session.stream(state=False) as steps:
        for i, row in enumerate(controls):
            steps.send(controls=row)
            if i >= WINDOW:
                worst = max(worst, steps.receive().certificates[0].residual)
        for _ in range(min(WINDOW, len(controls))):
            worst = max(worst, steps.receive().certificates[0].residual)
    return session.state(), time.perf_counter() - began, worst


def main() -> None:
    report = Report()
    with scratch() as folder, tribo.Daemon() as daemon, daemon.connect() as client:
        files = collect(MODEL)
        began = time.perf_counter()
        scene = client.load(MODEL)
        upload = time.perf_counter() - began
        names, controls = targets(client, scene)
        report.check(scene.actuators == 20, f"{scene.actuators} actuators")
        report.check(any(f.suffix == ".stl" for f in files.values()), "no mesh was uploaded")

        session = client.create_session(scene, label="peer_hand")
        session.step(10)
        session.reset()
        start = session.state().q
        assert start is not None
        before = resident_bytes(daemon.pid)
        end, seconds, worst = stream(session, controls)
        after = resident_bytes(daemon.pid)

        file = Path(folder) / "controls.csv"
        write_controls(file, scene.dt, names, controls)
        local = common.tribo("run", MODEL, "--steps", str(STEPS), "--controls", file, "--no-energy")
        assert end.q is not None
        assert end.u is not None
        q, u = flat(local["joints"], "position"), flat(local["joints"], "velocity")
        report.check(end.steps == STEPS, f"{end.steps} steps")
        report.check(q.tobytes() == end.q.tobytes(), f"q differs by {np.abs(q - end.q).max()}")
        report.check(u.tobytes() == end.u.tobytes(), f"u differs by {np.abs(u - end.u).max()}")
        report.check(worst < LARGEST_RESIDUAL, f"the worst residual is {worst}")
        report.check(after - before < MEMORY_GROWTH, f"memory grew by {after - before} bytes")
        moved = float(np.abs(end.q - start).max())
        report.check(moved > 0.1, "the hand did not move")

        print(json.dumps({
            "bench": "shadow_hand.stream", "steps": STEPS, "files": len(set(files.values())),
            "bytes": sum(f.stat().st_size for f in set(files.values())),
            "upload_seconds": round(upload, 3), "steps_per_second": STEPS / seconds,
            "local_steps_per_second": STEPS / local["seconds"], "residual": worst,
            "memory_before": before, "memory_after": after, "load": os.getloadavg()[0],
        }), flush=True)  # fmt: skip
        kept = client.record_benchmark(
            runs_pb2.Benchmark(
                name="shadow_hand.stream",
                metric="steps_per_second",
                unit="1/s",
                testbed=f"{os.cpu_count()} processors",
                build=client.server_info().build,
                samples=[STEPS / seconds],
                residual=worst,
            )
        )
        report.check(bool(kept.benchmark_id), "the benchmark was not kept")
        session.delete()
    report.finish()


if __name__ == "__main__":
    main()
