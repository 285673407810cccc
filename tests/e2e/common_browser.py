"""A headless Chromium that a test drives by the DevTools protocol, over a pair of pipes.

WebGL is drawn by SwiftShader, so that no card is needed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

#: s; the longest wait for anything
PATIENCE = 60
#: Starts the program given by its arguments with two descriptors as 3 and 4, from which Chromium
#: reads commands and to which it writes answers. A process of its own does this, since gRPC's
#: handlers of a fork open descriptors in a child before it becomes another program.
LAUNCH = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page in a Chromium of its own.

    Attributes:
        problems: errors and warnings of the page's console, uncaught errors, failed loads.
    """

    def __init__(self, folder: Path, width: int = 1400, height: int = 900) -> None:
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if program is None:
            raise FileNotFoundError("chromium is not there: deploy/deps.sh web installs it")
        self.problems: list[str] = []
        self.downloads = folder / "downloads"
        self._folder = folder / f"chromium-{id(self)}"
        # in a container, and as root, Chromium has no sandbox of its own; the page is ours
        flags = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run"]
        flags += ["--disable-extensions", "--disable-background-networking", "--mute-audio"]
        flags += ["--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe"]
        # WebGL by SwiftShader; the page is composed as on any machine without a graphics card
        flags += ["--enable-unsafe-swiftshader"]
        (commands, self._send), (self._receive, answers) = os.pipe(), os.pipe()
        launcher = [sys.executable, "-c", LAUNCH, str(commands), str(answers)]
        self._folder.mkdir(parents=True)
        self._log = folder / "chromium.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*launcher, program, *flags, f"--user-data-dir={self._folder}", "about:blank"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "HOME": str(folder)},
                pass_fds=(commands, answers),
            )
        os.close(commands)
        os.close(answers)
        self._buffer = b""
        self._number = 0
        self._session = ""
        target = self._page()
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))
        self.size(width, height)
        self.scheme("light")

    def _page(self) -> str:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for target in self.call("Target.getTargets")["targetInfos"]:
                if target["type"] == "page":
                    return str(target["targetId"])
            time.sleep(0.05)
        raise TimeoutError("chromium shows no page")

    def close(self) -> None:
        """Ends the browser."""
        with contextlib.suppress(OSError):
            os.close(self._send)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(OSError):
            os.close(self._receive)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- the protocol -----------------------------------------------------------------------

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._receive], [], [], max(0, end - time.monotonic()))
            piece = os.read(self._receive, 1 << 20) if ready else b""
            if not piece:
                raise TimeoutError(
                    f"chromium does not answer; its log:\n{self._log.read_text()[-3000:]}"
                )
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(line))

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """One command, and its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self._send, data) :]
        except BrokenPipeError as error:
            log = self._log.read_text()[-3000:]
            raise BrokenPipeError(f"chromium has ended; its log:\n{log}") from error
        end = time.monotonic() + PATIENCE
        while True:
            answer = self._next(end)
            if answer.get("id") != self._number:
                self._note(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                return dict(answer["result"])

    def _note(self, event: dict[str, Any]) -> None:
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            thrown = details.get("exception", {}).get("description", "")
            self.problems.append(f"{details['text']} {thrown}")
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            said = " ".join(str(a.get("value", a.get("description"))) for a in given["args"])
            self.problems.append(f"console.{given['type']}: {said}")
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            entry = given["entry"]
            # Chromium's own reading of the canvas, where it composes the page without a card
            if "GPU stall due to ReadPixels" in entry["text"]:
                return
            self.problems.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")

    # ---- actions of a test --------------------------------------------------------------------

    def size(self, width: int, height: int, scale: float = 1) -> None:
        """The size of the window, in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def scheme(self, name: str) -> None:
        """`light` or `dark`; without transitions, so that colours are final at once."""
        wishes = {"prefers-color-scheme": name, "prefers-reduced-motion": "reduce"}
        features = [{"name": wish, "value": value} for wish, value in wishes.items()]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str) -> None:
        """Goes to an address; of the same page with another "#", without loading it again."""
        self.call("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        got = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in got:
            details = got["exceptionDetails"]
            thrown = details.get("exception", {}).get("description", details["text"])
            raise RuntimeError(f"{script[:200]}: {thrown}")
        return got["result"].get("value")

    def wait(self, script: str, seconds: float = PATIENCE) -> Any:
        """Waits until the expression is true, and gives its value; an element is True."""
        wrapped = f"Promise.resolve({script}).then(x => (x instanceof Node ? true : x))"
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(RuntimeError):
                value = self.run(wrapped)
                if value:
                    return value
            if time.monotonic() > end:
                shown = self.run("document.body.innerText")[:1500]
                raise TimeoutError(f"{script}: not true after {seconds} s; the page says:\n{shown}")
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """A click with the mouse at the middle of an element, which is waited for.

        It waits too until the element stays in its place for two frames and nothing covers it: a
        click goes to a place, and another element may be there by the time of the click.
        """
        found = f"document.querySelector({json.dumps(selector)})"
        x, y = self.wait(
            "(async () => {"
            f" const e = {found}; if (!e) return false;"
            " e.scrollIntoView({ block: 'center' });"
            " const place = () => { const b = e.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; };"
            " const before = place();"
            " for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);"
            " const now = place(), top = document.elementFromPoint(...now);"
            " return before.join() === now.join() && e.isConnected && top !== null &&"
            " (e.contains(top) || top.contains(e)) && now; })()"
        )
        self.mouse(x, y)

    def mouse(self, x: float, y: float) -> None:
        """A click at a place of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text: str) -> None:
        """Text into the element that has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        """A key, such as ("Tab", 9)."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **text,
            )

    def picture(self, path: Path) -> None:
        """The window as a PNG file."""
        got = self.call("Page.captureScreenshot", format="png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(got["data"]))
