"""All measurements on a GPU, ours beside MuJoCo Warp and Newton's Kamino, in one command.

  make bench-gpu                             builds, installs the peers, measures all, prints tables
  make bench-gpu ARGS="--parts ours --scenes jaw_mug --worlds 8192"
  tests/bench/gpu/run.py --join a.json b.json      tables of parts that were measured apart

Parts, in this order:
  agreement  CPU against GPU over 1,000 steps in double; 100 runs that give the same bytes; any
             place in a batch; room that grows; worlds that diverge (tests/unit/gpu/test_gpu_step)
  resume     sessions that stop and go on with warm sets to the same bytes and sums: restored,
             forked, by turns, from a processor to a card and back (tests/unit/gpu/test_gpu_resume);
             and those of tribod, over its restart                             (daemon_resume.py)
  sanitizer  memcheck, racecheck and initcheck over some steps of each way that worlds take through
             the kernels (bench_gpu), and over a small large world (a pile)
                                                                       (tests/unit/gpu/test_gpu_large);
             needs compute-sanitizer of NVIDIA's toolkit, which deploy/deps.sh does not install: in
             PATH, beside nvcc or in /usr/local/cuda*/bin
  ours       world-steps/s: the hold, whole ways from different starts, at residual 1e-3 and 1e-6,
             jaw and mug in float and double, the others in double       (tests/bench/bench_gpu)
  processor  the same beside the card: one world, which tribod leaves to it, and some (bench_gpu)
  mujoco     the same models, starts and controls in MuJoCo Warp          (mujoco_warp_bench.py)
  kamino     six boxes in Newton's Kamino, exact contact by ADMM          (kamino_bench.py)
  schurpa    Litven's table 7.1 (tribo bench schurpa); products with a band, solves in a row with
             the active sets of the last one                                (bench_programs)
  field      one large world: a sweep of 1 M contacts, steps of 1 k to 1 M spheres in planes, of up
             to 100 k in a mesh and on a height field                     (bench_large)
  first      from process start to the first answer, and for one more unseen model  (bench_first)
  stages     cycles by stage of a step, by a plug-in that counts them     (bench_gpu)
  calls      time of a call for one world and its parts               (bench_gpu_calls)
  daemon     tribod on every card that there is, seen over HTTP: its start, first answers, steps,
             forks, the same worlds on all cards at once, grasps             (daemon_bench.py)
  knobs      lanes of each part of a step, overlap: which are fastest, for jaw and mug at
             1,024, 8,192 and 32,768 worlds, in --knob-seconds            (bench_gpu, knobs.py)

Each number of worlds is a program of its own, with --limit seconds. Where all of a way would take
longer, both sides go the same shorter one, and the tables say of how many steps it is: see CUT.

Results go to --out as one JSON object: commit, card, driver, date and what each program printed. A
part that fails or gives nothing is named, as is a scene that cannot be made, and the command ends
with 1. Where a need of the chosen parts is missing, the command names it before it begins, and ends
with 2. The peers' kernels take long to compile (meshes take longest). Needs Python alone; the peers
have an environment of their own (deploy/deps.sh gpu-peers).
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import checks
import joined
import knobs
import scenes
import tables
from runner import Runner
from scenes import Scene

HERE = Path(__file__).resolve().parent
WORLDS = [1, 1024, 8192, 32768]
BOXES_WORLDS = [1, 1024, 4096, 8192]  # Kamino's
HOWS = {"jaw_mug": "float:1e-3,float:1e-6,double:1e-3,double:1e-6"}
OTHERS_HOW = "double:1e-3,double:1e-6"
# from this many worlds on, a whole way ends after this many steps: a hand's 1,500 would take 32,768
# worlds some five minutes at each tolerance. Until the 300th the hand closes
CUT = {"hand": (32768, 300)}
TOOLS = ("memcheck", "racecheck", "initcheck")
KNOB_STEPS = 700  # of a whole way: the jaw closes and begins to lift
OVERLAP = ("--alone", "0", "--overlap", "1")
# a few steps of each way that worlds take through the kernels: tool, scene, options
SHORT: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("racecheck", "jaw_mug", ("--parts", "hold", *OVERLAP, "--lanes", "8")),
    ("initcheck", "jaw_mug", ("--parts", "hold", "--alone", "0")),
    ("initcheck", "jaw_mug", ("--parts", "hold", *OVERLAP)),
    ("memcheck", "jaw_mug", ("--parts", "hold")),
    ("memcheck", "jaw_mug", ("--parts", "hold", "--solver", "staggered")),
    ("racecheck", "humanoid", ("--parts", "whole")),
    ("memcheck", "humanoid", ("--parts", "whole", *OVERLAP)),
)
SHORT_STEPS, SHORT_HOLD = 40, "5"  # of the whole way, of the hold: enough for solves to overlap
SANITIZED = ("test_gpu_large", ("some_steps_of_a_small_pile", "some_steps_in_a_basin"))


class Measure:
    """One method a part."""

    def __init__(self, arguments: argparse.Namespace, run: Runner) -> None:
        self.arguments, self.run = arguments, run
        self.bench = run.build / "tests/bench"
        self.folder = arguments.scenes_folder or run.build / "bench-gpu/scenes"
        self.scenes = self.make_scenes() if set(arguments.parts) & set(checks.WITH_SCENES) else []

    def make_scenes(self) -> list[Scene]:
        """The chosen scenes; one that cannot be made counts as failed."""
        wanted = self.arguments.scenes or list(scenes.SCENES)
        why: dict[str, str] = {}
        if self.arguments.scenes_folder is None:
            sources = scenes.Sources.of(self.run.build, self.arguments.peers)
            scenes.write(self.folder, sources, why.__setitem__)
        found = [scene for scene in scenes.read(self.folder) if scene.name in wanted]
        for name in wanted:
            if name not in [scene.name for scene in found]:
                reason = why.get(name, f"it is not in {self.folder}")
                self.run.fail("scenes", f"{name} is left out: {reason}")
        return found

    def measure(self, part: str) -> None:
        before = len(self.run.results), len(self.run.failures)
        getattr(self, part)()
        if before == (len(self.run.results), len(self.run.failures)):
            self.run.fail(part, "gave no row")

    def worlds(self, scene: Scene) -> list[int]:
        usual = BOXES_WORLDS if scene.name == "boxes" else WORLDS
        return self.arguments.worlds or usual

    def way(self, scene: Scene, worlds: int) -> int:
        """Steps of a whole way with this number of worlds."""
        many, few_steps = CUT.get(scene.name, (0, scene.steps))
        usual = few_steps if worlds >= many else scene.steps
        return min(self.arguments.steps or usual, scene.steps)

    def agreement(self) -> None:
        for line in self.run.lines("agreement", [self.run.build / "tests/unit/gpu/test_gpu_step"]):
            found = re.match(r"(\d+)%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", line)
            table = re.match(r"(\S.*?\S) +(parts|alone) +(\d+) +(\S+) +(\S+) +\d+, ", line)
            row: dict[str, Any] = {"of": "agreement", "text": line}
            if found:
                row |= {"checks": int(found[2]), "failed": int(found[3]) + int(found[4])}
            if table:
                row |= {"scene": table[1], "way": table[2], "steps": int(table[3])}
                row |= {"q": float(table[4]), "u": float(table[5])}
            if line.startswith("SKIPPED"):
                self.run.fail("agreement", line)
            self.run.results.append(row)
            print(line, flush=True)

    def resume(self) -> None:
        for line in self.run.lines("resume", [self.run.build / "tests/unit/gpu/test_gpu_resume"]):
            if "plays" in line:
                self.run.fail("resume", line)
            self.run.results.append({"of": "resume", "text": line})
            print(line, flush=True)
        command = [sys.executable, HERE / "daemon_resume.py", "--build", self.run.build]
        self.run.collect("resume", command)

    def sanitizer(self) -> None:
        scenes_by_name = {scene.name: scene for scene in self.scenes}
        program = checks.compute_sanitizer(self.run.build)
        if not program:
            self.run.fail(
                "sanitizer", "no compute-sanitizer in PATH, beside nvcc, in /usr/local/cuda*"
            )
            return
        for tool, name, options in SHORT:
            if name not in scenes_by_name:
                continue
            command = self.command_of(replace(scenes_by_name[name], steps=SHORT_STEPS))
            command += [*options, "--how", "double:1e-6", "--hold-steps", SHORT_HOLD, "8"]
            self.sanitize([program, "--tool", tool], " ".join([name, *options]), command)
        large, tests = SANITIZED
        if "TRIBO_TEST_PLAYED" in os.environ or not Path("/dev/nvidiactl").exists():
            # as tests/unit/gpu/card_util.h decides it
            self.run.fail(f"sanitizer of {large}", "the processor would play the card")
            return
        command = [str(self.run.build / "tests/unit" / large)]
        for tool in TOOLS:
            for test in tests:
                named = {"CK_FORK": "no", "CK_RUN_CASE": test}
                self.sanitize([program, "--tool", tool], test, command, **named)

    def sanitize(
        self, sanitizer: list[str], told: str, command: list[str], **environment: str
    ) -> None:
        began, errors, failed = time.monotonic(), -1, len(self.run.failures)
        tool, ran, idle = sanitizer[-1], False, ""
        where: dict[str, int] = {}  # errors by the kernel's functions
        whole = [*sanitizer, "--error-exitcode", "9", *command]
        for line in self.run.lines(f"sanitizer {tool} of {told}", whole, **environment):
            ran = ran or bool(re.match(r"\{|\d+%: Checks: [1-9]", line))
            idle = line if re.search(r"^SKIPPED|no GPU|terminated before", line) else idle
            place = re.match(r"=+ +(?:Device Frame|at): *(.*?)(?:\(|\+| in |$)", line)
            if place:
                where[place[1]] = where.get(place[1], 0) + 1
            found = re.search(r"ERROR SUMMARY: (\d+)|RACECHECK SUMMARY: (\d+) hazards", line)
            if found:
                errors = max(errors, int(found[1] or found[2]))
                print(f"{tool} of {told}: {line}", flush=True)
        self.run.results.append({
            "of": "sanitizer", "tool": tool, "test": told, "errors": errors, "where": where,
            "seconds": round(time.monotonic() - began, 1),
        })  # fmt: skip
        if errors != 0:
            why = f"{errors} errors" if errors > 0 else "no error summary"
        else:
            why = idle or ("" if ran else "nothing was checked")
        if why and len(self.run.failures) == failed:
            self.run.fail(f"sanitizer {tool} of {told}", why)

    def command_of(self, scene: Scene) -> list[str]:
        command = [str(self.bench / "bench_gpu"), "--scene", scene.name, "--model"]
        command += [str(self.folder / scene.model), "--steps", str(scene.steps), "--vary"]
        command += [f"{scene.joint}:{scene.shift}:{scene.turn}:{scene.hinges}:{scene.rise}"]
        if scene.controls:
            command += ["--controls", str(self.folder / scene.controls)]
        if scene.body:
            command += ["--held", f"{scene.body}:{scene.height}"]
        return command

    def part_of(self, scene: Scene, worlds: int, ways: list[str], how: str) -> list[str]:
        """A command for one number of worlds."""
        command = [*self.command_of(scene), "--parts", ",".join(ways), "--how", how]
        command += ["--hold-steps", str(self.arguments.hold_steps)]
        return [*command, "--whole-steps", str(self.way(scene, worlds)), str(worlds)]

    def ours(self) -> None:
        a = self.arguments
        for scene in self.scenes:
            how = a.how or HOWS.get(scene.name, OTHERS_HOW)
            for worlds in self.worlds(scene):
                self.run.collect("ours", self.part_of(scene, worlds, a.ways, how))

    def processor(self) -> None:
        a = self.arguments
        for scene in self.scenes:
            for worlds in a.worlds or [1, 256]:
                command = self.part_of(scene, worlds, a.ways, a.how or "double:1e-6")
                for row in self.run.collect("processor", [*command, "--backend", "cpu"]):
                    row |= {"card": "", "driver": ""}

    def mujoco(self) -> None:
        """Kernels first, all scenes side by side; then one scene after the other."""
        a = self.arguments
        command = [a.peers_python, HERE / "mujoco_warp_bench.py", self.folder]
        again = {scene.name: ["--worlds", "2", "--hold-steps", "10"] for scene in self.scenes}
        self.run.together("mujoco", [[*command, name, *few] for name, few in again.items()])
        for scene in self.scenes:
            for worlds in self.worlds(scene):
                options = ["--hold-steps", str(a.hold_steps), "--parts", *a.ways]
                options += ["--worlds", str(worlds), "--whole-steps", str(self.way(scene, worlds))]
                self.run.collect("mujoco", [*command, scene.name, *options])
                if (scene.name, worlds) == ("jaw_mug", 8192):
                    stiff = [*options, "--impratio", "100"]
                    self.run.collect("mujoco", [*command, scene.name, *stiff])

    def kamino(self) -> None:
        """Runs the box scenes in Kamino, which settle for as many steps as ours."""
        command = [self.arguments.peers_python, HERE / "kamino_bench.py"]
        command += ["--settle", str(scenes.BOXES_STEPS)]
        command += ["--steps", str(self.arguments.hold_steps)]
        for worlds in self.arguments.worlds or BOXES_WORLDS:
            self.run.collect("kamino", [*command, "--worlds", str(worlds)])

    def field(self) -> None:
        command = [self.bench / "bench_large"]
        self.run.collect("field", command)
        for ground in ("mesh", "field"):
            self.run.collect("field", [*command, "100000", "1000", ground])

    def schurpa(self) -> None:
        """At the thesis' size."""
        size = ["8000", "1000"]
        tribo = [self.run.build / "tribo", "bench", "schurpa", "--json", "--repeats", "11"]
        for precision in ("double", "float"):
            options = ["--backend", "gpu", "--precision", precision]
            self.run.collect(
                "schurpa", [*tribo, "--n", size[0], "--half-bandwidth", size[1], *options]
            )
        self.run.collect("schurpa", [self.bench / "bench_programs", *size, "32"])

    def first(self) -> None:
        """Thrice: the system's caches are cold once."""
        for _ in range(3):
            self.run.collect("first", [self.bench / "bench_first"])

    def stages(self) -> None:
        """A plug-in that counts prints cycles of the launches before; the last line is warm."""
        plugin = self.arguments.stages_plugin
        if not plugin.exists():
            self.run.fail("stages", f"no {plugin}: make bench-gpu builds it")
            return
        for scene in self.scenes:
            for way in self.arguments.ways:
                for worlds in self.arguments.worlds or [1, 8192]:
                    self.stages_of(scene, way, worlds, plugin)

    def stages_of(self, scene: Scene, way: str, worlds: int, plugin: Path) -> None:
        row: dict[str, Any] = {}
        for line in self.run.lines(
            "stages",
            # kernels side by side would share their clocks
            [*self.part_of(scene, worlds, [way], "double:1e-6"), "--overlap", "0"],
            TRIBO_GPU_PLUGIN=str(plugin),
        ):
            found = re.match(r"cycles a step, next \d+ worlds x (\d+) lanes: (.*) \(", line)
            if found:
                words = found[2].split()
                cycles = dict(zip(words[::2], map(int, words[1::2]), strict=True))
                row = {"lanes": int(found[1]), "cycles": cycles}
        if not row:
            what = f"{scene.name}, {way}, {worlds} worlds"
            self.run.fail("stages", f"{what}: {plugin} told no cycles")
            return
        row = {"of": "stages", "scene": scene.name, "part": way, **row, "worlds": worlds}
        if way == "whole":
            row["steps"] = self.way(scene, worlds)
        self.run.results.append(row)
        self.run.say(f"  {row['cycles']}")

    def calls(self) -> None:
        for scene in self.scenes:
            command = [self.bench / "bench_gpu_calls", self.folder / scene.model]
            worlds = self.arguments.worlds or [1]
            for row in self.run.collect("calls", [*command, *worlds]):
                row |= {"scene": scene.name}

    def daemon(self) -> None:
        told = ""
        command = [sys.executable, HERE / "daemon_bench.py", "--build", self.run.build]
        for line in self.run.lines("daemon", command):
            if line == "{" or told:
                told += line
            else:
                self.run.say("  " + line)
        try:
            row = json.loads(told)
        except ValueError:
            self.run.fail("daemon", "no result")
            return
        self.run.results.append({"of": "daemon", **row})

    def knobs(self) -> None:
        a = self.arguments
        scene = next((s for s in self.scenes if s.name == "jaw_mug"), None)
        if scene is None:
            self.run.fail("knobs", "they are tried on jaw_mug, which is not among the scenes")
            return

        def measure(case: knobs.Case, own: knobs.Knobs) -> float:
            whole = case.way == "whole"
            command = self.command_of(replace(scene, steps=KNOB_STEPS) if whole else scene)
            command += ["--parts", case.way, "--hold-steps", "60", "--how", a.how or "double:1e-6"]
            rows = self.run.collect("knobs", [*command, *own.options(), str(case.worlds)])
            for row in rows:
                row |= own.row()
            return float(rows[-1]["world_steps_per_s"]) if rows else 0.0

        for row in knobs.sweep(measure, a.knob_seconds, a.worlds):
            self.run.results.append(row)
            print(json.dumps(row), flush=True)


