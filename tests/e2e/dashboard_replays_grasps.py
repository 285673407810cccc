#!/usr/bin/env python3
"""A stored grasp is played again: the last state of a held one has the forces of the job's result,
a dropped one loses its contacts when the result says so and falls; and the dashboard opens it from
its row, scrubs it, and hides it from callers without the scope run."""

from __future__ import annotations

import base64
import json
import math
import struct
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from common_browser import Browser
from common_daemon import BUILD, Report, create_key, make_models, scratch
from dashboard_shows_the_daemon import check_axe

import tribo
from tribo import demo

HELD, DROPPED = 0, 1
FRAME = "globalThis.tribodView?.frame()"

#: Corners of each drawn wrench space, and centre and radius of its circle.
SPACES = """[...document.querySelectorAll('#grasp .space svg')].map((svg) => [
  [...svg.querySelector('polygon').points].map((p) => [p.x, p.y]),
  ['cx', 'cy', 'r'].map((k) => svg.querySelector('circle')[k].baseVal.value)])"""


def call(daemon: tribo.Daemon, method: str, body: object, key: str = "") -> tuple[str, Any]:
    """A call by the Connect protocol: the error's code ("": none), and the answer."""
    request = urllib.request.Request(
        f"http://{daemon.http}/tribo.v1.{method}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return "", json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)["code"], None


def numbers(array: dict[str, Any], code: str) -> tuple[Any, ...]:
    """The elements of an Array in JSON; `code` as in struct."""
    data = base64.b64decode(array.get("data", ""))
    return struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)


def body_index(scene: dict[str, Any], name: str) -> int:
    """Index of a body by its name in its file; the world names it "hand/NAME" or "object/NAME"."""
    names = [body.get("name", "").rpartition("/")[2] for body in scene["bodies"]]
    return names.index(name)


def normal_forces(scene: dict[str, Any], frame: dict[str, Any], name: str) -> float:
    """N, normal forces of the contacts of a finger with the mug in a frame, added up."""
    pair = {body_index(scene, name), body_index(scene, "mug")}
    bodies = [shape.get("body", 0) for shape in scene["shapeInfos"]]
    contacts = frame["contacts"]
    total = 0.0
    if not contacts.get("count"):
        return total
    shapes = numbers(contacts["shapes"], "i")
    normals, forces = (numbers(contacts[kind], "d") for kind in ("normals", "forces"))
    for i in range(contacts["count"]):
        if pair == {bodies[shapes[2 * i]], bodies[shapes[2 * i + 1]]}:
            along = sum(normals[3 * i + k] * forces[3 * i + k] for k in range(3))
            total += along
    return total


def check_replays(report: Report, daemon: tribo.Daemon, key: str, job: str) -> None:
    """The states of replays against the job's results."""
    found, answer = call(daemon, "Grasp/GetGraspJob", {"id": job, "maximumResults": 2}, key)
    report.equal(found, "", "results")
    held, dropped = answer["results"]
    report.equal(held["verdict"], "GRASP_VERDICT_HELD", "the firm grasp")
    report.equal(dropped["verdict"], "GRASP_VERDICT_DROPPED", "the other grasp")
    replays = []
    for grasp in (HELD, DROPPED):
        ask = {"id": job[:8], "grasp": grasp, "interval": 0.01}
        found, replay = call(daemon, "Grasp/ReplayGrasp", ask, key)
        report.equal(found, "", f"replay of grasp {grasp}")
        replays.append(replay)
    found, scene = call(daemon, "Simulation/GetScene", {"sceneId": replays[0]["sceneId"]}, key)
    report.equal(found, "", "the scene of a replay")
    last = replays[HELD]["frames"][-1]
    for name, force in zip(held["fingerNames"], held["fingerForces"], strict=True):
        again = normal_forces(scene, last, name)
        report.check(math.isclose(again, force, rel_tol=1e-9), f"{name}: {again} N, not {force} N")
    fingers = held["fingerNames"]

    def touch(frame: dict[str, Any]) -> float:
        return max(normal_forces(scene, frame, name) for name in fingers)

    when = dropped["dropTime"]
    frames = replays[DROPPED]["frames"]
    before = [f for f in frames if when - 0.05 < f.get("time", 0) < when - 0.011]
    after = [f for f in frames if f.get("time", 0) > when + 0.011]
    report.check(all(touch(f) > 0 for f in before) and before, "touched before the drop")
    report.check(all(touch(f) == 0 for f in after), "and not behind it")
    mug = body_index(scene, "mug")
    height = [numbers(f["state"]["poses"], "f")[7 * mug + 2] for f in (frames[0], frames[-1])]
    report.check(abs(height[1] - height[0]) < 0.05, f"the mug has fallen: {height} m")
    for wrong, code in (({"grasp": 2}, "invalid_argument"), ({"copy": 3}, "invalid_argument")):
        found, _ = call(daemon, "Grasp/ReplayGrasp", {"id": job, **wrong}, key)
        report.equal(found, code, f"a replay of {wrong}")


