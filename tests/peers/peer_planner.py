"""Grasps of 20 generated objects by 6 published grippers: held, reasons, uncertified, grasps/s.

The objects are mugs, hammers, bananas, wrenches and bowls in four sizes each, as scans: their
surfaces have noise of 0.2 mm. `tribo.meshes.repair` closes them, and their convex parts by CoACD
collide (their hull alone where CoACD is not installed; the rows say so). The grippers are
robosuite's and gymnasium-robotics', with the changes that robosuite itself makes to its files
when it puts a scene together: angles in radians, one of repeated assets, no group of a default.
Hands of which no profile is known get the tool frame that their fingertips' ways give. The hulls
of robotiq_140's outer fingers and inner knuckles meet after 3.5 degrees of its way; soft contacts
let the motors push them through each other, hard ones stop the hand there, so these pairs are
left out. robotiq_s and jaco have couplings that their own limits contradict (a joint >= 0 is to
be the negative of another one >= 0): exact constraints hold them still, and no grasp of them is
held.

Every grasp is sampled free of collisions and played by a daemon. Judged: fewer than 0.5 % of the
trials are uncertified, and every trial not held has a reason. Times are printed, never judged.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import common
import numpy as np
from common import Report

import tribo
from tribo import local, meshes

ROBOSUITE = "robosuite/robosuite/models/assets/grippers"
GYMNASIUM = "gymnasium_robotics/gymnasium_robotics/envs/assets"
#: name: file in the corpus, profile
GRIPPERS = {
    "panda": (f"{ROBOSUITE}/panda_gripper.xml", "panda"),
    "robotiq_85": (f"{ROBOSUITE}/robotiq_gripper_85.xml", "robotiq_2f85"),
    "robotiq_s": (f"{ROBOSUITE}/robotiq_gripper_s.xml", "robotiq_3f"),
    "jaco": (f"{ROBOSUITE}/jaco_three_finger_gripper.xml", "jaco"),
    "rethink": (f"{ROBOSUITE}/rethink_gripper.xml", ""),
    "shadow": (f"{GYMNASIUM}/hand/reach.xml", "shadow"),
    "robotiq_140": (f"{ROBOSUITE}/robotiq_gripper_140.xml", ""),
    "xarm7": (f"{ROBOSUITE}/xarm7_gripper.xml", ""),
    "bd": (f"{ROBOSUITE}/bd_gripper.xml", ""),
    "inspire_left": (f"{ROBOSUITE}/inspire_left_hand.xml", ""),
    "inspire_right": (f"{ROBOSUITE}/inspire_right_hand.xml", ""),
    "fourier_left": (f"{ROBOSUITE}/fourier_left_hand.xml", ""),
    "fourier_right": (f"{ROBOSUITE}/fourier_right_hand.xml", ""),
}
SIX = ("panda", "robotiq_85", "rethink", "robotiq_140", "xarm7", "shadow")
#: bodies of one finger whose hulls stop the hand on its way
JAMMED = {
    "robotiq_gripper_140.xml": [
        (f"{side}_{outer}", f"{side}_inner_knuckle")
        for side in ("left", "right")
        for outer in ("outer_knuckle", "inner_finger")
    ]
}
NOISE_M = 0.0002
DENSITY = 600  # kg/m^3
REST_STEPS = 2000  # of 2 ms, MJCF's default
UNCERTIFIED = 0.005  # share of the trials


class RobosuiteModel:
    """A gripper's file as robosuite merges it into a scene; `tribo.Hand` takes it as a model."""

    meshdir = ""

    def __init__(self, path: Path) -> None:
        self.modelfiledir = str(path.parent)
        self.assets: dict[str, bytes] = {}
        tree = ElementTree.parse(path)
        root = tree.getroot()
        if root.find("compiler") is None:
            root.insert(0, ElementTree.Element("compiler", {"angle": "radian"}))
        for asset in root.findall("asset"):
            seen: set[tuple[str, str]] = set()
            for element in list(asset):
                key = (element.tag, element.get("name", element.get("file", "")))
                if key in seen:
                    asset.remove(element)
                seen.add(key)
        for default in root.iter("default"):
            default.attrib.pop("group", None)
        for one, other in JAMMED.get(path.name, ()):
            contact = ElementTree.SubElement(root, "contact")
            ElementTree.SubElement(contact, "exclude", {"body1": one, "body2": other})
        self._text = ElementTree.tostring(root, encoding="unicode")

    def to_xml(self) -> str:
        """The model as MJCF."""
        return self._text


