"""Transfers the run's code to pods that mount no shared storage.

The launcher's input is packed into an archive (pure: the same bundle gives the same bytes). A small
archive is part of the job's own object, as variables of its pods, so that one request submits
everything. A larger one is in ConfigMaps that the job owns. The job is created first (its pods wait
for them), so that they are deleted with it, and a repeated submit creates the missing ones. In the
pod a few lines of Python unpack either one into a folder of the pod and become the launcher.

The rendered manifest has a placeholder for both; `filled` inserts the archive on submit. Measured
on Kubernetes 1.34: a variable of more than 128 KiB (Linux's limit for one string) keeps a container
from starting, 8 variables of 94 KiB do not; and Trainer turns a projected volume without sources
into an invalid one.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import io
import json
import os
import stat
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.config import PodStorage
from hyperpod_jlab.core.errors import RefusedError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.storage import descent

# --------------------------------------------------------------------------------------------------
# Object size limits. The dry run does not check them: only the store behind the API server does.

MAX_MANIFEST_BYTES = 1_500_000
"""Maximum size of an object as JSON, in bytes. etcd accepts requests of 1.5 MiB (its
--max-request-bytes; observed on Kubernetes 1.34: 1,572,362 bytes succeeded, 1,573,400 failed), and
the job's later status must fit too.
"""


def object_bytes(document: Mapping[str, Any]) -> int:
    """The stored size of an object in bytes."""
    return len(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())


def size_findings(document: Mapping[str, Any], field: str | None = None) -> Iterator[Finding]:
    """Findings about an object's size.

    Args:
        document: The object.
        field: The spec field that it comes from, if any.
    """
    size = object_bytes(document)
    if size > MAX_MANIFEST_BYTES:
        yield Finding(
            level="error",
            code="object_too_large",
            message=f"the {document['kind']} has {size:,} bytes, but the limit of the cluster is {MAX_MANIFEST_BYTES:,}",
            hint="put large values into files or a separate ConfigMap, and refer to them",
            field=field,
        )


# --------------------------------------------------------------------------------------------------
# How a run's bundle gets into its pods.

_VOLUME = "partition"


@dataclass(frozen=True)
class BundleVolume:
    """The parts of a pod that give its launcher the bundle.

    Attributes:
        volumes: The pod's volumes.
        mounts: The container's volume mounts.
        env: The container's environment.
        is_shared: Whether the bundle already exists there; otherwise it is unpacked there.
    """

    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()
    env: tuple[dict[str, Any], ...] = ()
    is_shared: bool = True


def claimed(storage: PodStorage) -> BundleVolume:
    """The partition through its claim, at the pods' path in the cluster's configuration."""
    mount: dict[str, Any] = {"name": _VOLUME, "mountPath": storage.mount}
    if storage.sub_path:
        mount["subPath"] = storage.sub_path
    volume = {"name": _VOLUME, "persistentVolumeClaim": {"claimName": storage.claim}}
    return BundleVolume(volumes=(volume,), mounts=(mount,))


FOLDER = "/hyperpod"
"""The path that replaces the partition in a pod without shared storage: a folder of its own."""

DIGEST_ANNOTATION = "hyperpod-jlab/code"
"""On the job: the SHA-256 of its archive."""
PARTS_ANNOTATION = "hyperpod-jlab/code-parts"
"""On the job: the number of ConfigMaps with the archive; missing when the archive is in the job itself."""

INLINE_LIMIT = 96 << 10
"""Maximum bytes of an archive inside the job's object: base64 adds a third, and a PyTorchJob contains its template twice."""
PART_SIZE = 960 << 10
"""Archive bytes per ConfigMap, whose limit is 1 MiB."""
MAX_ARCHIVE_BYTES = 8 * PART_SIZE

_VARIABLE = "HYPERPOD_CODE"
_CHUNK = 96_000
_PARTS = "/hyperpod-code"
_ARCHIVE_NAME = "hyperpod-bundle"
_CODE_VOLUME = "hyperpod-code"
_PLACEHOLDER = "(packed and inserted at submit)"
_ARCHIVED_NAMES = ("launch.json", "launcher.py", "code", "work")

CODE_NOTE = f"""\
# This run has no shared storage: its code and files are packed at submit and unpacked in each pod.
# Up to {INLINE_LIMIT >> 10} KiB travel in the variable {_VARIABLE}, up to {MAX_ARCHIVE_BYTES / (1 << 20):g} MiB in the ConfigMaps of the volume {_CODE_VOLUME}.
"""
"""The comment above the manifest."""

