"""What was sent of a run: its manifest in the bundle, and where its object is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.model.errors import StorageError
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import Kind, jobs_path
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import kind_of
from hyperpod_jlab.orchestrators.kubernetes.sending.render import FILENAME
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

_LARGEST = 16 << 20
_LARGEST_FOREIGN = 128 << 10
"""YAML takes long to read, so that of another user's manifests only short ones are."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
"""What names of namespaces and objects look like (Kubernetes: DNS subdomain names)."""


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
        largest = _LARGEST if bundle.is_own else _LARGEST_FOREIGN
        text = descent.read(bundle.folder / FILENAME, largest).decode()
        document = yaml.safe_load(text)
        kind = kind_of(document)
        namespace, name = (str(document["metadata"][field]) for field in ("namespace", "name"))
        if not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):  # they become a path
            raise _damaged(bundle, "its name is none")
        if kind is not None:
            return Sent(kind, namespace, name, document)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(bundle, str(error)) from error
    except yaml.YAMLError as error:
        raise _damaged(bundle, str(error)) from error
    raise _damaged(bundle, "its kind is unknown")


def _damaged(bundle: BundleReader, why: str) -> StorageError:
    return StorageError(
        f"the run's manifest cannot be read: {why[:200]}",
        code="damaged_manifest",
        detail={"run_id": bundle.run_id},
    )
