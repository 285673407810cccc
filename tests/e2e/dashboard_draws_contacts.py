#!/usr/bin/env python3
"""The live view in a real browser: arrows, status colours and poses are read from the scene graph
and compared with the daemon's numbers; bodies are chosen, the session is stepped from the page, and
exported files parse."""

from __future__ import annotations

import csv
import json
import math
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_browser import Browser
from common_daemon import BUILD, Report, scratch
from dashboard_shows_the_daemon import check_axe, take_pictures

import tribo

#: A box of 1 kg at rest on a floor, a motor that a slider may drive, and a cord without force.
SCENE = b"""<mujoco model="box"><worldbody>
  <geom name="floor" type="plane" size="2 2 0.1" friction="0.5"/>
  <body name="box" pos="0 0 0.1"><freejoint/>
    <geom name="box" type="box" size="0.1 0.1 0.1" mass="1" friction="0.5" rgba="0.8 0.5 0.3 1"/>
  </body>
  <site name="peg" pos="0.6 0 0.8"/>
  <body name="wheel" pos="0.6 0 0.3"><joint name="axle" type="hinge" axis="0 1 0"/>
    <geom name="wheel" type="cylinder" size="0.12 0.03" mass="1"/><site name="rim" pos="0 0 0.1"/>
  </body>
</worldbody>
<tendon><spatial name="cord"><site site="peg"/><site site="rim"/></spatial></tendon>
<actuator><motor name="drive" joint="axle" ctrlrange="-1 1"/></actuator></mujoco>"""

#: A cube that rests on a floor by the volume law.
CUBE = b"""<mujoco model="cube"><option timestep="0.001" gravity="0 0 -9.81"/><worldbody>
  <geom name="floor" type="plane" size="2 2 0.1"/>
  <body name="cube" pos="0 0 0.4999"><freejoint/>
    <geom name="cube" type="box" size="0.5 0.5 0.5" density="1000"/></body>
</worldbody></mujoco>"""
CUBE_WEIGHT = 9810.0

WEIGHT = 9.81
FRAME = "tribodView?.frame()"

#: Force of each arrow, N: shaft and head together are as long as the force times the scale.
ARROWS = """(() => {
  const { view } = tribodView;
  const [shafts, heads] = ["force arrows", "force heads"].map(n => view.scene.getObjectByName(n));
  const scale = view.arrowScale;
  return Array.from({ length: shafts.count }, (_, i) => [4, 5, 6].map(k =>
    (shafts.instanceMatrix.array[16 * i + k] + heads.instanceMatrix.array[16 * i + k]) / scale));
})()"""

#: Colours of the contact points, as written in a style sheet.
COLOURS = """(() => {
  const points = tribodView.view.scene.getObjectByName("contact points");
  const linear = points.instanceColor.array;
  const sRGB = x => Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
  return Array.from({ length: points.count }, (_, i) => '#' + [0, 1, 2].map(k =>
    sRGB(linear[3 * i + k]).toString(16).padStart(2, '0')).join(''));
})()"""
STICK, SLIP = "#2fae6b", "#f08a24"

#: Vectors (m) of the lines over the bodies that have a colour, as written in a style sheet.
LINES = """(colour => {
  const { view } = tribodView;
  const [{ geometry }] = view.scene.getObjectByName("overlays").children;
  const { position, color } = geometry.attributes;
  const sRGB = x => Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
  const named = i => '#' + [0, 1, 2].map(k =>
    sRGB(color.array[3 * i + k]).toString(16).padStart(2, '0')).join('');
  const found = [];
  for (let i = 0; i < geometry.drawRange.count; i += 2)
    if (named(i) === colour)
      found.push([0, 1, 2].map(k => position.array[3 * i + 3 + k] - position.array[3 * i + k]));
  return found;
})"""
TRIANGLE, SHARE, BOX, TENDON = "#2f7fd0", "#e0782a", "#8c8a84", "#b5533c"


def check_arrows(report: Report, browser: Browser, session: tribo.Session) -> None:
    """The forces on the box at rest add up to its weight, upwards."""
    browser.wait(f"{FRAME}?.steps >= 50 && {FRAME}.contacts[0].count === 4")
    browser.wait(f"{ARROWS}.length >= 4")
    arrows = browser.run(ARROWS)
    total = [sum(arrow[axis] for arrow in arrows) for axis in range(3)]
    report.check(abs(total[2] - WEIGHT) < 1e-3, f"arrows of the box at rest: {total} N")
    report.check(math.hypot(total[0], total[1]) < 1e-3, f"and straight up: {total} N")
    report.equal(browser.run(COLOURS), [STICK] * 4, "colours at rest")