UNPACK = f"""\
import base64, glob, io, os, signal, sys, tarfile, zlib
held = signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2
signal.pthread_sigmask(signal.SIG_BLOCK, held)
names = sorted((n for n in os.environ if n.startswith("{_VARIABLE}_")), key=lambda n: int(n[{len(_VARIABLE) + 1}:]))
data = base64.b64decode("".join([os.environ.pop(n) for n in names]))
for path in sorted(glob.glob("{_PARTS}/part-*")):
    data += open(path, "rb").read()
root = sys.argv[1]
try:
    tar = tarfile.open(fileobj=io.BytesIO(zlib.decompress(data)))
    for item in tar:
        path = os.path.join(root, item.name)
        os.makedirs(os.path.dirname(path) if item.isfile() else path, exist_ok=True)
        if item.isfile():
            open(path, "wb").write(tar.extractfile(item).read())
            os.chmod(path, item.mode)
except (OSError, zlib.error, tarfile.TarError) as error:
    sys.exit("hyperpod: the run's code cannot be unpacked: %s" % error)
os.execv(sys.executable, [sys.executable] + sys.argv[2:])
"""
"""Executed by the pod's Python (``-I -c``): unpacks the archive into the folder in its first argument,
then executes the other arguments; signals are held until the launcher can handle them.
"""


def carried() -> BundleVolume:
    """What a pod has instead of a claim: a folder of its own, and a placeholder for the archive."""
    return BundleVolume(
        volumes=(
            {"name": _ARCHIVE_NAME, "emptyDir": {}},
            {"name": _CODE_VOLUME, "emptyDir": {}},
        ),
        mounts=(
            {"name": _ARCHIVE_NAME, "mountPath": FOLDER},
            {"name": _CODE_VOLUME, "mountPath": _PARTS, "readOnly": True},
        ),
        env=({"name": _VARIABLE, "value": _PLACEHOLDER},),
        is_shared=False,
    )


def check_code(spec: JobSpec) -> list[Finding]:
    """What is impossible without shared storage."""
    return [
        Finding(
            level="error",
            code="secret_without_storage",
            message=f"the secret {name} cannot be passed as a file: the pods of this cluster mount no shared storage",
            hint=f"use a Secret of the cluster and its key: --secret {name}=SECRET/KEY",
            field="environment.secrets",
        )
        for name, reference in spec.environment.secrets.items()
        if not reference
    ]


@dataclass(frozen=True)
class Archive:
    """A run's code, packed.

    Attributes:
        data: Its bytes.
        digest: Their SHA-256.
    """

    data: bytes
    digest: str

    @property
    def parts(self) -> list[bytes]:
        """The content of each ConfigMap; empty when the archive fits into the job's object."""
        if len(self.data) <= INLINE_LIMIT:
            return []
        return [
            self.data[offset : offset + PART_SIZE] for offset in range(0, len(self.data), PART_SIZE)
        ]

    @property
    def text(self) -> list[str]:
        """The content of each variable; empty when the archive is too large."""
        if self.parts:
            return []
        text = base64.b64encode(self.data).decode()
        return [text[offset : offset + _CHUNK] for offset in range(0, len(text), _CHUNK)]


def build_archive(bundle: Path) -> Archive:
    """Pack the parts of a bundle that the pods need. Blocking.

    Raises:
        RefusedError: The archive is too large.
    """
    buffer = io.BytesIO()
    sizes: dict[str, int] = {}
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, file_status in _archived_files(bundle):
            name = path.relative_to(bundle).as_posix()
            item = tarfile.TarInfo(name)
            if stat.S_ISDIR(file_status.st_mode):
                item.type, item.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(item)
                continue
            data = descent.read(path, file_status.st_size)
            item.size = sizes[name] = len(data)
            item.mode = 0o755 if file_status.st_mode & 0o100 else 0o644
            tar.addfile(item, io.BytesIO(data))
    packed = zlib.compress(buffer.getvalue(), 9)
    if len(packed) > MAX_ARCHIVE_BYTES:
        raise _too_large_error(len(packed), sizes)
    return Archive(packed, hashlib.sha256(packed).hexdigest())


