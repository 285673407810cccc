"""Watch gives every evaluation of a step by the volume law: forces, torques, centroids, boxes and
the contributions of triangles. Steps keep them only while a watcher asks, and their bytes do not
change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common_daemon import Report, scratch

import tribo
from tribo.v1 import common_pb2, simulation_pb2

SCENE = b"""<mujoco model="cube"><option timestep="0.001" gravity="0 0 -9.81"/><worldbody>
  <geom name="floor" type="plane" size="2 2 0.1"/>
  <body name="cube" pos="0 0 0.4999"><freejoint/>
    <geom name="cube" type="box" size="0.5 0.5 0.5" density="1000"/></body>
</worldbody></mujoco>"""
WEIGHT = 9810.0
STEPS = 4000
OPTIONS = tribo.StepOptions(scheme="volume")
TYPES = {
    common_pb2.DATA_TYPE_FLOAT64: np.float64,
    common_pb2.DATA_TYPE_FLOAT32: np.float32,
    common_pb2.DATA_TYPE_INT32: np.int32,
}


def numbers(array: common_pb2.Array) -> np.ndarray:
    """The array of a message."""
    return np.frombuffer(array.data, TYPES[array.dtype]).reshape(tuple(array.shape))


def check_evaluation(report: Report, e: simulation_pb2.Evaluation) -> None:
    """A cube at rest on a floor: its faces, its weight, its box."""
    forces, triangles = numbers(e.forces), numbers(e.triangles).reshape(-1, 3, 3)
    shares, centroid = numbers(e.triangle_forces), numbers(e.centroids)[0]
    report.equal(numbers(e.shapes).tolist(), [[0, 1]], "one contact, of floor and cube")
    report.check(abs(forces[0, 2] / WEIGHT - 1) < 1e-3, f"it carries the weight: {forces[0]} N")
    report.check(np.hypot(*centroid[:2]) < 1e-3, f"at the middle: {centroid} m")
    report.check(np.abs(numbers(e.torques)).max() < 1e-6, "without a torque")
    report.check(len(triangles) >= 2, f"{len(triangles)} triangles")
    report.equal(set(numbers(e.triangle_contacts).tolist()), {0}, "of that contact")
    normal = forces[0] @ numbers(e.normals)[0] * numbers(e.normals)[0]
    report.check(
        bool(np.allclose(shares.sum(axis=0), normal, rtol=1e-9, atol=1e-6)),
        f"whose forces add up to the normal force: {shares.sum(axis=0)} N",
    )
    areas = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]) / 2
    report.check(abs(-areas[:, 2].sum() - 1) < 1e-6, f"the bottom of the cube: {areas} m2")
    report.equal(numbers(e.box_shapes).tolist(), [1], "a plane has no box")
    low, high = np.split(numbers(e.boxes)[0], 2)
    report.check(bool(np.allclose(high - low, 1, atol=1e-6)), f"box of the cube: {low} {high}")
    report.equal(numbers(e.poses).shape, (2, 7), "poses of world and cube")


def watches(report: Report, client: tribo.Client, scene: tribo.Scene) -> None:
    """One watcher of evaluations beside a session that nobody watches."""
    session = client.create_session(scene, options=OPTIONS)
    alone = client.create_session(scene, options=OPTIONS)
    stream = session.watch(evaluations=True, minimum_interval=1e-3)
    first = next(stream)
    report.equal(len(first.evaluations), 1, "a message a world")
    report.equal(len(first.evaluations[0].evaluations), 0, "before the first watched step: none")
    session.step(STEPS)
    seen = next(w for w in stream if w.state.steps == STEPS).evaluations[0]
    report.equal((len(seen.evaluations), seen.left_out), (4, 0), "evaluations of a step of rkfix4")
    times = [e.time for e in seen.evaluations]
    report.check(times[0] == 0 and abs(times[-1] - 1e-3) < 1e-12, f"their times: {times} s")
    for e in seen.evaluations:
        check_evaluation(report, e)
    alone.step(STEPS)
    report.check(
        bool(np.array_equal(session.state().q, alone.state().q)), "a watched step has equal bytes"
    )
    plain = next(session.watch())
    report.equal(len(plain.evaluations), 0, "a watcher that asks for none gets none")
    single = session.watch(evaluations=True, single=True)
    session.step()
    narrow = next(w for w in single if w.evaluations and w.evaluations[0].evaluations)
    report.equal(
        numbers(narrow.evaluations[0].evaluations[0].triangles).dtype, np.float32, "narrowed"
    )
    stream.close()
    single.close()
    late = session.watch(evaluations=True, minimum_interval=1e-3)
    next(late)
    session.step(4)
    seen = next(w for w in late if w.state.steps == STEPS + 5).evaluations[0]
    report.equal(len(seen.evaluations), 4, "a later watcher has them, too")


def refusals(report: Report, client: tribo.Client, scene: tribo.Scene) -> None:
    """Sessions that have no evaluations, or too many worlds."""
    hard = client.create_session(scene)
    many = client.create_session(scene, worlds=17, options=OPTIONS)
    for session, words in ((hard, "does not step by the volume law"), (many, "at most 16")):
        try:
            next(session.watch(evaluations=True))
            text = "no error"
        except tribo.TriboError as error:
            text = str(error)
        report.check(words in text and "evaluations" in text, text)


def run(report: Report, folder: Path) -> None:
    """Every part."""
    with tribo.Daemon(data=folder / "data") as daemon, daemon.connect(timeout=60) as client:
        scene = client.load(SCENE, name="cube.xml")
        watches(report, client, scene)
        refusals(report, client, scene)


def main() -> None:
    """Runs all."""
    report = Report()
    with scratch() as folder:
        run(report, folder)
    report.finish()


if __name__ == "__main__":
    main()
