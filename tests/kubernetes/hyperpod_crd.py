"""HyperPod's HyperPodPyTorchJob as a CustomResourceDefinition, made of what AWS publishes of it.

The definition itself comes with the operator only. The classes of aws/sagemaker-hyperpod-cli are generated from it, and this script turns them back:
``python -m tests.kubernetes.hyperpod_crd PATH/src/sagemaker/hyperpod/training/config/hyperpod_pytorch_job_unified_config.py`` (recorded from commit 011ca92).
What the classes do not have (enumerations, smallest numbers, subresources) is not in it, and pods' templates are free: their classes are mixed up by fields of the
same name (a pod's anti-affinity has a node's class).
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "crds" / "hyperpodpytorchjobs.json.gz"
_KEPT = frozenset({"type", "properties", "required", "items", "additionalProperties"})
_FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def crd() -> dict[str, Any]:
    """The recorded definition."""
    found: dict[str, Any] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return found


def _structural(schema: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """A schema of pydantic's as Kubernetes wants it: no references, no choices, nothing for people."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return dict(_FREE) if name == "Template" else _structural(parts[name], parts)
    choices = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if {one.get("type") for one in choices} == {"integer", "string"}:
        return {"x-kubernetes-int-or-string": True}
    if choices:
        return _structural(choices[0], parts)
    made = {name: value for name, value in schema.items() if name in _KEPT}
    if made.get("type") == "object" and not {"properties", "additionalProperties"} & made.keys():
        return dict(_FREE)
    if "properties" in made:
        fields = made["properties"].items()
        made["properties"] = {name: _structural(value, parts) for name, value in fields}
        made.pop("additionalProperties", None)
    for name in ("items", "additionalProperties"):
        if isinstance(made.get(name), dict):
            made[name] = _structural(made[name], parts)
    if made.get("additionalProperties") is True:
        return dict(_FREE)
    return made


def _definition(path: Path) -> dict[str, Any]:
    found = importlib.util.spec_from_file_location("published", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["published"] = module
    found.loader.exec_module(module)

    def schema_of(name: str) -> dict[str, Any]:
        whole = getattr(module, name).model_json_schema(by_alias=False)
        return _structural(whole, whole.get("$defs", {}))

    parts = {"spec": schema_of("_HyperPodPytorchJob"), "status": dict(_FREE)}
    names = {"kind": "HyperPodPyTorchJob", "plural": "hyperpodpytorchjobs"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    **parts,
                },
            }
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "hyperpodpytorchjobs.sagemaker.amazonaws.com"},
        "spec": {
            "group": "sagemaker.amazonaws.com",
            "scope": "Namespaced",
            "names": {**names, "listKind": "HyperPodPyTorchJobList", "singular": "hyperpodpytorchjob"},
            "versions": [version],
        },
    }


if __name__ == "__main__":
    _text = json.dumps(_definition(Path(sys.argv[1])), sort_keys=True, separators=(",", ":"))
    RECORDED.write_bytes(gzip.compress(_text.encode(), 9, mtime=0))
