"""HyperPod's own HyperPodPyTorchJob (sagemaker.amazonaws.com/v1), from its published schema; its operator is closed source.

The operator monitors an agent in each pod (``hyperpodrun``, from the package hyperpod-elastic-agent),
which the image must contain. The agent starts one process per pod, our launcher; the agent's
variables (torchrun's own) contain the pod's rank. They are removed before the ranks start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.kinds import kind as conditions
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    RUN_LABEL,
    Kind,
    KindInput,
    Rendezvous,
    build_head,
    find_labels,
    int_label,
    pod_template,
)

_AGENT_PORT = 8080
"""The port on which the operator contacts a pod's agent (research: aws.md 2.6)."""

_SHELL_COMMAND = (
    "trap '' USR1 USR2; unset TORCHELASTIC_USE_AGENT_STORE; "
    'export HYPERPOD_HEARTBEAT="${TORCHELASTIC_ERROR_FILE:+${TORCHELASTIC_ERROR_FILE%/*}/stdout.log}"; '
    'exec "$@" "--node-rank=$RANK" "--master-addr=$MASTER_ADDR"'
)
"""Signals meant for the ranks must not end the process that starts the launcher.

The agent applies log rules to the file ``stdout.log`` beside the error file of its first process
(its source, version 1.1.3: ``log_agent.py``). It creates this file only with ``--tee`` or
``--redirects``, which would change the pod's log. So the launcher writes it, and only what the rule
below looks for: the agent never sees the ranks' output.
"""

_SILENCE_S = 1200
"""Twice the silence after which the launcher itself ends an attempt that hangs, so that the launcher acts first."""

_HANG_RULE = {"name": "hang", "logPattern": "hyperpod: alive", "expectedRecurringFrequencyInSeconds": _SILENCE_S}
"""The agent has the operator restart the job when the launcher's own signs of life stop.

The other alarms have no rule: the launcher, which sees the ranks' output, ends the attempt on them,
and a second restart by the operator would be for the same cause. Without
``expectedStartCutOffInSeconds``, a launcher that never wrote a line (an older agent) is left alone.
"""


def _anti_affinity(labels: Mapping[str, str]) -> dict[str, Any]:
    """One pod of a run per node, as in AWS's example."""
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {RUN_LABEL: labels[RUN_LABEL]}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }


_END_CONDITIONS = {
    "succeeded": conditions.observe_succeeded,
    "completed": conditions.observe_succeeded,
    "complete": conditions.observe_succeeded,
    "failed": conditions.observe_failed,
}
"""Final conditions by type in lower case; the published schema does not list them."""


class HyperPodPyTorchJob(Kind):
    """One replica spec with all pods."""

    name = "HyperPodPyTorchJob"
    group = "sagemaker.amazonaws.com"
    version = "v1"
    plural = "hyperpodpytorchjobs"
    container = "pytorch-job-container"
    suspend_path = ("spec", "runPolicy")
    replicas_field = "replicaSpecs"
    is_hyperpods = True

    def rendezvous(self, name: str, nodes: int) -> Rendezvous:
        """Rank and master are the agent's variables, which exist only in the process that it starts."""
        del name, nodes
        return Rendezvous("$RANK", "$MASTER_ADDR", starts_late=True)

    def wrap(self, command: Sequence[str], nodes: int) -> list[str]:
        """The agent, which starts the launcher as its only process."""
        return [
            "hyperpodrun",
            f"--nnodes={nodes}",
            "--nproc-per-node=1",
            "--server-host=0.0.0.0",
            f"--server-port={_AGENT_PORT}",
            "--no-python",
            "/bin/sh",
            "-c",
            _SHELL_COMMAND.replace("$", "$$"),
            "sh",
            *command,
        ]

    def manifest(self, kind_input: KindInput) -> dict[str, Any]:
        """The object. It and its pods stay when it ends (``cleanPodPolicy``): -1 means no time to live, while the operator's default may be 0."""
        template = pod_template(kind_input.pod, self.container)
        template["spec"]["containers"][0]["ports"] = [{"containerPort": _AGENT_PORT}]
        template["spec"]["affinity"] = {"podAntiAffinity": _anti_affinity(kind_input.pod.labels)}
        policy: dict[str, Any] = {
            "cleanPodPolicy": "None",
            "jobMaxRetryCount": kind_input.retries or 0,
            "ttlSecondsAfterFinished": -1,
        }
        if kind_input.time_limit is not None:
            policy["activeDeadlineSeconds"] = kind_input.time_limit
        if "hang" in kind_input.stop_on:
            policy["logMonitoringConfiguration"] = [dict(_HANG_RULE)]
        return {
            **build_head(self, kind_input),
            "spec": {
                "nprocPerNode": "1",
                "replicaSpecs": [{"name": "pod", "replicas": kind_input.nodes, "template": template}],
                "runPolicy": policy,
            },
        }

    def resume_findings(self, namespace: str, operator: str | None) -> Iterator[Finding]:
        """None: its own operator resumes it."""
        del namespace, operator
        yield from ()

    def image_findings(self) -> Iterator[Finding]:
        """The agent."""
        yield Finding(
            level="warning",
            code="needs_agent",
            message="the image must have the program hyperpodrun, which is not checked",
            hint="install hyperpod-elastic-agent in it, or choose the kind PyTorchJob",
            field="environment.image",
        )

    def observe(self, job: Mapping[str, Any], now: float) -> Observation:
        """From its conditions, whose types are compared case-insensitively."""
        true_by_type = {name.lower(): condition for name, condition in conditions.active_conditions(job).items()}
        for name, observe_end in _END_CONDITIONS.items():
            if name in true_by_type:
                return observe_end(job, true_by_type[name], now)
        if "suspended" in true_by_type:
            return conditions.observe_suspended(job, now)
        if true_by_type.keys() & {"running", "podsrunning", "restarting"}:
            return conditions.observe_running(job, now)
        return conditions.waiting(job, now)

    def pods_selector(self, name: str) -> str:
        """By the operator's label."""
        return f"HPJob={name}"

    def node_rank(self, pod: Mapping[str, Any]) -> int | None:
        """The number at the end of the pod's name, which is JOB-pod-N (research), or its index label if it has one."""
        index = int_label(pod, "batch.kubernetes.io/job-completion-index")
        if index is not None or "HPJob" not in find_labels(pod):
            return index
        last = str(pod["metadata"].get("name", "")).rpartition("-")[2]
        return int(last) if last.isdecimal() and len(last) < 9 else None