# ---- objects ----


def tube(path: np.ndarray, radii: np.ndarray, sides: int = 20) -> meshes.Mesh:
    """A closed surface about a path of points in the x-z plane."""
    n = len(path)
    along = np.gradient(path, axis=0)
    along /= np.linalg.norm(along, axis=1)[:, None]
    y = np.array([0.0, 1.0, 0.0])
    across = np.cross(along, y)
    angle = 2 * np.pi * np.arange(sides) / sides
    rings = path[:, None] + radii[:, None, None] * (
        np.cos(angle)[None, :, None] * across[:, None] + np.sin(angle)[None, :, None] * y
    )
    vertices = np.concatenate([rings.reshape(-1, 3), path[:1], path[-1:]])
    k, right = np.arange(sides), (np.arange(sides) + 1) % sides
    faces = []
    for row in range(n - 1):
        low, high = row * sides, (row + 1) * sides
        faces += [np.stack([low + k, low + right, high + right], 1)]
        faces += [np.stack([low + k, high + right, high + k], 1)]
    faces += [np.stack([np.full(sides, n * sides), right, k], 1)]
    faces += [np.stack([np.full(sides, n * sides + 1), (n - 1) * sides + k,
                        (n - 1) * sides + right], 1)]  # fmt: skip
    return meshes.Mesh(vertices, np.concatenate(faces))


def revolved(profile: np.ndarray, sides: int = 24) -> meshes.Mesh:
    """A closed surface about z of (radius, height) that begins and ends on the axis."""
    inner = profile[1:-1]
    path = np.column_stack([np.zeros(len(inner)), np.zeros(len(inner)), inner[:, 1]])
    angle = 2 * np.pi * np.arange(sides) / sides
    rings = path[:, None] + inner[:, 0, None, None] * np.stack(
        [np.cos(angle), np.sin(angle), np.zeros(sides)], axis=1
    )
    ends = [[0, 0, profile[0, 1]], [0, 0, profile[-1, 1]]]
    vertices = np.concatenate([rings.reshape(-1, 3), ends])
    n, k, right = len(inner), np.arange(sides), (np.arange(sides) + 1) % sides
    faces = []
    for row in range(n - 1):
        low, high = row * sides, (row + 1) * sides
        faces += [np.stack([low + k, low + right, high + right], 1)]
        faces += [np.stack([low + k, high + right, high + k], 1)]
    faces += [np.stack([np.full(sides, n * sides), right, k], 1)]
    faces += [np.stack([np.full(sides, n * sides + 1), (n - 1) * sides + k,
                        (n - 1) * sides + right], 1)]  # fmt: skip
    return meshes.Mesh(vertices, np.concatenate(faces))


def joined(*parts: meshes.Mesh) -> meshes.Mesh:
    """Several surfaces as one mesh."""
    vertices, faces, at = [], [], 0
    for part in parts:
        vertices.append(part.vertices)
        faces.append(part.faces + at)
        at += len(part.vertices)
    return meshes.Mesh(np.concatenate(vertices), np.concatenate(faces))


def straight(a: tuple[float, ...], b: tuple[float, ...], radius: float, sides: int) -> meshes.Mesh:
    """A prism between two points in the x-z plane."""
    path = np.linspace(a, b, 4)
    return tube(path, np.full(4, radius), sides)


