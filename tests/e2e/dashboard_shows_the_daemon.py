#!/usr/bin/env python3
"""The dashboard in a real browser, on a real daemon: served files, contents of each page, limits of
a key's scope, marked benchmarks, and a page that outlives its daemon.

Pictures of the pages go to BUILD/screenshots.
"""

from __future__ import annotations

import gzip
import random
import re
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_browser import Browser
from common_daemon import BALL, BUILD, Report, create_key, scratch

import tribo
from tribo.v1 import runs_pb2

PICTURES = BUILD / "screenshots"
AXE = BUILD / "dashboard/node_modules/axe-core/axe.min.js"
#: bytes that the first page loads, packed by gzip
FIRST_LOAD_LIMIT = 250_000
#: s; longer than a stretch of steps that a run sums up
SUMMARY_SECONDS = 1.1
PAGES = ("", "sessions", "grasps", "runs", "benchmarks", "server")
TABLE = "document.querySelector('main table tbody tr')"


def fetch(url: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers (in lower case) of an address."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=named)) as answer:
            return (
                answer.status,
                answer.read(),
                {k.lower(): v for k, v in answer.headers.items()},
            )
    except urllib.error.HTTPError as error:
        return error.code, error.read(), {k.lower(): v for k, v in error.headers.items()}


def check_files(report: Report, at: str) -> None:
    """The page and its files: policy, caching, packing, size."""
    status, page, headers = fetch(at)
    report.equal(status, 200, "the page")
    policy = headers.get("content-security-policy", "")
    report.check("script-src 'self'" in policy and "unsafe" not in policy, f"policy: {policy}")
    report.equal(headers.get("cache-control"), "no-cache", "the page is asked for again")
    report.check(b"<script>" not in page and b"<style" not in page, "nothing stands inline")
    status, body, _ = fetch(at, If_None_Match=headers["etag"])
    report.equal((status, body), (304, b""), "the same page again")
    names = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page.decode())
    report.check(len(names) >= 3, f"files of the page: {names}")
    total = len(gzip.compress(page, 9))
    for name in names:
        _, plain, headers = fetch(at + name[1:])
        _, packed, kept = fetch(at + name[1:], Accept_Encoding="gzip")
        _, small, brotli = fetch(at + name[1:], Accept_Encoding="gzip, br")
        total += len(packed)
        report.check("immutable" in headers["cache-control"], f"{name}: kept for good")
        report.check(bool(re.search(r"-[\w-]{8}\.", name)), f"{name} bears a hash")
        report.equal(kept.get("content-encoding"), "gzip", f"{name} by gzip")
        report.equal(gzip.decompress(packed), plain, f"{name} unpacked")
        report.equal(brotli.get("content-encoding"), "br", f"{name} by brotli")
        report.check(len(small) <= len(packed), f"{name}: brotli is not larger")
    print(f"first load: {total} bytes by gzip", flush=True)
    report.check(total < FIRST_LOAD_LIMIT, f"first load of {total} bytes")
    status, _, _ = fetch(at + "assets/none.js")
    report.equal(status, 404, "a file that is not there")


def check_axe(report: Report, browser: Browser, what: str, rules: str = "") -> None:
    """Nothing serious for a person who listens to the page; `rules`: one rule alone."""
    only = f", runOnly: ['{rules}']" if rules else ""
    if not browser.run("typeof axe === 'object'"):
        browser.run(AXE.read_text() + ";1")
    found = browser.run(
        f"axe.run(document, {{ resultTypes: ['violations']{only} }}).then(r => r.violations"
        ".filter(v => v.impact === 'serious' || v.impact === 'critical')"
        ".map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.target + ' ' +"
        " (n.any[0]?.message ?? '')).join(' | ')))"
    )
    report.equal(found, [], f"axe on {what}")


def take_pictures(browser: Browser, name: str) -> None:
    """The four pictures of a page."""
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        for width, height in ((1400, 900), (390, 844)):
            browser.size(width, height)
            browser.picture(PICTURES / f"{name}-{scheme}-{width}.png")
    browser.scheme("light")
    browser.size(1400, 900)


