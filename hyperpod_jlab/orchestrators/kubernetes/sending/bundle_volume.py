"""How a run's bundle comes into its pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.model.config import PodStorage

_VOLUME = "partition"


@dataclass(frozen=True)
class BundleVolume:
    """What a pod has to have, so that its launcher finds the bundle.

    Attributes:
        volumes: Of the pod.
        mounts: Of the container.
        env: Of the container.
        shared: Whether the bundle lies there already; else it is unpacked there.
    """

    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()
    env: tuple[dict[str, Any], ...] = ()
    shared: bool = True


def claimed(storage: PodStorage) -> BundleVolume:
    """The partition by its claim, at the path where the cluster's configuration says that pods have it."""
    mount: dict[str, Any] = {"name": _VOLUME, "mountPath": storage.mount}
    if storage.sub_path:
        mount["subPath"] = storage.sub_path
    volume = {"name": _VOLUME, "persistentVolumeClaim": {"claimName": storage.claim}}
    return BundleVolume(volumes=(volume,), mounts=(mount,))