def make_object(kind: str, size: float) -> meshes.Mesh:
    """An object of a kind, 0.8 to 1.2 of its usual size, lying or standing as on a table."""
    if kind == "mug":
        wall = [(0, 0), (30, 0), (33, 5), (33, 80), (31, 80), (29, 8), (0, 6)]
        t = np.linspace(-1.25, 1.25, 12)
        path = np.column_stack([33 + 18 * np.cos(t), np.zeros(12), 42 + 24 * np.sin(t)])
        shape = joined(revolved(np.array(wall, float)), tube(path, np.full(12, 5.0), 10))
    elif kind == "bowl":
        wall = [(0, 0), (25, 0), (45, 15), (60, 40), (57, 41), (43, 18), (24, 4), (0, 4)]
        shape = revolved(np.array(wall, float))
    elif kind == "banana":
        t = np.linspace(-0.9, 0.9, 16)
        path = np.column_stack([110 * np.sin(t), np.zeros(16), 110 * (1 - np.cos(t)) + 18])
        shape = tube(path, 4 + 14 * np.sqrt(np.clip(1 - (t / 0.95) ** 2, 0.02, 1)))
    elif kind == "hammer":
        shape = joined(
            straight((-180, 0, 15), (60, 0, 15), 13, 16), straight((60, 0, -20), (60, 0, 60), 17, 4)
        )
    else:  # a wrench
        shape = joined(
            straight((-80, 0, 9), (80, 0, 9), 9, 4),
            straight((80, 0, 9), (112, 0, 9), 15, 8),
            straight((-112, 0, 9), (-80, 0, 9), 15, 8),
        )
    return meshes.Mesh(shape.vertices * 1e-3 * size, shape.faces)


KINDS = ("mug", "hammer", "banana", "wrench", "bowl")


def scan(kind: str, number: int) -> meshes.Mesh:
    """One of the 20 objects, with the noise of a scan."""
    random = np.random.default_rng([KINDS.index(kind), number])
    mesh = make_object(kind, (0.8, 0.93, 1.06, 1.2)[number])
    return meshes.Mesh(mesh.vertices + random.normal(0, NOISE_M, mesh.vertices.shape), mesh.faces)


def at_rest(mesh: meshes.Mesh) -> meshes.Mesh:
    """A closed mesh turned and moved as its convex hull, with its own inertia, rests on a table.

    An object that tips over before the fingers close is not where its grasps were sampled. Damping,
    not rolling friction, ends the motion: friction would hold it up beside its rest.
    """
    mass, com, inertia = meshes.mass_properties(mesh, DENSITY)
    centre = " ".join(f"{x:.9g}" for x in com)
    products = (*np.diag(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2])
    moments = " ".join(f"{x:.9g}" for x in products)
    points = " ".join(f"{x:.9g}" for x in mesh.vertices.ravel())
    model = local.Model(
        f"""<mujoco><asset><mesh name="hull" vertex="{points}"/></asset><worldbody>
        <geom type="plane" size="1 1 0.1"/>
        <body pos="0 0 {1e-4 - mesh.vertices[:, 2].min():.9g}"><joint type="free" damping="0.002"/>
        <inertial pos="{centre}" mass="{mass:.9g}" fullinertia="{moments}"/>
        <geom type="mesh" mesh="hull" condim="4" friction="0.7 0.005 0"/></body>
        </worldbody></mujoco>""".encode(),
        name="hull.xml",
    )
    state = local.State(model)
    local.Stepper().step(state, REST_STEPS)
    w, v = state.q[3], state.q[4:7]
    turned = mesh.vertices + 2 * np.cross(v, np.cross(v, mesh.vertices) + w * mesh.vertices)
    return meshes.Mesh(turned + state.q[:3], mesh.faces)


def as_target(mesh: meshes.Mesh) -> tuple[tribo.GraspObject, str]:
    """The object made of convex parts, and a description of its collision shapes."""
    closed = at_rest(meshes.repair(mesh)[0])
    mass = min(0.5, DENSITY * closed.volume)
    try:
        parts = meshes.convex_parts(closed, threshold=0.05, largest=12, iterations=20)
    except ImportError:
        return tribo.GraspObject(closed, mass=mass, convex=True), "hull"
    told = f"{len(parts.parts)} parts, {parts.error * 1e3:.1f} mm"
    return tribo.GraspObject(parts, mass=mass, convex=True), told


