"""Newton's Kamino on six boxes in a stack: the scene "boxes" of scenes.py, exact contact by ADMM.

  kamino_bench.py [--worlds 1 1024 4096] [--tolerance 1e-6] [--steps 200] [--settle 500]

Settings are those of Newton's own Kamino examples with dt 1 ms (example_kamino_basic_box_on_plane:
rho 0.1, acceleration, warm starts from the contacts of the last step, at most 200 iterations; for
1e-4 the same with that tolerance). Worlds settle first, each from its own small displacements, and
are timed at rest. Its tolerance is on its own residuals; they, the iterations and the part of the
worlds that converged are told. Steps are captured in a CUDA graph, PIECE at a time. Prints one JSON
object a line. Needs numpy, newton and warp-lang.
"""

import argparse
import json
from importlib.metadata import version
from statistics import median
from typing import Any

import newton
import numpy as np
import warp as wp
from newton.solvers import SolverKamino
from scenes import BOXES_STEPS
from starts import draws, process_age
from timing import seconds_of

PIECE, SAMPLES = 20, 20
BOXES, HALF, MASS, MU, DT = 6, 0.05, 1.0, 0.7, 1e-3
SHIFT = 0.002  # m, as in the scene
CONTACTS = 32  # room a world; four an interface are used
FIRST: dict[str, float] = {}  # s from the process's start to its first step


def surface() -> newton.ModelBuilder.ShapeConfig:
    """Shapes without margins: contact is where the shapes are."""
    return newton.ModelBuilder.ShapeConfig(margin=0.0, gap=0.0, mu=MU, restitution=0.0, density=0.0)


def new_builder() -> newton.ModelBuilder:
    builder = newton.ModelBuilder(up_axis=newton.Axis.Z, gravity=(0.0, 0.0, -9.81))
    SolverKamino.register_custom_attributes(builder)
    builder.default_shape_cfg.margin = 0.0
    builder.default_shape_cfg.gap = 0.0
    return builder


def stack() -> newton.ModelBuilder:
    builder = new_builder()
    moment = MASS * (2 * HALF) ** 2 / 6
    for i in range(BOXES):
        body = builder.add_body(
            mass=MASS,
            inertia=wp.mat33(moment, 0.0, 0.0, 0.0, moment, 0.0, 0.0, 0.0, moment),
            xform=wp.transformf(0.0, 0.0, HALF * (2 * i + 1), 0.0, 0.0, 0.0, 1.0),
            lock_inertia=True,
        )
        builder.add_shape_box(body=body, hx=HALF, hy=HALF, hz=HALF, cfg=surface())
    return builder


def configure(model: Any, tolerance: float) -> Any:
    config = SolverKamino.Config.from_model(model, dynamics_solver="padmm")
    config.use_collision_detector = True
    config.use_fk_solver = False
    config.dynamics.preconditioning = True
    admm = config.padmm
    admm.primal_tolerance = admm.dual_tolerance = admm.compl_tolerance = tolerance
    admm.max_iterations = 200
    admm.rho_0 = 0.1
    admm.use_acceleration = True
    admm.warmstart_mode = "containers"
    admm.contact_warmstart_method = "geom_pair_net_force"
    config.collision_detector.max_contacts_per_world = CONTACTS
    return config


class Batch:
    def __init__(self, worlds: int, tolerance: float):
        self.worlds, self.tolerance = worlds, tolerance
        builder = new_builder()
        builder.replicate(stack(), worlds)
        builder.add_ground_plane(cfg=surface())
        self.model = builder.finalize(skip_validation_joints=True)
        self.solver = SolverKamino(self.model, config=configure(self.model, tolerance))
        self.now, self.next = self.model.state(), self.model.state()
        self.control = self.model.control()
        self.displace()
        self.step()
        self.step()
        wp.synchronize()
        FIRST.setdefault("step_s", round(process_age(), 2))
        self.graphs: dict[int, Any] = {}

    def displace(self) -> None:
        q = self.now.body_q.numpy().reshape(self.worlds, BOXES, 7)
        for i in range(BOXES):
            q[1:, i, 0] += SHIFT * draws(self.worlds, 3 * i)[1:]
            q[1:, i, 1] += SHIFT * draws(self.worlds, 3 * i + 1)[1:]
        self.now.body_q.assign(q.reshape(-1, 7))
        joints = self.now.joint_q.numpy().reshape(self.worlds, BOXES, 7)
        joints[:, :, :3] = q[:, :, :3]
        self.now.joint_q.assign(joints.reshape(-1))

    def step(self) -> None:
        self.now.clear_forces()
        self.solver.step(self.now, self.next, self.control, None, DT)
        self.now, self.next = self.next, self.now

    def advance(self, steps: int, piece: int = PIECE) -> None:
        """An even number of steps a graph, so that the two states end as they began."""
        if not wp.get_device().is_cuda:
            for _ in range(steps):
                self.step()
            return
        if piece not in self.graphs:
            with wp.ScopedCapture() as capture:
                for _ in range(piece):
                    self.step()
            self.graphs[piece] = capture.graph
        for _ in range(steps // piece):
            wp.capture_launch(self.graphs[piece])

    def statistics(self) -> dict[str, Any]:
        """Figures of the solver in every second step, untimed."""
        told = []
        for _ in range(SAMPLES):
            self.advance(2, 2)
            told.append(self.solver.status.numpy())
        status = np.concatenate(told)
        return {
            "iterations": float(status["iterations"].mean()),
            "most_iterations": int(status["iterations"].max()),
            "converged": float((status["converged"] > 0).mean()),
            "primal": float(status["r_p"].max()),
            "dual": float(status["r_d"].max()),
            "complementarity": float(status["r_c"].max()),
        }

    def standing(self) -> int:
        """Number of stacks whose top is at its place, to a quarter of a box."""
        top = self.now.body_q.numpy().reshape(self.worlds, BOXES, 7)[:, -1, 2]
        return int((np.abs(top - HALF * (2 * BOXES - 1)) < HALF / 2).sum())

    def contacts(self) -> float:
        return float(self.solver._contacts_kamino.world_active_contacts.numpy().mean())


def run(worlds: int, tolerance: float, settle: int, steps: int) -> None:
    settle, steps = settle - settle % PIECE, steps - steps % PIECE  # as many as advance() makes
    batch = Batch(worlds, tolerance)
    batch.advance(settle)
    batch.advance(PIECE)
    seconds = seconds_of(batch.advance, steps)
    rates = [worlds * steps / s for s in seconds]
    told = batch.statistics()
    contacts = batch.contacts()
    print(json.dumps({
        "bench": "kamino", "version": version("newton"), "warp": wp.config.version,
        "card": wp.get_device().name, "scene": "boxes", "part": "varied hold", "worlds": worlds,
        "tolerance": tolerance, "steps": steps, "way": settle, "world_steps_per_s": median(rates),
        "lowest": min(rates), "highest": max(rates),
        "contact_steps_per_s": median(rates) * contacts,
        "us_per_step": 1e6 * median(seconds) / steps, "contacts": contacts,
        "held": batch.standing(), "first_step_s": FIRST["step_s"], **told,
    }), flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, nargs="+", default=[1, 1024, 4096])
    parser.add_argument("--tolerance", type=float, default=1e-6)
    parser.add_argument("--settle", type=int, default=BOXES_STEPS, help="steps before the timed")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    wp.config.quiet = True
    wp.init()
    for worlds in arguments.worlds:
        run(worlds, arguments.tolerance, arguments.settle, arguments.steps)


if __name__ == "__main__":
    main()
