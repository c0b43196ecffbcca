"""What was sent of a run: its manifest in the bundle, and where its object is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.model.errors import StorageError
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import Kind, jobs_path
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import kind_of
from hyperpod_jlab.orchestrators.kubernetes.sending.render import FILENAME
from hyperpod_jlab.storage.records import BundleReader


@dataclass(frozen=True)
class Sent:
    """A run's object.

    Attributes:
        kind: Its kind.
        namespace: Its namespace.
        name: Its name.
        document: The manifest.
    """

    kind: Kind
    namespace: str
    name: str
    document: Mapping[str, Any]

    @property
    def path(self) -> str:
        """Where objects of its kind and namespace are."""
        return jobs_path(self.kind, self.namespace)

    @property
    def place(self) -> str:
        """Where it is."""
        return f"{self.path}/{self.name}"


def read_sent(bundle: BundleReader) -> Sent:
    """The object of a run with our launcher. Blocking.

    Raises:
        StorageError: There is no manifest in the bundle, or it is damaged.
    """
    import yaml

    try:
        document = yaml.safe_load((bundle.folder / FILENAME).read_text("utf-8"))
        kind = kind_of(document)
        metadata = document["metadata"]
        if kind is not None:
            return Sent(kind, str(metadata["namespace"]), str(metadata["name"]), document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise _damaged(bundle, str(error)) from error
    raise _damaged(bundle, "its kind is unknown")


def _damaged(bundle: BundleReader, why: str) -> StorageError:
    return StorageError(
        f"the run's manifest cannot be read: {why[:200]}",
        code="damaged_manifest",
        detail={"run_id": bundle.run_id},
    )
