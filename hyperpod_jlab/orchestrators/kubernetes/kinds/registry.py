"""All kinds that a run can be, and which one an object is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.orchestrators.kubernetes.kinds.batch_job import BatchJob
from hyperpod_jlab.orchestrators.kubernetes.kinds.hyperpod_job import HyperPodPyTorchJob
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import Kind
from hyperpod_jlab.orchestrators.kubernetes.kinds.pytorch_job import PyTorchJob
from hyperpod_jlab.orchestrators.kubernetes.kinds.train_job import TrainJob

KINDS: tuple[Kind, ...] = (PyTorchJob(), TrainJob(), BatchJob(), HyperPodPyTorchJob())
"""In the order in which they are chosen for a run that names none; the last only by its name, for its images are special."""

BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}


def kind_of(document: Mapping[str, Any]) -> Kind | None:
    """The kind of an object by its ``kind`` and API group; None for one that no run of ours is."""
    found = BY_NAME.get(str(document.get("kind")))
    group = str(document.get("apiVersion", "")).partition("/")[0]
    return found if found is not None and found.group == group else None