def check_pages(report: Report, browser: Browser, at: str) -> None:
    """Each page shows its part, and nothing runs out of the window."""
    browser.open(at)
    for name in PAGES:
        browser.open(f"{at}#/{name}")
        browser.wait("document.querySelector('main h1')")
        browser.wait("document.querySelector('main').innerText.length > 60")
        if name in ("sessions", "runs"):
            browser.wait(TABLE)
        check_axe(report, browser, f"#/{name}")
        if name in ("", "grasps"):
            browser.scheme("dark")
            check_axe(report, browser, f"#/{name} in the dark", "color-contrast")
            browser.scheme("light")
        for width in (390, 3840):
            browser.size(width, 900)
            wide = browser.run("document.documentElement.scrollWidth")
            report.check(wide <= width, f"#/{name} is {wide} wide in a window of {width}")
        browser.size(1400, 900)
        if name in ("", "benchmarks"):
            take_pictures(browser, name or "overview")
    browser.open(f"{at}#/")
    browser.wait("document.querySelector('.state.good')?.textContent === 'ready'")
    browser.wait(
        "[...document.querySelectorAll('.tiles li')].some(t => t.textContent"
        ".endsWith('sessions open') && t.querySelector('b').textContent === '1')"
    )


def check_runs(report: Report, browser: Browser, at: str) -> None:
    """Search, one run, two runs side by side; by the keyboard where that is the way."""
    browser.open(f"{at}#/runs")
    browser.wait("document.querySelectorAll('main tbody tr').length === 2")
    browser.run("document.querySelector('input[type=search]').focus()")
    browser.type("second")
    browser.wait("document.querySelectorAll('main tbody tr').length === 1")
    report.check(browser.run("location.hash").endswith("search=second"), "the search has a link")
    browser.open(f"{at}#/runs?")
    browser.wait("document.querySelectorAll('main tbody tr').length === 2")
    for row in (0, 1):
        browser.run(f"document.querySelectorAll('main tbody input')[{row}].focus()")
        browser.press(" ", 32)
        browser.wait(f"document.querySelectorAll('main tbody input')[{row}].checked")
    browser.click(".filters a.button")
    browser.wait("document.querySelector('h1').textContent === 'Two runs'")
    text = browser.wait(f"{TABLE} && document.querySelector('main').innerText")
    report.check("Scene the same" in text, f"two runs of one scene: {text[:200]}")
    browser.wait("document.querySelectorAll('main canvas').length === 5")
    check_axe(report, browser, "two runs")
    browser.open(f"{at}#/runs")
    browser.click("main tbody td.id a")
    browser.wait("document.querySelectorAll('main canvas').length === 5")
    check_axe(report, browser, "a run")


# ---- benchmarks ---------------------------------------------------------------------------------


def record(client: tribo.Client, name: str, medians: list[float]) -> None:
    """One record a median; five samples lie about it."""
    for i, value in enumerate(medians):
        client.record_benchmark(
            runs_pb2.Benchmark(
                name=name,
                metric="seconds",
                unit="s",
                testbed="test",
                build=f"{i:012x} gcc",
                samples=[value * (1 + 0.01 * k) for k in (-2, -1, 0, 1, 2)],
                residual=1e-9,
                penetration=1e-6,
            )
        )


