#!/usr/bin/env python3
"""The dashboard in Chromium: a grasp job is started from files and followed to its results; a
recording is scrubbed; the log is there for admins; two runs tell where their scenes differ."""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_browser import Browser
from common_daemon import BALL, Report, create_key, make_models, scratch
from dashboard_shows_the_daemon import use_key

import tribo

#: Directions that the page tries.
DIRECTIONS = 3


def choose(browser: Browser, selector: str, *files: Path) -> None:
    """Gives files to a file input, as its dialog would."""
    found = browser.call("Runtime.evaluate", expression=f"document.querySelector('{selector}')")
    browser.call(
        "DOM.setFileInputFiles",
        objectId=found["result"]["objectId"],
        files=[str(file) for file in files],
    )


def fill(browser: Browser, name: str, value: float) -> None:
    """Writes a number into a field of the form."""
    browser.run(f"document.querySelector('form.job [name={name}]').value = '{value}'")


def check_job(report: Report, browser: Browser, daemon: tribo.Daemon, folder: Path) -> None:
    """A job from files, to its results; files that are not a model give an error in words."""
    browser.open(f"http://{daemon.http}/#/grasps")
    browser.wait("document.querySelector('details summary')")
    browser.click("details summary")
    browser.wait("document.querySelector('form.job')?.checkVisibility()")

    no_model = folder / "notes.txt"
    no_model.write_text("not a model")
    choose(browser, "form.job [name=object]", no_model)
    choose(browser, "form.job [name=hand]", folder / "hand.xml")
    browser.click("form.job button.main")
    browser.wait("document.querySelector('form.job .failure')")
    said = browser.run("document.querySelector('form.job .failure').textContent")
    report.check("Choose a model" in said, f"a file that is no model: {said}")

    choose(browser, "form.job [name=object]", folder / "mug.obj")
    for name, value in (("count", DIRECTIONS), ("copies", 1), ("force", 20), ("approach", 0)):
        fill(browser, name, value)
    browser.run("document.querySelector('form.job [name=label]').value = 'from the page'")
    browser.click("form.job button.main")
    browser.wait("/^#.grasps.[0-9a-f]{4,}/.test(location.hash)")
    rows = "document.querySelectorAll('main tbody tr').length"
    browser.wait(f"{rows} === {DIRECTIONS}")
    with daemon.connect() as client:
        jobs = list(client.grasp_jobs())
        report.equal(len(jobs), 1, "jobs of the daemon")
        report.equal(jobs[0].label, "from the page", "its label")
        report.equal(jobs[0].grasps, DIRECTIONS, "its grasps")
        kept = list(client.grasp_job_results(jobs[0].id))
    report.equal(len(kept), DIRECTIONS, "its results")
    names = json.loads(
        browser.run(
            "JSON.stringify([...document.querySelectorAll('main tbody tr')]"
            ".map((row) => row.textContent))"
        )
    )
    for grasp in kept:
        shown = [row for row in names if grasp.name in row]
        verdict = grasp.verdict.name.lower()
        report.check(
            len(shown) == 1 and verdict in shown[0].lower(),
            f"the row of {grasp.name} says {verdict}: {shown}",
        )


def run_of(client: tribo.Client, label: str) -> str:
    """The run of a session with this label; it is stored a little after the session."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for run in client.runs():
            if run.label == label:
                return run.run_id
        time.sleep(0.1)
    raise TimeoutError(f"session '{label}' has no run")


def check_recording(report: Report, browser: Browser, daemon: tribo.Daemon) -> None:
    """The last frame of a recorded fall shows the ball where the session has it."""
    base = f"http://{daemon.http}/tribo.v1.Simulation"
    with daemon.connect() as client:
        scene = client.load(BALL, name="ball.xml")
        request = urllib.request.Request(
            f"{base}/CreateSession",
            json.dumps(
                {"sceneId": scene.id, "record": {"interval": 0.01}, "label": "recorded"}
            ).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            session = client.session(json.load(answer)["sessionId"])
        session.set_state(q=[0, 0, 0.5, 1, 0, 0, 0])
        answer_after = session.step(100)
        assert answer_after.q is not None
        height = float(answer_after.q[0, 2])
        run = run_of(client, "recorded")
    browser.open(f"http://{daemon.http}/#/recording/{run}")
    browser.wait("!!globalThis.tribodView?.frame()")
    slider = "document.querySelector('main input.time')"
    browser.wait(slider)
    # the recording begins with the session's own state, a ball at rest
    for end, expected in (("min", 0.1), ("max", height)):
        browser.run(
            f"(() => {{ const s = {slider}; s.value = s.{end};"
            " s.dispatchEvent(new Event('input', { bubbles: true })); })()"
        )
        shown = "globalThis.tribodView.frame().poses.slice(-7)[2]"
        browser.wait(f"Math.abs({shown} - {expected}) < 1e-3")
        report.check(True, f"height at the slider's {end}")


def check_differences(report: Report, browser: Browser, daemon: tribo.Daemon) -> None:
    """Two balls whose masses differ."""
    with daemon.connect() as client:
        runs = []
        for mass in (b"1", b"2"):
            scene = client.load(BALL.replace(b'mass="1"', b'mass="' + mass + b'"'), name="b.xml")
            label = f"mass {mass.decode()}"
            client.create_session(scene, label=label).step(5)
            runs.append(run_of(client, label))
    browser.open(f"http://{daemon.http}/#/compare/{runs[0]}/{runs[1]}")
    browser.wait("/bodies . ball . mass/.test(document.querySelector('main').textContent)")
    row = browser.run(
        "[...document.querySelectorAll('main tr')].map((row) => "
        "[...row.querySelectorAll('td')].map((cell) => cell.textContent))"
        ".find((row) => row[0] === 'bodies / ball / mass')"
    )
    report.equal(row, ["bodies / ball / mass", "1", "2"], "the row of the mass")
    text = browser.run("document.querySelector('main').textContent")
    report.check("bodies / ball / parent" not in text, "what is equal has no row")


def check_log(report: Report, browser: Browser, folder: Path) -> None:
    """Admins see the end of the log and search it; others do not."""
    data = folder / "keys"
    keys = {s: create_key(data, f"a {s} key", "--scope", s) for s in ("read", "admin")}
    with tribo.Daemon(data=data, environment={"TRIBOD_AUTH_ANONYMOUS": "none"}) as daemon:
        browser.open(f"http://{daemon.http}/#/server")
        use_key(browser, keys["read"])
        browser.wait("document.querySelector('main dl.facts')")
        report.check(
            browser.run("document.querySelector('pre.log') === null"), "a reader sees no log"
        )
        use_key(browser, keys["admin"])
        browser.wait("/server.ready/.test(document.querySelector('pre.log')?.textContent)")
        browser.run(
            "(() => { const box = document.querySelector('main input[type=search]');"
            " box.value = 'no line has this'; box.dispatchEvent(new Event('input')); })()"
        )
        browser.wait("document.querySelector('pre.log').textContent === 'no line'")
        report.check(True, "the search")


def main() -> None:
    """All checks, with one browser."""
    report = Report()
    with scratch() as folder:
        make_models(folder)
        with Browser(folder) as browser:
            with tribo.Daemon() as daemon:
                with report.case("a job from files"):
                    check_job(report, browser, daemon, folder)
                with report.case("a recording"):
                    check_recording(report, browser, daemon)
                with report.case("scenes that differ"):
                    check_differences(report, browser, daemon)
                report.equal(browser.problems, [], "problems of the page's console")
            with report.case("the log"):
                check_log(report, browser, folder)
    report.finish()


if __name__ == "__main__":
    main()
