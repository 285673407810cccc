"""Contact problems of the literature: `auto` beside 25 set-ups of Siconos, same files, same core.

Every 3D problem of ../shared/data/contact-problems from zero to a residual of 1e-8: the natural map
at rho = 1 in De Saxcé's form over ||q||, computed here with numpy from the file's numbers and each
program's reactions. Siconos' own error is divided by the largest of ||q||, ||r||, ||u||, so each of
its set-ups is asked for the loosest tolerance of its own that suffices, and only that run counts.
Problems in global form or HDF5 go to Siconos as the local problem that `bench_problems` writes.

First every set-up has LIMIT seconds; then `auto`, always with its defaults, and the fastest set-up
solve in turn, ROUNDS times. The times are medians, reading excluded, all on one core. The test
judges that `auto` solves every problem.

Environment: LIMIT (1), ROUNDS (5), CORE (the last there is), FILES (a part of their names).
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from common import BUILD, Array, Report, scratch

FILES = Path("../shared/data/contact-problems")
HERE = Path(__file__).resolve().parent
SICONOS = Path(os.environ.get("SICONOS", Path(sys.prefix) / "siconos"))
LIMIT = float(os.environ.get("LIMIT", "1"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
CORE = os.environ.get("CORE", str(max(os.sched_getaffinity(0))))
TARGET = 1e-8
OURS = BUILD / "tests/bench/bench_problems"
CLAIM = 1e-11  # largest difference between numpy's residual and ours: the order of sums

# Siconos' numbers: solver, and its local or inner solver (0: its own choice)
SET_UPS = {
    "NSGS": (500, 0), "NSGS Newton": (500, 550), "NSGS Newton GP": (500, 551),
    "NSGS cone": (500, 552), "NSGS cone, local": (500, 553), "NSGS cone, regular": (500, 554),
    "NSGS cone, diagonal": (500, 555), "NSGS quartic": (500, 562), "NSGS quartic nu": (500, 563),
    "NSN_AC": (504, 0), "NSN_AC test": (521, 0), "NSN_FB": (513, 0), "NSN_NM": (520, 0),
    "ADMM": (523, 0), "PROX": (502, 0), "PROX, NSN_AC": (502, 504), "TFP": (503, 0),
    "PFP": (522, 0), "DSFP": (505, 0), "VI_FPP": (506, 0), "VI_EG": (507, 0), "FPP": (511, 0),
    "EG": (512, 0), "ACLMFP": (516, 0), "SOCLCP": (517, 0),
}  # fmt: skip


# ---- the judge ----


@dataclass
class Problem:
    """u = W r + q with Coulomb's law of mu in every contact."""

    w: Array
    q: Array
    mu: Array

    @staticmethod
    def read(path: Path) -> "Problem":
        """Local text form; storage 0 is dense by columns, 1 compressed blocks."""
        numbers = iter(path.read_text().split())

        def take(count: int) -> Array:
            return np.array([float(next(numbers)) for _ in range(count)])

        def integer() -> int:
            return int(next(numbers))

        dimension, contacts, storage = integer(), integer(), integer()
        rows, columns = integer(), integer()
        if dimension != 3 or storage > 1 or rows != 3 * contacts:
            raise ValueError(f"{path}: not a local 3D problem")
        if storage == 0:
            take(2)  # rows and columns again
            w = take(rows * columns).reshape(columns, rows).T
        else:
            w = np.zeros((rows, columns))
            blocks, block_rows, block_columns = integer(), integer(), integer()
            row_ends = take(block_rows).astype(int)
            column_ends = take(block_columns).astype(int)
            pointers, indices = integer(), integer()
            starts, at = take(pointers).astype(int), take(indices).astype(int)
            row_begins, column_begins = np.r_[0, row_ends], np.r_[0, column_ends]
            row_of = np.repeat(np.arange(pointers - 1), np.diff(starts))
            for k in range(blocks):
                rows_here = slice(row_begins[row_of[k]], row_ends[row_of[k]])
                columns_here = slice(column_begins[at[k]], column_ends[at[k]])
                shape = w[rows_here, columns_here].shape
                integer()  # the block's number
                w[rows_here, columns_here] = take(shape[0] * shape[1]).reshape(shape[::-1]).T
        return Problem(w, take(rows), take(contacts))

    def residual(self, reactions: Array) -> float:
        r, mu = reactions.reshape(-1, 3), self.mu
        u = (self.w @ reactions + self.q).reshape(-1, 3)
        x = r - u
        x[:, 0] -= mu * np.hypot(u[:, 1], u[:, 2])
        slip = np.hypot(x[:, 1], x[:, 2])
        inside = slip <= mu * x[:, 0]
        normal = np.maximum((x[:, 0] + mu * slip) / (1 + mu * mu), 0)
        scale = np.divide(mu * normal, slip, out=np.zeros_like(slip), where=slip > 0)
        onto = np.column_stack([normal, scale * x[:, 1], scale * x[:, 2]])
        onto[inside] = x[inside]
        return float(np.linalg.norm(r - onto) / np.linalg.norm(self.q))