def check_tendons(report: Report, browser: Browser) -> None:
    """The cord is a line from the peg to the rim of the wheel, which stands still yet."""
    browser.wait(f"{LINES}('{TENDON}').length > 0")
    lines = browser.run(f"{LINES}('{TENDON}')")
    report.equal(len(lines), 1, "lines of tendons")
    report.check(math.dist(lines[0], (0, 0, -0.4)) < 1e-6, f"from peg to rim: {lines[0]} m")


#: Shares of the picture's pixels that a difference of 12 of 255 is seen in: between one mesh of all
#: instances and the instances themselves, and between these and no bodies at all.
DRAWN_ALIKE = """(async () => {
  const { view } = tribodView;
  const flat = view.scene.getObjectByName("flat bodies");
  const pixels = async () => {
    const picture = await createImageBitmap(await view.picture());
    const canvas = new OffscreenCanvas(picture.width, picture.height);
    const context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    return context.getImageData(0, 0, picture.width, picture.height).data;
  };
  const differ = (a, b) => a.filter((x, i) => Math.abs(x - b[i]) > 12).length / a.length;
  const first = await pixels();
  flat.visible = false;
  const none = await pixels();
  const before = view.bodies.instances.map(mesh => mesh.layers.mask);
  view.bodies.instances.forEach(mesh => mesh.layers.set(0));
  const instances = await pixels();
  view.bodies.instances.forEach((mesh, i) => mesh.layers.mask = before[i]);
  flat.visible = true;
  const { drawRange, index } = flat.geometry;
  return [differ(first, instances), differ(none, instances), drawRange.count / index.count];
})()"""

#: Pixels of the canvas along a CSS pixel.
PIXELS = "document.querySelector('canvas').width / document.querySelector('canvas').clientWidth"
#: Turns the camera, frame by frame, until there are fewer pixels; how many there are then.
TURN = f"""(async () => {{
  for (let i = 0; i < 500 && {PIXELS} > 0.9; i++) {{
    tribodView.view.camera.position.x += 1e-6;
    tribodView.view.touch();
    await new Promise(requestAnimationFrame);
  }}
  return {PIXELS};
}})()"""


def check_drawing(report: Report, browser: Browser) -> None:
    """By software instances are drawn as one mesh, which looks as they do."""
    alike, none, facing = browser.run(DRAWN_ALIKE)
    report.check(none > 0.01, f"without bodies {none:.1%} of the picture differ")
    report.check(alike < 0.1 * none, f"one mesh and its instances differ in {alike:.2%}")
    report.check(0.2 < facing < 0.7, f"{facing:.0%} of the triangles are drawn")
    # fewer pixels while the picture moves, all of them once it rests
    report.check(browser.run(TURN) < 0.9, "a picture that moves has fewer pixels")
    browser.wait(f"{PIXELS} > 0.99")
    report.check(True, "a picture at rest has all its pixels")


def check_sliding(report: Report, browser: Browser, session: tribo.Session) -> None:
    """A box that slides is drawn in the colour of slip, with friction against its motion."""
    state = session.state()
    u = state.u.copy()
    u[0, 0] = 1.0
    session.set_state(q=state.q, u=u)
    session.step(5)
    steps = session.state().steps
    browser.wait(f"{FRAME}.steps === {steps}")
    browser.wait(f"{COLOURS}.every(c => c === '{SLIP}')")
    total = [sum(arrow[axis] for arrow in browser.run(ARROWS)) for axis in range(3)]
    report.check(abs(total[0] + 0.5 * WEIGHT) < 1e-2, f"friction against sliding: {total} N")
    session.step(200)
    browser.wait(f"{COLOURS}.every(c => c === '{STICK}')")
    x = browser.run(f"{FRAME}.poses[7]")
    # v^2 / (2 mu g), of a box that starts with 1 m/s
    report.check(abs(x - 1 / (2 * 0.5 * WEIGHT)) < 5e-3, f"where it came to rest: {x} m")


