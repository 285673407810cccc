"""The small models of tests/data/robots in MuJoCo: MuJoCo still gives the numbers in expected.json.

    peer_robots.py             compares the record with the MuJoCo of this environment
    peer_robots.py --record    rewrites the record

Recorded of every model: dofs, total mass, the smooth acceleration at qpos0, and the pose of every
body after 500 steps from qpos0 and from each keyframe. tests/e2e/robots_step_soundly.py compares
Tribod with it, so that `make check` needs no MuJoCo.
"""

import json
import sys
from pathlib import Path
from typing import Any

import mujoco
from common import Report
from common_trial import STEPS, read_spec

FOLDER = Path(__file__).resolve().parents[1] / "data" / "robots"
RECORD = FOLDER / "expected.json"
PARTS = ("attached_finger.xml",)  # models that are parts of others
SAME = 1e-7  # absolute and relative, between builds of MuJoCo 4.0


def poses(model: mujoco.MjModel, keyframe: int) -> dict[str, list[float]]:
    """Position and quaternion of every body after STEPS steps, by name."""
    data = mujoco.MjData(model)
    if keyframe >= 0:
        mujoco.mj_resetDataKeyframe(model, data, keyframe)
    mujoco.mj_step(model, data, STEPS)
    mujoco.mj_kinematics(model, data)
    return {
        model.body(b).name: [float(v) for v in (*data.xpos[b], *data.xquat[b])]
        for b in range(1, model.nbody)
    }


def examine(path: Path) -> dict[str, Any]:
    """MuJoCo's results for a model."""
    model = read_spec(path).compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return {
        "dofs": model.nv,
        "mass": float(model.body_mass.sum()),
        "acceleration": [float(a) for a in data.qacc_smooth],
        "runs": {
            "qpos0" if k < 0 else model.key(k).name: poses(model, k) for k in range(-1, model.nkey)
        },
    }


def differ(a: Any, b: Any, where: str) -> str:
    """Where two records part first; empty if they agree."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return f"{where}: {sorted(a.keys() ^ b.keys())}"
        return next(filter(None, (differ(a[k], b[k], f"{where} {k}") for k in a)), "")
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = enumerate(zip(a, b, strict=True))
        return next(filter(None, (differ(x, y, f"{where}[{i}]") for i, (x, y) in pairs)), "")
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return "" if abs(a - b) <= SAME * max(1, abs(a)) else f"{where}: {a}, not {b}"
    return f"{where}: {a!r}, not {b!r}"


def main() -> None:
    paths = sorted(p for p in FOLDER.glob("*.*") if p.suffix in (".xml", ".urdf"))
    found = {p.name: examine(p) for p in paths if p.name not in PARTS}
    if "--record" in sys.argv[1:]:
        record = {"mujoco": mujoco.__version__, "steps": STEPS, "models": found}
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        return
    report = Report()
    record = json.loads(RECORD.read_text())
    report.check(record["steps"] == STEPS, f"recorded after {record['steps']} steps")
    for name in sorted(record["models"].keys() | found.keys()):
        if report.check(name in found and name in record["models"], f"{name}: not in both"):
            where = differ(found[name], record["models"][name], name)
            report.check(not where, where)
    report.finish()


if __name__ == "__main__":
    main()
