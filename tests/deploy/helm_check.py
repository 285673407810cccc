"""The Helm chart as a cluster would take it: linted, held against the schemas of every kind, played
by podman with the image of `make image`, and restarted pod by pod under load.

    make helm-check

The part of Kubernetes' controllers is this script's: a pod and a claim for each replica of the
StatefulSet, probes by HTTP, and the rolling update from the last replica to the first. All pods
share this machine's network, so each gets ports of its own by the environment.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

import kubernetes_schemas
import yaml
from common_daemon import BALL, BUILD, Report
from common_process import free_port

CHART = Path(__file__).resolve().parents[2] / "deploy/helm/tribod"
TOOLS = BUILD / "helm"
IMAGE = os.environ.get("IMAGE", "localhost/tribod:cpu")
RELEASE = f"check{os.getpid()}"
REPLICAS = 2
SESSIONS = 3
#: values that together render every part of the chart
VALUES: dict[str, dict[str, str]] = {
    "defaults": {},
    "monitored": {"serviceMonitor.enabled": "true", "autoscaling.enabled": "true"},
    "cards": {"gpu.count": "2", "gpu.runtimeClassName": "nvidia", "replicas": "3"},
    "keys": {"keys.secretName": "tribod-keys", "keys.entries[0]": "run.planner"},
    "secured": {"tls.secretName": "tribod-tls", "persistence.enabled": "false"},
    "in a fleet": {
        "outbox.url": "postgresql://tribod@postgres:6432/fleet",
        "outbox.passwordSecret.name": "postgres-password",
    },
    "traced": {
        "otlp.endpoint": "https://collector/otlp",
        "otlp.headersSecret.name": "collector-headers",
    },
    "certified": {"tls.certManager.enabled": "true", "tls.certManager.issuerRef.name": "ca"},
}
#: wrong values, and a word of the message that names them
WRONG: dict[str, tuple[dict[str, str], str]] = {
    "replicas": ({"replicas": "-1"}, "replicas"),
    "an unknown value": ({"replicsa": "2"}, "replicsa"),
    "a key without entries": ({"keys.secretName": "k"}, "keys.entries"),
    "another protocol": ({"otlp.endpoint": "collector:4317"}, "otlp"),
    "another database": ({"outbox.url": "mysql://there"}, "outbox"),
    "a misspelt option of a section": ({"config.limit.sessions": "5"}, "limit"),
    "a size without a unit that exists": ({"persistence.size": "20GB"}, "size"),
    "a certificate without an issuer": ({"tls.certManager.enabled": "true"}, "issuerRef"),
}


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One helm command."""
    return subprocess.run([TOOLS / "bin/helm", *arguments], capture_output=True, text=True)


