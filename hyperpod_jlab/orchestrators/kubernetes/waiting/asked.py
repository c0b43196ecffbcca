"""What a run asks for of queues and nodes, by its spec or by a user's own manifest. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.model.instance_types import InstanceType
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import labels_of
from hyperpod_jlab.orchestrators.kubernetes.kinds.names import PRIORITY_LABEL, QUEUE_LABEL
from hyperpod_jlab.orchestrators.kubernetes.sending.placement import node_selector
from hyperpod_jlab.orchestrators.kubernetes.sending.resources import resources
from hyperpod_jlab.orchestrators.kubernetes.tables.job_shape import parts_of
from hyperpod_jlab.orchestrators.kubernetes.tables.quantity import milli
from hyperpod_jlab.orchestrators.kubernetes.waiting.room import Wanted


@dataclass(frozen=True)
class Asked:
    """What a run asks for.

    Attributes:
        parts: Its pods, those that are alike together.
        queue: The local queue.
        priority: The priority class.
        manifest: Whether a user's own manifest says so, so that it is there that something can be changed.
    """

    parts: tuple[Wanted, ...]
    queue: str | None
    priority: str | None
    manifest: bool = False

    def field(self, name: str | None) -> str | None:
        """The field of the spec that a finding is about, where that of a spec without a manifest is `name`."""
        return "source" if self.manifest else name

    @property
    def without_queue(self) -> str:
        """How to name none."""
        if self.manifest:
            return f"take the label {QUEUE_LABEL} out of the manifest"
        return "leave out --queue"


def asked_by(spec: JobSpec, known: InstanceType | None, *, hyperpod: bool) -> Asked:
    """What a spec asks for, with what is known of its instance type; on HyperPod for healthy nodes."""
    each = {name: milli(text) for name, text in resources(spec, known).items()}
    wanted = Wanted(spec.resources.nodes, each, node_selector(spec, hyperpod=hyperpod))
    return Asked((wanted,), spec.queue, spec.priority)


def asked_in(document: Mapping[str, Any]) -> Asked:
    """What a manifest asks for."""
    parts = parts_of(document.get("spec") or {})
    labels = labels_of(document)
    return Asked(
        tuple(Wanted(one.pods, dict(one.each), dict(one.selector)) for one in parts),
        labels.get(QUEUE_LABEL),
        labels.get(PRIORITY_LABEL),
        manifest=True,
    )
