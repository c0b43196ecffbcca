"""Specs whose manifests are kept in golden files (``python -m tests.kubernetes.manifest_cases`` writes them anew)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

from hyperpod_jlab.core.config import PodStorage
from hyperpod_jlab.core.instance_types import instance_type
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.kubernetes.kinds.choice import KIND_BY_NAME
from hyperpod_jlab.engines.kubernetes.kinds.kind import Kind
from hyperpod_jlab.engines.kubernetes.kinds.train_job import Runtime, TrainJob
from hyperpod_jlab.engines.kubernetes.submit.render import RenderContext, render
from hyperpod_jlab.engines.launch import GuardPolicy
from hyperpod_jlab.engines.protocol import RenderInput
from hyperpod_jlab.storage.partition import PathMap

GOLDEN = Path(__file__).parent / "golden"
RUN_ID = "20261121-120455-k3x9qd"
BUNDLE = f".hyperpod/runs/07/{RUN_ID}"

_GPUS = {"resources": {"nodes": 4, "gpus_per_node": 8, "cpus": 96, "memory": "1T"}}


def _whole_nodes(name: str, gpus: int) -> dict[str, Any]:
    return {"resources": {"nodes": 2, "gpus_per_node": gpus, "memory": "64G", "instance_type": name}}


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "two_nodes": {"spec": {"resources": {"nodes": 2}}},
    "gpus": {"spec": _GPUS},
    "mig": {"spec": {"resources": {"accelerators": {"type": "mig-1g.10gb", "count": 2}}}},
    "efa": {
        "spec": {
            "resources": {
                "nodes": 2,
                "gpus_per_node": 8,
                "memory": "1T",
                "instance_type": "ml.p5.48xlarge",
                "instance_group": "workers",
            }
        },
        "hyperpod": True,
    },
    "efa_b300": {"spec": _whole_nodes("ml.p6-b300.48xlarge", 8)},
    "efa_g7e": {"spec": _whole_nodes("ml.g7e.24xlarge", 4)},
    "efa_asked_for": {"spec": {"resources": {"nodes": 2, "gpus_per_node": 1, "efa": 1}}},
    "neuron": {
        "spec": {
            "resources": {
                "nodes": 2,
                "accelerators": {"kind": "neuron", "count": 32},
                "instance_type": "ml.trn1.32xlarge",
            }
        }
    },
    "neuron_logical_cores": {
        "spec": {
            "resources": {
                "nodes": 2,
                "accelerators": {"kind": "neuron", "count": 64},
                "instance_type": "ml.trn2.48xlarge",
            }
        }
    },
    "neuron_cores": {"spec": {"resources": {"accelerators": {"kind": "neuron", "count": 3}}}},
    "queue": {
        "spec": {
            "queue": "team-a",
            "priority": "training-priority",
            "time_limit": "2h",
            "kubernetes": {"topology": {"level": "topology.k8s.aws/network-node-layer-3"}},
        }
    },
    "priority_class": {"spec": {"priority": "high"}},
    "auto_resume": {
        "spec": {"max_restarts": 5, "resources": {"nodes": 2}, "kubernetes": {"namespace": "hyperpod-ns-team-a"}},
        "hyperpod": True,
        "operator": "1.8.1",
    },
    "secrets": {"spec": {"environment": {"secrets": {"TOKEN": "hub/token", "BY_FILE": ""}}}},
    "image": {"spec": {"environment": {"image": "registry/other:2", "python": "/opt/py/bin/python"}}},
    "service_account": {"spec": {"kubernetes": {"service_account": "trainer"}}},
    "namespace": {"spec": {"kubernetes": {"namespace": "team-b"}}},
    "sub_path": {"storage": {"claim": "fsx", "mount": "/fsx", "sub_path": "alice"}},
    "patch": {
        "patches": [
            {
                "metadata": {"annotations": {"team": "vision"}},
                "template": {
                    "spec": {
                        "volumes": [{"name": "torch", "hostPath": {"path": "/opt/torch"}}],
                        "containers": [
                            {"volumeMounts": [{"name": "torch", "mountPath": "/opt/torch"}]},
                            {"name": "metrics", "image": "registry/metrics:1"},
                        ],
                    }
                },
            }
        ]
    },
    "train_job": {"kind": "TrainJob", "spec": _GPUS},
    "train_job_own_runtime": {
        "kind": TrainJob(Runtime("mine", "TrainingRuntime")),
        "spec": {"resources": {"instance_type": "ml.g5.xlarge"}},
    },
    "job": {"kind": "Job", "spec": {"time_limit": "2h"}},
    "array": {"spec": {"array": "1-7,9%2", "time_limit": "2h", "queue": "team-a"}, "kind": "Job"},
    "array_from_0": {"spec": {"array": "0-3"}, "kind": "Job"},
    "job_two_nodes": {"kind": "Job", "spec": {"resources": {"nodes": 2, "gpus_per_node": 8}}},
    "hyperpod_job": {"kind": "HyperPodPyTorchJob", "spec": {**_GPUS, "time_limit": "2h"}, "hyperpod": True},
    "hyperpod_job_stop_on": {
        "kind": "HyperPodPyTorchJob",
        "spec": {"max_restarts": 2, "alarms": {"stop_on": ["nan", "hang"]}},
        "hyperpod": True,
    },
    "odd_text": {
        "name": 'it\'s "a": [name] # $(id) `id` é \U0001f600',
        "python": "/opt/it's $(HOME) ${HOME}/python",
        "storage": {"claim": "fsx", "mount": "/data/$(HOSTNAME)"},
    },
}


def place(case: dict[str, Any]) -> RenderContext:
    """What a case's manifest depends on besides its run."""
    spec = _spec(case)
    kind = case.get("kind", "PyTorchJob")
    storage = case.get("storage", {"claim": "fsx-claim", "mount": "/data"})
    found: Kind = KIND_BY_NAME[kind] if isinstance(kind, str) else kind
    return RenderContext(
        namespace=spec.kubernetes.namespace or "team-a",
        kind=found,
        image="registry/train:1",
        storage=PodStorage(**storage),
        hyperpod=case.get("hyperpod", False),
        instance=instance_type(spec.resources.instance_type),
        patches=tuple(case.get("patches", ())),
        operator=case.get("operator"),
    )


def given(case: dict[str, Any]) -> RenderInput:
    """A case's run."""
    spec = _spec(case)
    storage = place(case).storage
    return RenderInput(
        run_id=RUN_ID,
        name=case.get("name", "train 1"),
        spec=spec,
        bundle=BUNDLE,
        paths=PathMap.create_map("/home/alice/fsx", storage.mount),
        python=case.get("python", spec.environment.python),
        guard_policy=GuardPolicy(200001, "5ea1" * 16),
        user=case.get("user", "alice@example.org"),
    )


def text(case: dict[str, Any]) -> str:
    """A case's manifest."""
    with patch(f"{GuardPolicy.__module__}.guard_source", lambda: "(the guard)\n"):
        return render(given(case), place(case)).text


def _spec(case: dict[str, Any]) -> JobSpec:
    return parse(JobSpec, {"source": {"kind": "command", "command": "true"}, **case.get("spec", {})})


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for _name, _case in CASES.items():
        (GOLDEN / f"{_name}.yaml").write_text(text(_case))
