#!/usr/bin/env python3
"""Makes the picture of the dashboard in README.md: a hand that has lifted a mug.

make dashboard-picture
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from common_browser import Browser
from common_daemon import BUILD, scratch

import tribo

PICTURE = Path("clients/web/dashboard.png")
#: From the other side, and nearer to the held object.
CLOSER = """(() => {
  const { camera, orbit } = tribodView.view;
  camera.position.sub(orbit.target).multiplyScalar(0.7).setZ(0.14).add(orbit.target);
  orbit.update();
})()"""


def main() -> None:
    """Has the hand close and lift, follows it with the page, and takes the picture."""
    with (
        scratch() as folder,
        tribo.Daemon(data=folder / "data") as daemon,
        daemon.connect(timeout=60) as client,
        Browser(folder, 1400, 900) as browser,
    ):
        scene = client.load(BUILD / "demo/grasp.xml")
        session = client.create_session(scene, label="a hand lifts a mug")
        session.step(50)
        browser.open(f"http://{daemon.http}/#/live/{session.id}")
        browser.wait("globalThis.tribodView?.frame()?.steps >= 50")
        # the first five actuators place the hand, m and rad; the last two close its fingers, N
        for lift in [0.0] * 40 + [0.0015 * i for i in range(41)] + [0.06] * 20:
            session.step(5, controls=[0, 0, lift, 0, 0, 30, 30])
            time.sleep(0.03)
        steps = session.state().steps
        browser.wait(f"tribodView.frame().steps === {steps}")
        browser.wait("document.querySelectorAll('.timeline canvas').length >= 4")
        browser.run(CLOSER)
        browser.picture(PICTURE)
    print(f"{PICTURE}: {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