def check_benchmarks(report: Report, browser: Browser, at: str) -> None:
    """A change of 10 % is marked where it is, noise of 3 % is not."""
    browser.open(f"{at}#/benchmarks")
    browser.wait("document.querySelectorAll('[data-benchmark] canvas').length >= 4")
    marks = browser.run(
        "Object.fromEntries([...document.querySelectorAll('[data-benchmark]')].map(s =>"
        " [s.dataset.benchmark.split(' ')[0],"
        " [...s.querySelectorAll('.change')].map(c => c.textContent)]))"
    )
    report.equal(marks["noise"], [], "noise of 3 %")
    report.equal(len(marks["slower"]), 1, f"10 % slower: {marks['slower']}")
    report.equal(len(marks["faster"]), 1, f"10 % faster: {marks['faster']}")
    report.check("worse since 00000000000c" in marks["slower"][0], f"{marks['slower']}")
    report.check("better since 00000000000c" in marks["faster"][0], f"{marks['faster']}")
    # the cursor over a record names its commit
    box = browser.run(
        "(() => { const b = document.querySelector('[data-benchmark] .u-over')"
        ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    legend = "document.querySelector('[data-benchmark] .u-legend').textContent"
    browser.wait(f"/00000000000[0-9a-f] gcc/.test({legend})")


# ---- keys ---------------------------------------------------------------------------------------


def use_key(browser: Browser, key: str) -> None:
    """Types a key into the box, by keyboard."""
    browser.click("header .caller")
    browser.wait("document.querySelector('dialog').open")
    browser.run("document.querySelector('#key').focus()")
    browser.type(key)
    browser.press("Enter", 13)
    browser.wait("!document.querySelector('dialog').open")


def check_keys(report: Report, browser: Browser, folder: Path) -> None:
    """The pages without a key, with a wrong key, with a key that may read, and with an admin's."""
    data = folder / "keys"
    keys = {
        scope: create_key(data, f"a {scope} key", "--scope", scope)
        for scope in ("read", "run", "admin")
    }
    with tribo.Daemon(data=data, environment={"TRIBOD_AUTH_ANONYMOUS": "none"}) as daemon:
        at = f"http://{daemon.http}/"
        with daemon.connect(api_key=keys["admin"], timeout=60) as client:
            client.create_session(client.load(BALL, name="ball.xml"), label="secret")
            browser.open(f"{at}#/sessions")
            browser.wait("document.querySelector('main .failure')")
            text = browser.run("document.body.innerText")
            report.check("secret" not in text, "without a key")
            report.check("no key" in text, f"says so: {text[:300]}")
            use_key(browser, keys["read"][:-4] + "AAAA")
            browser.wait("document.querySelector('.caller').textContent === 'key refused'")
            report.check("secret" not in browser.run("document.body.innerText"), "a wrong key")
            check_axe(report, browser, "a refused key")
            use_key(browser, keys["read"])
            browser.wait(
                "document.querySelector('.caller').textContent === 'a read key \u00b7 read'"
            )
            browser.wait("document.querySelector('main .empty, main tbody tr')")
            report.check("secret" not in browser.run("document.body.innerText"), "of another owner")
            use_key(browser, keys["admin"])
            browser.wait(TABLE)
            report.check("secret" in browser.run("document.body.innerText"), "an admin sees all")
            stored = browser.run("[localStorage.length, sessionStorage.length]")
            report.equal(stored, [0, 1], "the key is in the session's storage alone")
            browser.click("main tbody button")
            browser.wait("document.querySelector('main tbody button').textContent === 'end it?'")
            browser.click("main tbody button")
            browser.wait("document.querySelector('main .empty')")
            report.equal(list(client.sessions()), [], "the admin has ended the session")
            browser.run("sessionStorage.clear()")


# ---- everything ---------------------------------------------------------------------------------


def check_restart(report: Report, browser: Browser, folder: Path) -> None:
    """The daemon is killed under the open page, and the page goes on with the next one."""
    data = folder / "restart"
    daemon = tribo.Daemon(data=data)
    address = daemon.http
    browser.open(f"http://{address}/#/server")
    browser.wait("document.querySelector('.state.good')")
    daemon.kill()
    browser.wait("document.querySelector('.lost')?.innerText.includes('has not answered')", 20)
    report.equal(browser.run("document.querySelector('.state').textContent"), "no answer", "state")
    check_axe(report, browser, "a daemon that is gone")
    with tribo.Daemon(data=data, arguments=("--http", address)):
        began = time.monotonic()
        browser.wait(
            "document.querySelector('.state.good') && !document.querySelector('.lost')", 20
        )
        print(f"back after {time.monotonic() - began:.1f} s", flush=True)


def run(report: Report, folder: Path) -> None:
    """Every part."""
    noise = random.Random(5)
    with (
        tribo.Daemon(data=folder / "data") as daemon,
        daemon.connect(timeout=60) as client,
        Browser(folder) as browser,
    ):
        at = f"http://{daemon.http}/"
        with report.case("files"):
            check_files(report, at)
        ball = client.load(BALL, name="ball.xml")
        client.create_session(ball, label="first").delete()
        session = client.create_session(ball, label="second")
        session.step(100)
        record(client, "noise", [1 + noise.uniform(-0.03, 0.03) for _ in range(24)])
        record(
            client,
            "slower",
            [(1 + 0.1 * (i >= 12)) * (1 + noise.uniform(-0.01, 0.01)) for i in range(24)],
        )
        record(
            client,
            "faster",
            [(1 - 0.1 * (i >= 12)) * (1 + noise.uniform(-0.01, 0.01)) for i in range(24)],
        )
        with report.case("pages"):
            check_pages(report, browser, at)
        for _ in range(2):
            session.step(100)
            time.sleep(SUMMARY_SECONDS)
        with report.case("runs"):
            check_runs(report, browser, at)
        with report.case("benchmarks"):
            check_benchmarks(report, browser, at)
        report.equal(browser.problems, [], "what the console says")
        with report.case("keys"):
            check_keys(report, browser, folder)
        with report.case("restart"):
            check_restart(report, browser, folder)


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