def check_choosing(report: Report, browser: Browser) -> None:
    """A press on the box shows its numbers; a press on a contact those of the contact."""
    place = browser.run(
        "(() => { const { view } = tribodView; const f = tribodView.frame();"
        " const v = view.camera.position.clone().set(f.poses[7], f.poses[8], f.poses[9])"
        ".project(view.camera); const b = document.querySelector('canvas').getBoundingClientRect();"
        " return [b.x + b.width * (v.x + 1) / 2, b.y + b.height * (1 - v.y) / 2]; })()"
    )
    browser.mouse(*place)
    text = browser.wait("document.querySelector('[aria-label=\"Chosen body\"]')?.innerText")
    report.check("box" in text and "1 kg" in text and "9.81 N" in text, f"the chosen body: {text}")
    place = browser.run(
        "(() => { const { view } = tribodView; const p = tribodView.frame().contacts[0].positions;"
        " const v = view.camera.position.clone(); let best = [0, 0, 2];"
        " for (let i = 0; i < p.length; i += 3) { v.set(p[i], p[i + 1], p[i + 2])"
        ".project(view.camera); if (v.z < best[2]) best = [v.x, v.y, v.z]; }"
        " const b = document.querySelector('canvas').getBoundingClientRect();"
        " return [b.x + b.width * (best[0] + 1) / 2, b.y + b.height * (1 - best[1]) / 2]; })()"
    )
    browser.mouse(*place)
    text = browser.wait("document.querySelector('[aria-label=\"Chosen contact\"]')?.innerText")
    report.check("stick" in text and "coulomb" in text, f"the chosen contact: {text}")


