#!/usr/bin/env python3
"""Metrics, options and alerts that files for operators name exist.

Metrics in alerts, in the dashboard and in the chart are metrics of the daemon; options in images,
in the Compose file and in the chart are options of tribod; every alert has a test; versions agree.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import Report

DEPLOY = Path("deploy")
METRIC = re.compile(r"\b(?:tribod|process)_[a-z0-9_]+\b")


def known_metrics() -> set[str]:
    """Names that a scrape can hold: the table of server/README.md, which a test keeps complete."""
    names: set[str] = set()
    for line in Path("server/README.md").read_text().splitlines():
        row = re.match(r"\| `((?:tribod|process)_\w+)` \| (\w+) \|", line)
        if row and row[2] == "histogram":
            names |= {f"{row[1]}_{part}" for part in ("bucket", "sum", "count")}
        elif row:
            names.add(row[1])
    return names


def known_options() -> set[tuple[str, str]]:
    """Section and name of each option of tribod."""
    text = subprocess.run(
        [os.environ["TRIBOD"], "--print-config"], capture_output=True, text=True, check=True
    ).stdout
    options, section = set(), ""
    for line in text.splitlines():
        if head := re.match(r"\[(\w+)\]", line):
            section = head[1]
        elif option := re.match(r"(\w+) *=", line):
            options.add((section, option[1]))
    return options


def check_metrics(report: Report) -> None:
    """Alerts, dashboard, chart."""
    known = known_metrics()
    report.check(len(known) > 60, f"the table has {len(known)} names")
    alerts = (DEPLOY / "compose/prometheus/alerts.yaml").read_text()
    dashboard = json.loads((DEPLOY / "compose/grafana/dashboards/tribod.json").read_text())
    queries = [t["expr"] for p in dashboard["panels"] for t in p.get("targets", [])]
    report.check(len(queries) > 20, f"the dashboard has {len(queries)} queries")
    chart = (DEPLOY / "helm/tribod/templates/monitoring.yaml").read_text()
    for place, text in (("alerts", alerts), ("dashboard", "\n".join(queries)), ("chart", chart)):
        used = set(METRIC.findall(text))
        report.check(bool(used), f"{place}: there are metrics")
        report.equal(sorted(used - known), [], f"{place}: metrics that do not exist")

    # an alert without a test, or a test of none
    tests = Path("tests/deploy/alerts_test.yaml").read_text()
    named = set(re.findall(r"- alert: (\w+)", alerts))
    report.equal(set(re.findall(r"alertname: (\w+)$", tests, re.M)), named, "alerts that fire")
    report.equal(
        set(re.findall(r"alertname: (\w+), exp_alerts: \[\]", tests)), named, "silent ones"
    )


def check_options(report: Report) -> None:
    """Variables and options of images, Compose file and chart."""
    known = known_options()
    variables = {f"TRIBOD_{s}_{o}".upper() for s, o in known}
    for file in ("image/Containerfile", "compose/compose.yaml", "README.md"):
        used = set(re.findall(r"\bTRIBOD_[A-Z]+_[A-Z_]+\b", (DEPLOY / file).read_text()))
        used.discard("TRIBOD_SECTION_OPTION")
        report.equal(sorted(used - variables), [], f"{file}: variables of no option")
    schema = json.loads((DEPLOY / "helm/tribod/values.schema.json").read_text())
    sections = set(schema["properties"]["config"]["properties"])
    # the chart writes [tls] itself
    report.equal(sections, {s for s, _ in known} - {"tls"}, "sections of the chart")
    values = (DEPLOY / "helm/tribod/values.yaml").read_text()
    values = values.split("\nconfig:\n")[1].split("\n\n")[0]
    for section, line in re.findall(r"^  (\w+): \{(.*)\}$", values, re.M):
        for option in re.findall(r"(\w+):", line):
            report.check(
                (section, option) in known,
                f"values.yaml: [{section}] {option} is no option",
            )


def check_version(report: Report) -> None:
    """One version: that of solver/tribo.h."""
    header = Path("solver/tribo.h").read_text()
    version = re.search(r'#define TB_VERSION "(.*)"', header)
    assert version
    chart = (DEPLOY / "helm/tribod/Chart.yaml").read_text()
    for field in ("version", "appVersion"):
        report.check(f"\n{field}: {version[1]}\n" in chart, f"Chart.yaml: {field} is {version[1]}")


def main() -> None:
    """All checks."""
    report = Report()
    check_metrics(report)
    check_options(report)
    check_version(report)
    report.finish()


if __name__ == "__main__":
    main()
