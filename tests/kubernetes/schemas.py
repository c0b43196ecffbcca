"""The schemas of the kinds that runs become, as a real API server gives them (``python -m tests.kubernetes.schemas`` records them from the cluster of KUBECONFIG)."""

from __future__ import annotations

import gzip
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from tests.kubernetes.hyperpod_crd import crd

CRDS = Path(__file__).parent / "crds"
RECORDED = CRDS / "schemas.json.gz"

_CRDS = {"PyTorchJob": "pytorchjobs.kubeflow.org", "TrainJob": "trainjobs.trainer.kubeflow.org"}


@cache
def schemas() -> dict[str, Any]:
    """By kind: JSON schemas that know no further fields."""
    found: dict[str, Any] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    hyperpod = found["HyperPodPyTorchJob"] = _schema_of(crd())
    worker = found["PyTorchJob"]["properties"]["spec"]["properties"]["pytorchReplicaSpecs"]
    replica = hyperpod["properties"]["spec"]["properties"]["replicaSpecs"]["items"]
    template = worker["additionalProperties"]["properties"]["template"]  # a pod's is a pod's
    replica["properties"]["template"] = template
    return {kind: _strict(schema) for kind, schema in found.items()}


@cache
def _validators() -> dict[str, jsonschema.Draft202012Validator]:
    return {kind: jsonschema.Draft202012Validator(schema) for kind, schema in schemas().items()}


def complaints(document: dict[str, Any]) -> list[str]:
    """What the schema of its kind has against an object."""
    return [error.message for error in _validators()[document["kind"]].iter_errors(document)]


def _schema_of(crd: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _strict(schema: Any) -> Any:
    """The schema as the API server reads it with strict validation: a field without a schema is an error."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _strict(value) for name, value in schema.items()}
    if isinstance(made.get("properties"), dict) and isinstance(made.get("type"), str):
        kept = made.get("x-kubernetes-preserve-unknown-fields")
        made.setdefault("additionalProperties", bool(kept))
    if made.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
    return made


def _plain(schema: Any) -> Any:
    """Without what is only for people."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _plain(value) for name, value in schema.items() if not (name == "description" and isinstance(value, str))
    }


def _resolved(schema: Any, parts: dict[str, Any]) -> Any:
    """With what is referred to in its place."""
    if isinstance(schema, list):
        return [_resolved(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _resolved(parts[schema["$ref"].rsplit("/", 1)[1]], parts)
    if len(schema.get("allOf", ())) == 1:
        return _resolved({**schema["allOf"][0]}, parts)
    return {name: _resolved(value, parts) for name, value in schema.items() if name != "default"}


def _kubectl(*words: str) -> Any:
    done = subprocess.run(["kubectl", *words], capture_output=True, check=True, timeout=60)
    return json.loads(done.stdout)


def _record() -> None:
    found = {kind: _plain(_schema_of(_kubectl("get", "crd", name, "-o", "json"))) for kind, name in _CRDS.items()}
    for kind, path in {"Job": "apis/batch/v1", "Service": "api/v1"}.items():
        parts = _kubectl("get", "--raw", f"/openapi/v3/{path}")["components"]["schemas"]
        name = next(one for one in parts if one in {"io.k8s.api.batch.v1.Job", "io.k8s.api.core.v1.Service"})
        found[kind] = _plain(_resolved(parts[name], parts))
    text = json.dumps(found, sort_keys=True, separators=(",", ":"))
    RECORDED.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    _record()