def distance_of_edges(corners: list[list[float]], at: list[float]) -> float:
    """From a point inside a convex polygon to its nearest edge."""
    pairs = zip(corners, corners[1:] + corners[:1])
    return min(
        abs((q[0] - p[0]) * (at[1] - p[1]) - (q[1] - p[1]) * (at[0] - p[0])) / math.dist(p, q)
        for p, q in pairs
        if p != q
    )


def check_page(report: Report, browser: Browser, at: str, job: str) -> None:
    """From the row of the dropped grasp to the place where it falls."""
    browser.open(f"{at}#/grasps/{job}")
    browser.wait("document.querySelectorAll('main tbody tr').length === 2")
    browser.click("main thead th:nth-child(2) button")
    check_axe(report, browser, "a job")
    browser.click(f"main tbody a[href$='/{DROPPED}/0']")
    browser.wait(f"{FRAME}?.time === 0 && tribodView.history.frames.length > 100")
    text = browser.wait("document.querySelector('.note')?.innerText")
    report.check("lost at" in text, f"says why: {text}")
    browser.run(
        "(() => { const s = document.querySelector('.time'); s.value = 0.6;"
        " s.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    browser.wait(f"Math.abs({FRAME}.time - 0.6) < 0.02 && {FRAME}.contacts[0].count > 0")
    browser.wait("/[?&]t=0.[56]/.test(location.hash)")
    check_axe(report, browser, "a replay")
    browser.picture(BUILD / "screenshots/replay-light-1400.png")
    browser.open(f"{at}#/grasps/{job}?grasp={HELD}")
    browser.wait("document.querySelectorAll('#grasp .approach, #grasp .space').length === 3")
    for corners, circle in browser.run(SPACES):
        inside = distance_of_edges(corners, circle[:2])
        report.check(0 < circle[2] <= inside * 1.001, f"epsilon's ball in the hull: {circle}")
    browser.picture(BUILD / "screenshots/job-light-1400.png")


def run(report: Report, folder: Path) -> None:
    """Every part."""
    make_models(folder)
    data = folder / "data"
    keys = {scope: create_key(data, scope, "--scope", scope) for scope in ("read", "run")}
    poses = [demo._pose(g) for g in demo._GRASPS if g.name in ("middle", "edge")]
    with tribo.Daemon(data=data) as daemon, daemon.connect(api_key=keys["run"]) as client:
        job = client.submit_grasps(
            tribo.GraspObject(folder / "mug.xml", friction=0.7),
            tribo.Hand(folder / "hand.xml", closing_actuators=("close_left", "close_right")),
            poses,
            protocol=demo.PROTOCOL,
        ).id
        results = list(demo._results(client, job))
        report.equal(len(results), 2, "results")
        with report.case("replays"):
            check_replays(report, daemon, keys["run"], job)
        with report.case("keys"):
            found, _ = call(daemon, "Grasp/ReplayGrasp", {"id": job}, keys["read"])
            report.equal(found, "permission_denied", "a key that may only read")
        if not (BUILD / "dashboard/dist/index.html").exists():
            report.skip("the dashboard is not built: deploy/deps.sh dashboard")
            return
        with report.case("page"), Browser(folder) as browser:
            at = f"http://{daemon.http}/"
            browser.open(at)
            browser.run(f"sessionStorage.setItem('tribod-key', '{keys['run']}')")
            browser.open("about:blank")
            check_page(report, browser, at, job)
            report.equal(browser.problems, [], "what the console says")


def main() -> None:
    """Every part, in a folder of its own."""
    report = Report()
    with scratch() as folder:
        run(report, folder)
    report.finish()


if __name__ == "__main__":
    main()