# ---- the programs ----


def pinned(command: list[object], seconds: float) -> str:
    """Its output, or nothing if it fails or takes longer. One core, no threads."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            ["taskset", "-c", CORE, *(str(word) for word in command)], capture_output=True,
            text=True, timeout=seconds, check=False, env={**os.environ, **one},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout if done.returncode == 0 else ""


def last_object(text: str) -> dict[str, Any] | None:
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return dict(json.loads(lines[-1])) if lines else None


class Siconos:
    """Debian's library, wherever deps.sh has put it, behind siconos_solve.c."""

    def __init__(self, folder: Path) -> None:
        self.program, self.reactions = folder / "siconos_solve", folder / "siconos.bin"
        root = SICONOS / "usr" if SICONOS.exists() else Path("/usr")
        libraries = sorted(root.glob("lib/*/libsiconos_numerics.so"))
        self.why = f"no libsiconos_numerics in {root}" if not libraries else ""
        self.version = ""
        if self.why:
            return
        library = libraries[0].parent
        include = root / "include/siconos"
        searched = [library, library / "openblas-pthread"] if root != Path("/usr") else []
        built = subprocess.run(
            ["cc", "-O2", "-o", self.program, HERE / "siconos_solve.c", "-I", include,
             "-I", include / "numerics", "-I", root / "include/suitesparse", f"-L{library}",
             "-lsiconos_numerics", "-lm", "-Wl,--allow-shlib-undefined",
             *(f"-Wl,-rpath,{folder.resolve()}" for folder in searched),
             "-Wl,--disable-new-dtags"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if built.returncode != 0:
            self.why = built.stderr.splitlines()[0]
        said = SICONOS / "version"
        self.version = said.read_text().strip() if said.exists() else "of this machine"

    def solve(
        self, file: Path, set_up: str, tolerance: float, limit: float
    ) -> dict[str, Any] | None:
        """Time and residual; None for any failure."""
        self.reactions.unlink(missing_ok=True)
        solver, local = SET_UPS[set_up]
        command = [self.program, file, solver, local, TARGET, tolerance, limit, self.reactions]
        row = last_object(pinned(command, 2 * limit + 1))
        if row is None or not row["solved"]:
            return None
        row["set_up"] = set_up
        return row


def ours(file: Path, folder: Path) -> dict[str, Any]:
    command = [OURS, "--tolerance", TARGET, "--reactions", folder, "--text", folder, file]
    row = last_object(pinned(command, 120))
    if row is None:
        raise SystemExit(f"FAILED: {OURS} {file}")
    return row


# ---- the table ----


def seconds(value: float) -> str:
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value / 1e-9:.3g} ns"


def compare(file: Path, folder: Path, siconos: Siconos, report: Report) -> dict[str, Any] | None:
    """One problem; None if it is not three-dimensional."""
    first = ours(file, folder)
    if first["dimension"] != 3:
        return None
    text = folder / f"{file.name}.dat"
    judged = text if first["global"] or file.suffix != ".dat" else file
    problem = Problem.read(judged)
    own = problem.residual(np.fromfile(folder / f"{file.name}.bin"))
    report.check(own <= TARGET, f"{file.name}: auto reaches {own:.3g} by numpy's judgement")
    claim = abs(own - first["residual"]) <= CLAIM
    report.check(claim, f"{file.name}: auto says {first['residual']}, numpy {own}")

    solved = []
    for set_up in SET_UPS if not siconos.why else ():
        row = siconos.solve(judged, set_up, TARGET, LIMIT)
        if row is None:
            continue
        row["judged"] = problem.residual(np.fromfile(siconos.reactions))
        if row["judged"] <= TARGET:
            solved.append(row)
    best = min(solved, key=lambda row: float(row["seconds"]), default=None)
    times: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        mine = float(ours(file, folder)["seconds"])
        other = siconos.solve(judged, best["set_up"], best["tolerance"], 10 * LIMIT) if best else {}
        times.append((mine, float((other or {}).get("seconds", float("nan")))))
    return {
        "bench": "peer_problems", "file": file.name, "contacts": first["contacts"],
        "solver": first["solver"], "iterations": first["iterations"], "residual": own,
        "seconds": median(t[0] for t in times), "siconos": siconos.version,
        "siconos_solved": len(solved), "siconos_best": best["set_up"] if best else None,
        "siconos_residual": best["judged"] if best else None,
        "siconos_iterations": best["iterations"] if best else None,
        "siconos_seconds": median(t[1] for t in times) if best else None,
        "ratio": median(t[1] / t[0] for t in times) if best else None,
        "all": {row["set_up"]: row["seconds"] for row in solved},
    }  # fmt: skip


HEAD = (
    f"{'problem':39}{'contacts':>8}  {'ended by':9}{'iterations':>10}{'residual':>10}{'time':>10}"
)
HEAD += f"   {'Siconos, its best':20}{'n':>3}{'residual':>10}{'time':>10}{'times':>8}"


def show(row: dict[str, Any]) -> None:
    line = f"{row['file']:39}{row['contacts']:8}  {row['solver']:9}{row['iterations']:10}"
    line += f"{row['residual']:10.1e}{seconds(row['seconds']):>10}   "
    if row["siconos_best"] is None:
        line += f"{'none':20}{0:3}"
    else:
        line += f"{row['siconos_best']:20}{row['siconos_solved']:3}{row['siconos_residual']:10.1e}"
        line += f"{seconds(row['siconos_seconds']):>10}{row['ratio']:8.2f}"
    print(line, flush=True)


def main() -> None:
    report = Report()
    if not FILES.is_dir():
        report.skip(f"peer_problems: no problems in {FILES}")
        report.finish()
    wanted = os.environ.get("FILES", "")
    files = sorted(f for f in FILES.iterdir() if f.suffix in (".dat", ".hdf5") and wanted in f.name)
    rows = []
    with scratch() as name:
        siconos = Siconos(Path(name))
        if siconos.why:
            report.skip(f"peer_problems: Siconos: {siconos.why}")
        print(
            f"to {TARGET:g}; Siconos {siconos.version}, {len(SET_UPS)} set-ups, {LIMIT:g} s each,"
        )
        print(f"n: set-ups that reach it. Core {CORE}, load {os.getloadavg()[0]:.1f}\n{HEAD}")
        for file in files:
            row = compare(file, Path(name), siconos, report)
            if row is not None:
                show(row)
                rows.append(row)
    faster = sum(1 for row in rows if row["ratio"] is None or row["ratio"] > 1)
    print(f"auto solves {len(rows)} and is faster on, or alone with, {faster}")
    for row in rows:
        print(json.dumps(row), flush=True)
    report.check(len(rows) > 0, "there was no 3D problem")
    report.finish()


if __name__ == "__main__":
    main()
