"""JSON schemas for kubeconform, from the sources that define the kinds.

Kubernetes' own come from its OpenAPI document, others from their CustomResourceDefinitions; both
lie in modules that `go mod download` fetches. Each kind becomes one file `GROUP_VERSION_KIND.json`,
and no object may have fields that its schema does not name.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

#: the module, and the files in it that define kinds
KUBERNETES = "k8s.io/kubernetes@v1.31.4"
OPERATORS = {
    "github.com/prometheus-operator/prometheus-operator@v0.78.2": (
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"
    ),
    "github.com/kedacore/keda/v2@v2.16.1": "config/crd/bases/keda.sh_scaledobjects.yaml",
    "github.com/cert-manager/cert-manager@v1.16.2": "deploy/crds/crd-certificates.yaml",
}
#: for kubeconform's -schema-location
PATTERN = "{{ .Group }}_{{ .ResourceAPIVersion }}_{{ .ResourceKind }}.json"


def module(name: str, folder: Path) -> Path:
    """The folder of a Go module."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text("module schemas\n\ngo 1.19\n")
    done = subprocess.run(
        ["go", "mod", "download", "-json", name],
        cwd=folder,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
    )
    answer = json.loads(done.stdout or "{}")
    if done.returncode != 0 or "Dir" not in answer:
        raise RuntimeError(f"go mod download {name}: {answer.get('Error') or done.stderr}")
    return Path(answer["Dir"])


def closed(schema: Any) -> Any:
    """The schema with every object closed against fields that it does not name."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if isinstance(result.get("properties"), dict) and not schema.get(
        "x-kubernetes-preserve-unknown-fields"
    ):
        result.setdefault("additionalProperties", False)
    return result


def write(folder: Path) -> Path:
    """Writes all schemas into a folder; gives that folder."""
    done = folder / "complete"
    if done.exists():
        return folder
    (folder / "go").mkdir(parents=True, exist_ok=True)
    document = json.loads(
        (module(KUBERNETES, folder / "go") / "api/openapi-spec/swagger.json").read_text()
    )
    definitions = closed(document["definitions"])
    # numbers or text, which the document calls text
    definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = {
        "oneOf": [{"type": "string"}, {"type": "integer"}]
    }
    definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {
        "oneOf": [{"type": "string"}, {"type": "number"}]
    }
    (folder / "definitions.json").write_text(json.dumps({"definitions": definitions}))
    for name, definition in document["definitions"].items():
        for kind in definition.get("x-kubernetes-group-version-kind", []):
            # kubeconform names the group of Kubernetes' first kinds by their version
            group = kind["group"] or kind["version"]
            path = folder / f"{group}_{kind['version']}_{kind['kind'].lower()}.json"
            path.write_text(
                json.dumps({"$ref": f"definitions.json#/definitions/{name}"}).replace(
                    "definitions.json", (folder / "definitions.json").resolve().as_uri()
                )
            )
    for name, file in OPERATORS.items():
        crd = yaml.safe_load((module(name, folder / "go") / file).read_text())["spec"]
        for version in crd["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            schema["properties"]["metadata"] = {"type": "object", "properties": {}}
            schema = closed(schema)
            schema["properties"]["metadata"] = {"type": "object"}
            kind = crd["names"]["kind"].lower()
            path = folder / f"{crd['group']}_{version['name']}_{kind}.json"
            path.write_text(json.dumps(schema))
    done.touch()
    return folder