def check_stepping(report: Report, browser: Browser, session: tribo.Session) -> None:
    """Single step, play, a control by its slider, reset; by buttons of the page."""
    before = session.state().steps
    buttons = "[...document.querySelectorAll('.side button')]"
    browser.run(f"{buttons}.find(b => b.textContent === 'one step').click()")
    browser.wait(f"{FRAME}.steps === {before + 1}")
    browser.run(
        "(() => { const s = document.querySelector('.side .slider input');"
        " s.value = 0.5; s.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    browser.run("document.querySelector('.side .buttons [aria-pressed]').click()")
    browser.wait(f"{FRAME}.steps > {before + 20}")
    browser.run("document.querySelector('.side .buttons [aria-pressed=true]').click()")
    report.check(abs(float(session.state().controls[0, 0]) - 0.5) < 1e-9, "the slider's control")
    report.check(abs(float(session.state().q[0, -1])) > 0, "the wheel turns")


def check_time(report: Report, browser: Browser) -> None:
    """The slider holds a time, which the address bears."""
    browser.run(
        "(() => { const s = document.querySelector('.time');"
        " s.value = (Number(s.min) + Number(s.max)) / 2;"
        " s.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    browser.wait("/[?&]t=[0-9]/.test(location.hash)")
    held = browser.run(f"{FRAME}.time")
    report.check(0 < held < browser.run("tribodView.history.frames.at(-1).time"), f"held at {held}")
    browser.wait("document.querySelectorAll('.timeline canvas').length >= 4")


def toggle(browser: Browser, title: str) -> None:
    """Presses a switch of the panel."""
    browser.run(
        "[...document.querySelectorAll('.toggles label')]"
        f".find(l => l.textContent.trim() === '{title}').querySelector('input').click()"
    )


def check_evaluations(report: Report, browser: Browser, session: tribo.Session) -> None:
    """The evaluations of a step by the volume law: triangles and their shares, boxes, and time.

    They are asked for, and kept by steps, only while a page draws them.
    """
    session.step(4000)
    browser.wait(f"{FRAME}?.steps === 4000")
    report.equal(browser.run(f"{FRAME}.evaluations.length"), 0, "evaluations that nobody asked for")
    report.check(not browser.run("!!document.querySelector('[data-evaluations]')"), "no slider")
    toggle(browser, "contributions of triangles")
    toggle(browser, "bounding boxes")
    # the page opens another stream; its steps have evaluations from then on
    for _ in range(200):
        session.step()
        if browser.run(f"{FRAME}?.evaluations.length ?? 0"):
            break
        time.sleep(0.05)
    report.equal(browser.run(f"{FRAME}.evaluations.length"), 4, "evaluations of a step of rkfix4")
    browser.wait(f"{LINES}('{SHARE}').length > 0")
    steps = session.state().steps
    browser.wait(f"{FRAME}.steps === {steps}")
    shares, scale = browser.run(f"[{LINES}('{SHARE}'), tribodView.view.arrowScale]")
    total = [sum(line[axis] for line in shares) / scale for axis in range(3)]
    report.check(abs(total[2] / CUBE_WEIGHT - 1) < 2e-3, f"shares of triangles: {total} N")
    report.check(math.hypot(total[0], total[1]) < 1, f"and straight up: {total} N")
    edges = browser.run(f"{LINES}('{TRIANGLE}')")
    report.equal(len(edges), 3 * len(shares), "three edges a triangle")
    longest = max(math.dist(edge, (0, 0, 0)) for edge in edges)
    report.check(abs(longest - math.sqrt(2)) < 1e-3, f"diagonal of the cube's bottom: {longest} m")
    # twelve edges of the shape's own box, and twelve of the one along the axes
    report.equal(len(browser.run(f"{LINES}('{BOX}')")), 24, "edges of boxes")
    slider = "document.querySelector('[data-evaluations] input')"
    browser.run(
        f"(() => {{ {slider}.value = 0;"
        f" {slider}.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    )
    browser.wait("document.querySelector('[data-evaluations]').innerText.includes('1, at 0 ms')")
    browser.wait(f"{FRAME}.evaluations[0].poses.every((x, i) => x === {FRAME}.poses[i])")
    report.check(True, "the first one is drawn")
    check_axe(report, browser, "evaluations of a step")
    browser.picture(BUILD / "screenshots/live-evaluations.png")
    toggle(browser, "contributions of triangles")
    toggle(browser, "bounding boxes")
    browser.wait(f"{LINES}('{TRIANGLE}').length === 0")


def take(browser: Browser, title: str, pattern: str) -> bytes:
    """A download, when it is complete."""
    browser.click(f'[data-download="{title}"]')
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for path in browser.downloads.glob(pattern):
            return path.read_bytes()
        time.sleep(0.05)
    raise TimeoutError(f"no {pattern} in {browser.downloads}")


def check_downloads(report: Report, browser: Browser) -> None:
    """Exported CSV, glTF, PNG and MCAP files parse as their formats."""
    rows = list(csv.DictReader(take(browser, "CSV", "*.csv").decode().splitlines()))
    resting = [float(r["normal_N"]) for r in rows if r["step"] == rows[0]["step"] and r["contact"]]
    report.check(len(rows) > 10 and abs(sum(resting) - WEIGHT) < 1e-3, f"CSV: {rows[0]}")
    model = take(browser, "glTF", "*.glb")
    magic, version, length = struct.unpack_from("<4sII", model)
    size, kind = struct.unpack_from("<I4s", model, 12)
    document = json.loads(model[20 : 20 + size])
    report.equal((magic, version, length, kind), (b"glTF", 2, len(model), b"JSON"), "glTF")
    report.equal(len(document["meshes"]), 2, "meshes of the glTF")
    report.equal(take(browser, "PNG", "*.png")[:8], b"\x89PNG\r\n\x1a\n", "PNG")
    recording = take(browser, "MCAP", "*.mcap")
    magic = b"\x89MCAP0\r\n"
    report.equal((recording[:8], recording[-8:]), (magic, magic), "MCAP")
    report.check(b"foxglove.FrameTransforms" in recording, "MCAP names its schemas")


def run(report: Report, folder: Path) -> None:
    """Every part."""
    with (
        tribo.Daemon(data=folder / "data") as daemon,
        daemon.connect(timeout=60) as client,
        Browser(folder) as browser,
    ):
        session = client.create_session(client.load(SCENE, name="box.xml"), label="a box")
        session.step(50)
        browser.open(f"http://{daemon.http}/#/live/{session.id}")
        with report.case("arrows"):
            check_arrows(report, browser, session)
            check_tendons(report, browser)
        with report.case("drawing"):
            check_drawing(report, browser)
        with report.case("sliding"):
            check_sliding(report, browser, session)
        with report.case("choosing"):
            check_choosing(report, browser)
            check_axe(report, browser, "the live view")
            take_pictures(browser, "live")
        with report.case("downloads"):
            check_downloads(report, browser)
        with report.case("stepping"):
            check_stepping(report, browser, session)
        with report.case("time"):
            check_time(report, browser)
        with report.case("many worlds"):
            many = client.create_session(client.load(SCENE, name="box.xml"), worlds=64)
            many.step(5)
            browser.open(f"http://{daemon.http}/#/live/{many.id}?world=all")
            browser.wait(f"{FRAME}.worlds.length === 64 && {FRAME}.contacts.length === 64")
            browser.wait("tribodView.view.scene.getObjectByName('contact points').count === 256")
            browser.picture(BUILD / "screenshots/live-64.png")
        with report.case("evaluations"):
            soft = client.create_session(
                client.load(CUBE, name="cube.xml"), options=tribo.StepOptions(scheme="volume")
            )
            browser.open(f"http://{daemon.http}/#/live/{soft.id}")
            check_evaluations(report, browser, soft)
        report.equal(browser.problems, [], "what the console says")


def main() -> None:
    """Skips checks of pages that a build without Node has not."""
    report = Report()
    if not (BUILD / "dashboard/dist/index.html").exists():
        report.skip("the dashboard is not built: deploy/deps.sh dashboard")
    else:
        with scratch() as folder:
            run(report, folder)
    report.finish()


if __name__ == "__main__":
    main()
