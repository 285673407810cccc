#!/usr/bin/env python3
"""Makes the picture of the dashboard in README.md: the hand that holds a mug, stepped by a daemon.

make dashboard-picture
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from common_browser import Browser
from common_daemon import BUILD, scratch

import tribo

PICTURE = Path("clients/web/dashboard.png")


def main() -> None:
    """Closes the hand on the mug, follows it with the page, and takes the picture."""
    with (
        scratch() as folder,
        tribo.Daemon(data=folder / "data") as daemon,
        daemon.connect(timeout=60) as client,
        Browser(folder, 1400, 900) as browser,
    ):
        scene = client.load(BUILD / "demo/grasp.xml")
        session = client.create_session(scene, label="a hand closes on a mug")
        session.step(200)
        browser.open(f"http://{daemon.http}/#/live/{session.id}")
        browser.wait("globalThis.tribodView?.frame()?.steps >= 200")
        # the last two actuators close the fingers, N
        session.step(1, controls=[0, 0, 0, 0, 0, 20, 20])
        for _ in range(40):
            session.step(5)
        steps = session.state().steps
        browser.wait(f"tribodView.frame().steps === {steps}")
        browser.wait("document.querySelectorAll('.timeline canvas').length >= 4")
        browser.picture(PICTURE)
    print(f"{PICTURE}: {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
