#!/usr/bin/env python3
"""Times of a daemon with a card, seen by a client over HTTP: from its start to the first answer
for an object and a hand that it has never seen, the first answer for one more, single steps, forks,
many worlds, the same on every card at once, grasps; and how it ends when the card is lost. Needs
nothing but Python.

    daemon_bench.py [--build build] [--device gpu:0] [--plugin FILE] [--lose] [--poses 64]

prints one JSON object. --lose wants a plug-in that fails when the file in TRIBO_TEST_LOSE is there
(tests/plugin, or the backend built with CPPFLAGS=-DTB_TEST_LOSE)."""

from __future__ import annotations

import argparse
import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from http_daemon import Daemon, put_scene, session


def timed(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


def steps(daemon: Daemon, name: str, count: int, calls: int, **want: bool) -> dict[str, float]:
    """Median and largest time of such calls, ms."""
    times = [
        1e3 * timed(lambda: daemon.call("Simulation/Step", sessionId=name, steps=count, want=want))
        for _ in range(calls)
    ]
    return {"median_ms": round(statistics.median(times), 3), "largest_ms": round(max(times), 3)}


def make_scenes(build: Path, folder: Path) -> None:
    """Two mugs of different detail with a hand each."""
    for detail in ("1", "3"):
        inside = str(folder / detail)
        os.mkdir(inside)
        for name, *rest in (["mug", inside, detail], ["hand", inside], ["jaw_mug", inside]):
            program = build / "tests/data" / name
            subprocess.run([program, *rest], check=True, stdout=subprocess.DEVNULL)


def first_answer(daemon: Daemon, folder: Path, device: str) -> str:
    """Uploads, compiles, steps once, and reads the state."""
    scene = put_scene(daemon, folder, "grasp.xml", ["mug.obj", "hand.xml"])
    name = session(daemon, scene, device)
    daemon.call("Simulation/Step", sessionId=name, want={"state": True, "contacts": True})
    return name


def play_grasps(daemon: Daemon, folder: Path, device: str, poses: int) -> dict[str, object]:
    """One job; the object and the hand come with it."""
    asset = {
        kind: {
            "data": base64.b64encode((folder / name).read_bytes()).decode(),
            "path": name,
        }
        for kind, name in (("object", "mug.obj"), ("hand", "hand.xml"))
    }
    begin = time.monotonic()
    messages = daemon.stream(
        "Grasp/EvaluateGrasps",
        object={"asset": asset["object"], "friction": 0.7, "density": 2400},
        hand={"asset": asset["hand"], "closingActuators": ["close_left", "close_right"]},
        poses=[
            {
                "pose": {"position": [0, 0, 0.055 - 0.0001 * (i % 100)]},
                "force": 20,
            }
            for i in range(poses)
        ],
        protocol={"lift": 0.05, "liftSeconds": 0.2, "holdSeconds": 0.2},
        device=device,
    )
    first = next((t for t, m in messages if "result" in m), None)
    summary = next((m["summary"] for _, m in messages if "summary" in m), None)
    if first is None or summary is None:
        return {"failed": messages[-1][1] if messages else "nothing came"}
    seconds = messages[-1][0] - begin
    world_steps = int(summary["worldSteps"])
    verdicts = [m["result"].get("verdict") for _, m in messages if "result" in m]
    held = verdicts.count("GRASP_VERDICT_HELD")
    return {
        "poses": poses,
        "held": held,
        "device": summary.get("device", ""),
        "first_result_seconds": round(first - begin, 4),
        "seconds": round(seconds, 4),
        "world_steps": world_steps,
        "world_steps_per_second": round(world_steps / seconds),
    }


def every_card(daemon: Daemon, scene: str, worlds: int) -> dict[str, object]:
    """The same worlds on every card that there is: alone, then on all of them at once, each by a
    connection of its own. Their states must be the same bytes."""
    devices = [d["name"] for d in daemon.call("Simulation/GetServerInfo")["devices"]]
    cards = [name for name in devices if name.startswith("gpu:")]
    names = {card: session(daemon, scene, card, worlds) for card in cards}

    def run(card: str) -> None:
        link = daemon.connect()
        daemon.call("Simulation/Step", link, sessionId=names[card], steps=50)

    alone = {card: [timed(partial(run, card)) for _ in range(3)][1:] for card in cards}
    with ThreadPoolExecutor(len(cards)) as pool:
        together = [timed(lambda: list(pool.map(run, cards))) for _ in range(2)]
    states = [
        daemon.call("Simulation/Step", sessionId=names[card], want={"state": True})["state"]
        for card in cards
    ]
    return {
        "cards": cards,
        "worlds": worlds,
        "alone_ms": {card: [round(1e3 * t, 2) for t in times] for card, times in alone.items()},
        "together_ms": [round(1e3 * t, 2) for t in together],
        "states_equal": all(state == states[0] for state in states),
    }


class Parts(dict[str, Any]):
    """Results, each of which is also printed when it is stored."""

    def __setitem__(self, name: str, value: object) -> None:
        super().__setitem__(name, value)
        if name not in ("metrics", "log"):
            print(f"{name}: {json.dumps(value)}", file=sys.stderr, flush=True)


def measure(options: argparse.Namespace, folder: Path, environment: dict[str, str]) -> Parts:
    """The life of one daemon."""
    with Daemon(options.build, environment) as daemon:
        return measure_it(daemon, options, folder)


def measure_it(daemon: Daemon, options: argparse.Namespace, folder: Path) -> Parts:
    out = Parts()
    out["start_to_ready_seconds"] = round(daemon.ready_seconds, 4)
    name = first_answer(daemon, folder / "1", options.device)
    out["start_to_first_answer_seconds"] = round(time.monotonic() - daemon.began, 4)
    out["devices"] = daemon.call("Simulation/GetServerInfo")["devices"]
    out["next_unseen_object_ms"] = round(
        1e3 * timed(lambda: first_answer(daemon, folder / "3", options.device)), 3
    )
    out["one_world"] = {
        "step": steps(daemon, name, 1, 300),
        "step_with_state": steps(daemon, name, 1, 100, state=True),
        "100_steps": steps(daemon, name, 100, 5),
    }
    scene = put_scene(daemon, folder / "1", "jaw_mug.xml", [])
    jaw = session(daemon, scene, options.device)
    out["jaw_mug_one_world"] = {
        "step": steps(daemon, jaw, 1, 300),
        "step_with_state": steps(daemon, jaw, 1, 100, state=True),
    }
    many = session(daemon, scene, options.device, options.worlds)
    out["many_worlds"] = {
        "worlds": options.worlds,
        "10_steps": steps(daemon, many, 10, 5),
        "10_steps_with_state": steps(daemon, many, 10, 3, state=True),
    }
    begin = time.monotonic()
    forks = daemon.call("Simulation/Fork", sessionId=jaw, count=100)["sessionIds"]
    made = time.monotonic()
    for fork in forks:
        daemon.call("Simulation/Step", sessionId=fork)
    out["100_forks"] = {
        "fork_ms": round(1e3 * (made - begin), 3),
        "step_each_ms": round(10 * (time.monotonic() - made), 3),
    }
    if options.device.startswith("gpu:"):
        out["every_card"] = every_card(daemon, scene, options.worlds)
    for device in (options.device, "cpu"):
        if options.poses > 0:
            out[f"grasps on {device}"] = play_grasps(daemon, folder / "1", device, options.poses)
    out["metrics"] = daemon.metrics()
    status, log = daemon.stop()
    out["exit_status"] = status
    out["log"] = [line for line in log.splitlines() if "server.ready" in line or "error" in line]
    return out


def lose(
    options: argparse.Namespace, folder: Path, environment: dict[str, str]
) -> dict[str, object]:
    """A card that fails under a daemon."""
    switch = folder / "lose"
    with Daemon(options.build, {**environment, "TRIBO_TEST_LOSE": str(switch)}) as daemon:
        return lose_it(daemon, options, folder, switch)


def lose_it(
    daemon: Daemon, options: argparse.Namespace, folder: Path, switch: Path
) -> dict[str, object]:
    scene = put_scene(daemon, folder / "1", "jaw_mug.xml", [])
    name = session(daemon, scene, options.device)
    daemon.call("Simulation/Step", sessionId=name, steps=5)
    switch.touch()
    try:
        daemon.call("Simulation/Step", sessionId=name, want={"state": True})
        answer = "an answer came"
    except RuntimeError as error:
        answer = str(error)
    status, log = daemon.end()
    return {
        "answer": answer,
        "exit_status": status,
        "log": [line for line in log.splitlines() if "lost" in line],
    }


def main() -> None:
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--device", default="gpu:0")
    parser.add_argument("--plugin", type=Path)
    parser.add_argument("--lose", action="store_true")
    parser.add_argument("--poses", type=int, default=64)
    parser.add_argument("--worlds", type=int, default=4096)
    options = parser.parse_args()
    options.build = options.build.resolve()
    environment = {"TRIBOD_SERVER_BACKEND": "auto", "TRIBOD_LOG_LEVEL": "info"}
    if options.plugin is not None:
        environment["TRIBO_GPU_PLUGIN"] = str(options.plugin.resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_scenes(options.build, folder)
        run = lose if options.lose else measure
        print(json.dumps(run(options, folder, environment), indent=1))


if __name__ == "__main__":
    main()