def template(values: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The chart rendered with some values."""
    options = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    return helm("template", RELEASE, str(CHART), *options)


def check_schemas(report: Report) -> None:
    """Lint, every kind against its schema, and messages for wrong values."""
    report.equal(helm("lint", "--strict", str(CHART)).returncode, 0, "helm lint")
    schemas = kubernetes_schemas.write((TOOLS / "schemas").resolve())
    where = f"{schemas}/{kubernetes_schemas.PATTERN}"

    def conform(text: str) -> subprocess.CompletedProcess[str]:
        command = [TOOLS / "bin/kubeconform", "-strict", "-schema-location", where]
        return subprocess.run(command, input=text, capture_output=True, text=True)

    for name, values in VALUES.items():
        rendered = template(values)
        report.equal(rendered.returncode, 0, f"{name}: {rendered.stderr}")
        found = conform(rendered.stdout)
        report.equal(found.returncode, 0, f"{name}: {found.stdout}")
    broken = template({}).stdout.replace("serviceName:", "servicename:")
    report.check(conform(broken).returncode != 0, "a field without a schema is found")
    for name, (values, word) in WRONG.items():
        answer = template(values)
        report.check(answer.returncode != 0 and word in answer.stderr, f"{name}: {answer.stderr}")


class Podman:
    """`podman kube play` on this machine, without privileges of containers of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        settings = folder / "containers.conf"
        settings.write_text(
            "[containers]\n"
            'default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n'
            "[engine]\n"
            'cgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        )
        self.environment = {**os.environ, "CONTAINERS_CONF": str(settings)}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One podman command."""
        return subprocess.run(
            ["podman", "--runtime", "runc", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=180,
        )


class Replica:
    """One pod of the StatefulSet with its claim."""

    def __init__(self, podman: Podman, parts: dict[str, Any], ordinal: int) -> None:
        self.podman = podman
        self.ports = {"grpc": free_port(), "http": free_port()}
        self.base = f"http://127.0.0.1:{self.ports['http']}"
        template = copy.deepcopy(parts["StatefulSet"]["spec"]["template"])
        self.name = f"{parts['StatefulSet']['metadata']['name']}-{ordinal}"
        spec = template["spec"]
        self.grace = spec["terminationGracePeriodSeconds"]
        container = spec["containers"][0]
        self.probes = {
            name: container.pop(name)
            for name in ("startupProbe", "readinessProbe", "livenessProbe")
        }
        container["image"] = IMAGE
        container["resources"] = {}
        container["env"] += [
            {"name": f"TRIBOD_SERVER_{port.upper()}_ADDRESS", "value": f"127.0.0.1:{number}"}
            for port, number in self.ports.items()
        ]
        container.pop("ports")
        spec["hostNetwork"] = True
        claims = []
        for claim in parts["StatefulSet"]["spec"]["volumeClaimTemplates"]:
            name = claim["metadata"]["name"]
            self.volume = f"{name}-{self.name}"
            spec["volumes"].append(
                {"name": name, "persistentVolumeClaim": {"claimName": self.volume}}
            )
            claims.append(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {"name": self.volume},
                    "spec": claim["spec"],
                }
            )
        metadata = {**template["metadata"], "name": self.name}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.file = podman.folder / f"{self.name}.yaml"
        self.claims, self.pod = claims, [parts["ConfigMap"], pod]

    def play(self) -> None:
        """Starts the pod; its claim is made once and stays."""
        self.file.write_text(yaml.safe_dump_all([*self.claims, *self.pod]))
        self.claims = []
        answer = self.podman.run("kube", "play", "--network", "host", str(self.file))
        if answer.returncode != 0:
            raise RuntimeError(f"podman kube play {self.name}: {answer.stderr}")

    def probe(self, name: str) -> bool:
        """Whether a probe of the chart passes now."""
        path = self.probes[name]["httpGet"]["path"]
        try:
            with urllib.request.urlopen(f"{self.base}{path}", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def started(self) -> bool:
        """Whether the startup probe passes before it gives up."""
        probe = self.probes["startupProbe"]
        for _ in range(probe["failureThreshold"]):
            if self.probe("startupProbe"):
                return True
            time.sleep(probe["periodSeconds"])
        return False

    def stop(self) -> int:
        """SIGTERM and the chart's grace period; the daemon's exit code."""
        self.podman.run("pod", "stop", "--time", str(self.grace), self.name)
        container = f"{self.name}-tribod"
        code = self.podman.run("inspect", container, "--format", "{{.State.ExitCode}}").stdout
        self.podman.run("pod", "rm", "--force", self.name)
        return int(code)

    def logs(self) -> str:
        """The daemon's log."""
        answer = self.podman.run("logs", f"{self.name}-tribod")
        return answer.stdout + answer.stderr

    def remove(self) -> None:
        """Removes the pod and its volume."""
        self.podman.run("pod", "rm", "--force", self.name)
        self.podman.run("volume", "rm", "--force", self.volume)


class Load(threading.Thread):
    """Steps one session of a replica, again and again; a refused or lost call is tried again."""

    def __init__(self, replica: Replica) -> None:
        super().__init__()
        self.replica = replica
        scene = self.post("CreateScene", text=BALL.decode())["sceneId"]
        self.session = self.post("CreateSession", sceneId=scene)["sessionId"]
        self.acknowledged = 0
        self.tried = 0
        self.refused = 0
        self.wrong: list[str] = []
        self.ends = threading.Event()

    def post(self, method: str, **body: object) -> dict[str, Any]:
        """The answer of a method."""
        request = urllib.request.Request(
            f"{self.replica.base}/tribo.v1.Simulation/{method}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return dict(json.load(answer))

    def run(self) -> None:
        while not self.ends.is_set():
            self.tried += 1
            try:
                steps = int(self.post("Step", sessionId=self.session)["state"]["steps"])
            except (OSError, ValueError):
                self.refused += 1
                time.sleep(0.05)
                continue
            # a step that was computed, but whose answer was lost, counts in the state alone
            if not self.acknowledged < steps <= self.tried:
                self.wrong.append(f"{steps} steps after {self.acknowledged} of {self.tried}")
            self.acknowledged = steps


def check_missing_secret(report: Report, folder: Path) -> None:
    """A secret that is not there is named, and the pod's volume stays empty."""
    podman = Podman(folder)
    for name, values in (
        ("absent-keys", {"keys.secretName": "absent-keys", "keys.entries[0]": "run.planner"}),
        ("absent-tls", {"tls.secretName": "absent-tls"}),
        (
            "absent-password",
            {**VALUES["in a fleet"], "outbox.passwordSecret.name": "absent-password"},
        ),
    ):
        rendered = template({**values, "networkPolicy.enabled": "false"})
        parts = {part["kind"]: part for part in yaml.safe_load_all(rendered.stdout) if part}
        replica = Replica(podman, parts, 0)
        message = ""
        try:
            replica.play()
        except RuntimeError as error:
            message = str(error)
        try:
            report.check(name in message and "secret" in message, f"it names {name}: {message}")
            where = podman.run("volume", "inspect", replica.volume, "--format", "{{.Mountpoint}}")
            volume = Path(where.stdout.strip() or folder / "none")
            files = [p.name for p in volume.iterdir()] if volume.is_dir() else []
            report.equal(files, [], f"files on the volume without {name}")
        finally:
            replica.remove()


def check_rolling_restart(report: Report, folder: Path) -> None:
    """All replicas come up, and go one after the other under load without losing a step."""
    rendered = template({"replicas": str(REPLICAS), "networkPolicy.enabled": "false"})
    documents = [part for part in yaml.safe_load_all(rendered.stdout) if part]
    parts = {part["kind"]: part for part in documents}
    podman = Podman(folder)
    replicas = [Replica(podman, parts, i) for i in range(REPLICAS)]
    loads: list[Load] = []
    try:
        for replica in replicas:
            replica.play()
        for replica in replicas:
            report.check(replica.started(), f"{replica.name} starts: {replica.logs()[-500:]}")
            report.check(replica.probe("readinessProbe"), f"{replica.name} is ready")
            report.check(replica.probe("livenessProbe"), f"{replica.name} is alive")
        loads = [Load(replica) for replica in replicas for _ in range(SESSIONS)]
        for load in loads:
            load.start()
        time.sleep(2)
        away = []
        for replica in reversed(replicas):
            began = time.monotonic()
            report.equal(replica.stop(), 0, f"{replica.name}: exit code of the drain")
            replica.play()
            report.check(replica.started(), f"{replica.name} comes back")
            away.append(time.monotonic() - began)
            time.sleep(1)
        time.sleep(2)
        for load in loads:
            load.ends.set()
            load.join()
            report.equal(load.wrong, [], f"{load.replica.name}: acknowledged steps")
            state = load.post("GetState", sessionId=load.session)["state"]
            steps = int(state["steps"])
            report.check(
                load.acknowledged <= steps <= load.tried,
                f"{steps} steps, {load.acknowledged} acknowledged",
            )
            report.check(load.acknowledged > 10, f"{load.acknowledged} steps under load")
        total = sum(load.acknowledged for load in loads)
        again = sum(load.refused for load in loads)
        print(
            f"rolling restart of {REPLICAS} pods: {total} acknowledged steps, none lost, "
            f"{again} calls tried again, away {', '.join(f'{s:.1f} s' for s in away)}"
        )
    finally:
        for load in loads:
            load.ends.set()
        for replica in replicas:
            replica.remove()


def main() -> None:
    """All checks."""
    report = Report()
    with report.case("check_schemas"):
        check_schemas(report)
    if shutil.which("podman") is None:
        report.skip("no podman on this machine")
    else:
        for check in (check_missing_secret, check_rolling_restart):
            with tempfile.TemporaryDirectory() as folder, report.case(check.__name__):
                check(report, Path(folder))
    report.finish()


if __name__ == "__main__":
    main()