# ---- the table ----


def as_hand(corpus: Path, name: str) -> tribo.Hand:
    """A gripper with a tool frame."""
    file, profile = GRIPPERS[name]
    source = corpus / file
    model = RobosuiteModel(source) if "robosuite" in file else source
    hand = tribo.Hand(model, profile=profile, overlaps="ignore")
    return hand if profile else local.with_found_tool(hand)


def main() -> int:
    """The table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--grasps", type=int, default=4, help="of each object and gripper")
    parser.add_argument("--grippers", default=",".join(SIX), help="names, or all")
    parser.add_argument("--objects", type=int, default=20, help="how many of the 20")
    parser.add_argument("--device", default="", help="that the daemon is to use")
    parser.add_argument(
        "--corpus",
        type=Path,
        default=Path(os.environ.get("TRIBO_CORPUS", common.BUILD / "peers" / "corpus")),
        help="where the sources stand ($TRIBO_CORPUS)",
    )
    options = parser.parse_args()
    report = Report()
    names = list(GRIPPERS) if options.grippers == "all" else options.grippers.split(",")
    objects = [(kind, number) for number in range(4) for kind in KINDS][: options.objects]
    trials = uncertified = 0
    with tribo.Daemon() as daemon, daemon.connect() as client:
        targets = {}
        for kind, number in objects:
            targets[kind, number] = as_target(scan(kind, number))
            print(
                json.dumps({"object": f"{kind}{number}", "as": targets[kind, number][1]}),
                flush=True,
            )
        for name in names:
            if not (options.corpus / GRIPPERS[name][0]).exists():
                report.skip(f"{name}: {options.corpus / GRIPPERS[name][0]} is not there")
                continue
            try:
                hand = as_hand(options.corpus, name)
            except (tribo.TriboError, ValueError) as error:
                # a hand that cannot close has no grasps: report it and go on with the others
                report.check(name not in SIX, f"{name}: {error}")
                print(json.dumps({"gripper": name, "refused": str(error)}), flush=True)
                continue
            counts: Counter[str] = Counter()
            reasons: Counter[str] = Counter()
            seconds, steps, number_of = 0.0, 0, 0
            for (kind, number), (target, _) in targets.items():
                poses = tribo.sample_grasps(target, hand, options.grasps, seed=number)
                if not poses:
                    counts["NO SAMPLE"] += 1
                    continue
                began = time.perf_counter()
                grasps = tribo.evaluate(target, hand, poses, client=client, device=options.device)
                seconds += time.perf_counter() - began
                steps += grasps.summary.world_steps
                number_of += len(grasps)
                counts.update(grasps.counts)
                for r in grasps:
                    trials += 1
                    if r.verdict == tribo.Verdict.UNCERTIFIED:
                        uncertified += 1
                        print(json.dumps({"uncertified": f"{name} {kind}{number} {r.name}",
                                          "residual": r.reason.residual,
                                          "text": r.reason.text}), flush=True)  # fmt: skip
                    if r.verdict != tribo.Verdict.HELD:
                        kept = re.sub(r"'[^']*'|[-+]?\d[\d.e+-]*( mm| s)?", "#", r.reason.text)
                        reasons[kept] += 1
                        report.check(bool(r.reason.text), f"{name} {kind}{number}: no reason")
            print(json.dumps({
                "gripper": name, **counts,
                "grasps_per_second": round(number_of / max(seconds, 1e-9), 2),
                "world_steps_per_second": round(steps / max(seconds, 1e-9)),
                "reasons": dict(reasons.most_common(4)),
            }), flush=True)  # fmt: skip
    report.check(
        uncertified <= UNCERTIFIED * max(trials, 1), f"{uncertified} of {trials} trials uncertified"
    )
    print(json.dumps({"trials": trials, "uncertified": uncertified}))
    report.finish()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