def _archived_files(bundle: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Files and folders, in an order independent of the bundle's location; files of other kinds are skipped."""
    for name in _ARCHIVED_NAMES:
        yield from sorted(_files_below(bundle / name), key=lambda entry: entry[0])


def _files_below(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """A file, or a folder with everything in it."""
    try:
        file_status = descent.state(path)
    except FileNotFoundError:
        return
    folder = stat.S_ISDIR(file_status.st_mode)
    if folder or stat.S_ISREG(file_status.st_mode):
        yield path, file_status
    for name in descent.list_names(path) if folder else ():
        yield from _files_below(path / name)


def _too_large_error(size: int, sizes: Mapping[str, int]) -> RefusedError:
    largest_names = sorted(sizes, key=lambda name: -sizes[name])[:3]
    sizes_text = ", ".join(
        f"{name.partition('/')[2] or name} ({sizes[name] / 1e6:.1f} MB)" for name in largest_names
    )
    return RefusedError(
        f"the code and files of the run are {size / 1e6:.1f} MB when packed, but pods without shared storage get at most "
        f"{MAX_ARCHIVE_BYTES / 1e6:.1f} MB",
        code="code_too_large",
        hint=f"exclude files with .hyperpodignore, or set a claim as storage of the cluster; the largest: {sizes_text}",
        detail={
            "bytes": size,
            "limit": MAX_ARCHIVE_BYTES,
            "largest": largest_names,
            "field": "files",
        },
    )


def has_placeholder(document: Any) -> bool:
    """Whether a manifest has a placeholder for an archive."""
    return any(
        entry.get("value") == _PLACEHOLDER for entry in _containers_named(document, _VARIABLE)
    )


def filled(document: Mapping[str, Any], archive: Archive) -> dict[str, Any]:
    """The object to submit: the manifest with the archive, or with the names of the ConfigMaps that contain it."""
    filled = copy.deepcopy(dict(document))
    metadata = filled["metadata"]
    annotations = metadata.setdefault("annotations", {})
    annotations[DIGEST_ANNOTATION] = archive.digest
    names = [part_name(metadata["name"], number) for number in range(len(archive.parts))]
    if names:
        annotations[PARTS_ANNOTATION] = str(len(names))
    variables = [
        {"name": f"{_VARIABLE}_{number}", "value": text} for number, text in enumerate(archive.text)
    ]
    _insert(filled, variables, [{"configMap": {"name": name}} for name in names])
    return filled


def part_name(job: str, number: int) -> str:
    """The name of one of a job's ConfigMaps."""
    return f"{job}-code-{number}"


def config_maps(archive: Archive, job: Mapping[str, Any], label: str) -> list[dict[str, Any]]:
    """The ConfigMaps of an existing job, which owns them.

    Args:
        archive: Their content.
        job: The object from the API server.
        label: The name of the label with the run's id, which is copied to them.
    """
    metadata = job["metadata"]
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": part_name(metadata["name"], number),
                "labels": {label: metadata["labels"][label]},
                "annotations": {DIGEST_ANNOTATION: archive.digest},
                "ownerReferences": [owner],
            },
            "immutable": True,
            "binaryData": {f"part-{number:03d}": base64.b64encode(part).decode()},
        }
        for number, part in enumerate(archive.parts)
    ]


def _containers_named(content: Any, name: str) -> Iterator[dict[str, Any]]:
    """All list items with this name, at any depth."""
    if isinstance(content, Mapping):
        for value in content.values():
            yield from _containers_named(value, name)
    elif isinstance(content, list):
        for value in content:
            if isinstance(value, dict) and value.get("name") == name:
                yield value
            yield from _containers_named(value, name)


def _insert(content: Any, variables: list[dict[str, Any]], sources: list[dict[str, Any]]) -> None:
    """Insert both into all pod templates of an object, whatever its kind."""
    if isinstance(content, dict):
        for key, value in content.items():
            if isinstance(value, list) and any(_is_placeholder(entry) for entry in value):
                other_entries = [entry for entry in value if not _is_placeholder(entry)]
                content[key] = [*other_entries, *copy.deepcopy(variables)]
            else:
                _insert(value, variables, sources)
        if content.get("name") == _CODE_VOLUME and "emptyDir" in content and sources:
            del content["emptyDir"]
            content["projected"] = {"sources": copy.deepcopy(sources)}
    elif isinstance(content, list):
        for value in content:
            _insert(value, variables, sources)


def _is_placeholder(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("value") == _PLACEHOLDER
