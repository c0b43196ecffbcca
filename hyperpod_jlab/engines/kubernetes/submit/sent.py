"""What was submitted for a run: its manifest in the bundle, and its object's location."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.engines.kubernetes.kinds.choice import find_kind
from hyperpod_jlab.engines.kubernetes.kinds.kind import Kind, jobs_path
from hyperpod_jlab.engines.kubernetes.submit.companions import is_companion
from hyperpod_jlab.engines.kubernetes.submit.render import FILENAME
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

_MAX_BYTES = 16 << 20
_MAX_FOREIGN_BYTES = 128 << 10
"""YAML is slow to parse, so only short manifests of other users are read."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
"""Valid names of namespaces and objects (Kubernetes: DNS subdomain names)."""


@dataclass(frozen=True)
class Sent:
    """A run's object.

    Attributes:
        kind: Its kind.
        namespace: Its namespace.
        name: Its name.
        document: The manifest.
        companions: The companions in a user's own manifest.
    """

    kind: Kind
    namespace: str
    name: str
    document: Mapping[str, Any]
    companions: tuple[Mapping[str, Any], ...] = ()

    @property
    def path(self) -> str:
        """The path of its kind and namespace."""
        return jobs_path(self.kind, self.namespace)

    @property
    def object_path(self) -> str:
        """The object's path."""
        return f"{self.path}/{self.name}"


def read_sent(bundle: BundleReader) -> Sent:
    """The object of a run, and its companions. Blocking.

    Raises:
        StorageError: The bundle's manifest is missing or damaged.
    """
    max_bytes = _MAX_BYTES if bundle.is_own else _MAX_FOREIGN_BYTES
    try:
        return parse_sent(descent.read(bundle.folder / FILENAME, max_bytes).decode())
    except (OSError, ValueError) as error:
        raise StorageError(
            f"the run's manifest cannot be read: {str(error)[:200]}",
            code="damaged_manifest",
            detail={"run_id": bundle.run_id},
        ) from error


def parse_sent(text: str) -> Sent:
    """The objects of a rendered manifest, the job last.

    Raises:
        ValueError: The text is not a rendered manifest.
    """
    import yaml

    try:
        *companions, document = yaml.safe_load_all(text)
        kind = find_kind(document)
        namespace, name = (str(document["metadata"][field]) for field in ("namespace", "name"))
        if not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):  # they become part of a path
            raise ValueError("the name of the job in the manifest is not valid")
        if not all(is_companion(companion, namespace) for companion in companions):
            raise ValueError("a companion object does not belong to its job")
    except (LookupError, TypeError, AttributeError, RecursionError, yaml.YAMLError) as error:
        raise ValueError(str(error)) from error
    if kind is None:
        raise ValueError("its kind is unknown")
    return Sent(kind, namespace, name, document, tuple(companions))