PARTS = (
    "agreement", "resume", "sanitizer", "ours", "processor", "mujoco", "kamino", "schurpa", "field",
    "first", "stages", "calls", "daemon", "knobs",
)  # fmt: skip


def card() -> tuple[str, str]:
    """Name and driver."""
    try:
        told = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "", ""
    name, _, driver = told.stdout.splitlines()[0].partition(", ")
    return name, driver


def commit() -> str:
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=HERE, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    return told.stdout.strip()


def read_arguments() -> argparse.Namespace:
    """Paths that are not given lie in the build folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--parts", nargs="+", choices=PARTS, default=PARTS)
    add("--scenes", nargs="+", choices=scenes.SCENES, help="of ours, mujoco, stages")
    add("--worlds", nargs="+", type=int, help="instead of the usual numbers")
    add("--ways", nargs="+", choices=("hold", "whole"), default=["hold", "whole"])
    add("--how", help="precision and tolerance of ours: float:1e-3,double:1e-6,...")
    add("--steps", type=int, help="of a whole way at most, instead of CUT's number")
    add("--hold-steps", type=int, default=60, help="of the hold, timed three times")
    add("--knob-seconds", type=float, default=95, help="of part knobs")
    add("--limit", type=int, default=600, help="seconds for one program")
    add("--build", type=Path, help="the build folder ($TRIBO_BUILD, build)")
    add("--scenes-folder", type=Path, help="where scenes.py has written them, if not there")
    add("--stages-plugin", type=Path)
    add("--peers", type=Path, help="where deploy/deps.sh peers keeps the scenes' models ($PEERS)")
    add("--peers-python", type=Path, help="of deploy/deps.sh gpu-peers")
    add("--commit", default="", help="that is measured, where there is no git")
    add("--out", type=Path)
    add("--join", type=Path, nargs="+", metavar="FILE", help="measure nothing, join results")
    options = parser.parse_args()
    build = options.build or Path(os.environ.get("TRIBO_BUILD", "build"))
    options.build = build = build.resolve()
    options.stages_plugin = options.stages_plugin or build / "stages/libtribo_gpu.so"
    options.peers_python = options.peers_python or build / "gpu-peers/bin/python"
    options.out = options.out or build / "bench-gpu/results.json"
    return options


def refuse(lines: list[str]) -> NoReturn:
    for line in lines:
        print(f"run.py: {line}", file=sys.stderr)
    sys.exit(2)


def show(files: list[Path]) -> int:
    """Tables of earlier measurements; the command's status."""
    try:
        whole = joined.join(files)
    except joined.Wrong as wrong:
        refuse([str(wrong)])
    print(tables.render(whole))
    return int(len(whole["failures"]) > 0)


def measure(arguments: argparse.Namespace, run: Runner) -> int:
    """All parts that were chosen; the command's status."""
    name, driver = card()
    whole: dict[str, Any] = {"commit": arguments.commit or commit(), "card": name}
    whole |= {"driver": driver, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    run.environment["TRIBO_COMMIT"] = whole["commit"]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)

    def keep() -> None:
        found = {"failures": run.failures, "results": run.results}
        arguments.out.write_text(json.dumps(whole | found, indent=1) + "\n")

    run.keep = keep  # finished parts are kept if a later one fails
    parts = Measure(arguments, run)
    for part in arguments.parts:
        parts.measure(part)
        keep()
    whole |= {"failures": run.failures, "results": run.results}
    print(tables.render(whole))
    print(f"\nwritten to {arguments.out}")
    return int(len(run.failures) > 0)


def main() -> None:
    arguments = read_arguments()
    if arguments.join:
        sys.exit(show(arguments.join))
    # the end of this command ends the programs that it has started, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    run = Runner(arguments.build, arguments.limit)
    faults = checks.faults(arguments, run.environment)
    if faults:
        refuse(faults)
    sys.exit(measure(arguments, run))


if __name__ == "__main__":
    main()
