"""Whether the run's interpreter and its bundle can be used over there, as far as that can be seen from where Slurm's commands run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from hyperpod_jlab.model.errors import HyperpodError, StorageError
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.orchestrators.slurm.preflight.facts import Facts, Seen
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.acl import let_through, open_tree
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.translation import PathMap

_COMMAND = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
"""A command that is looked for on PATH."""

_HOMES = ("/home", "/root", "/Users")

_NETWORK = frozenset(
    {"afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gpfs", "lustre", "nfs", "nfs4", "orangefs", "smb3", "wekafs"}
)  # fmt: skip
"""Kinds of file systems that several machines mount."""


def python_words(python: str) -> Finding | None:
    """What is wrong with the words of an interpreter's path."""
    if _COMMAND.fullmatch(python) if "/" not in python else python.startswith("/"):
        return None
    return Finding(
        level="error",
        code="bad_python",
        message=f"the python '{python[:60]}' is neither an absolute path nor the name of a command",
        hint="give the path of an interpreter with --python, as this machine or the nodes see it",
        field="environment.python",
    )


async def python_findings(
    python: str, given: bool, facts: Facts, paths: PathMap, remote: bool
) -> list[Finding]:
    """Whether an interpreter is there.

    Args:
        python: Its path as the nodes see it, or a command's name.
        given: Whether the spec names it; else the configuration does, whose word counts for what cannot be seen.
        facts: The cluster.
        paths: The partition here and there.
        remote: Whether Slurm's commands run on a login node.
    """
    wrong = python_words(python)
    if wrong is not None or not python.startswith("/"):
        return [wrong] if wrong is not None else []
    path = PurePosixPath(python)
    on_partition = path.is_relative_to(paths.there) and ".." not in path.parts
    if not remote:
        return await asyncio.to_thread(_on_this_machine, path, given, on_partition, paths)
    seen = (await facts.look(python)).paths
    return [] if seen and "x" in seen[0] else [_not_there(python, given, on_partition, remote)]


def _on_this_machine(
    path: PurePosixPath, given: bool, on_partition: bool, paths: PathMap
) -> list[Finding]:
    here = Path(paths.to_here(path) if on_partition else path)
    if not os.access(here, os.X_OK):
        return [_not_there(str(path), given, on_partition, remote=False)]
    if given and not on_partition and only_here(here):
        return [_private(str(path))]
    real = here.resolve()
    if on_partition and not real.is_relative_to(paths.here) and only_here(real):
        return [_linked(str(path), str(real))]
    return []


def _not_there(python: str, given: bool, on_partition: bool, remote: bool) -> Finding:
    """A path that cannot be seen: surely wrong on the partition or over there, else perhaps the nodes' own."""
    where = "on the login node" if remote else "on this machine"
    sure = on_partition or (remote and given)
    return Finding(
        level="error" if sure else "warning",
        code="no_python",
        message=f"there is no interpreter {python} "
        + ("on the storage partition" if on_partition else where),
        hint="give the path of one on the storage partition, or of the nodes' own, with --python"
        if sure
        else "the run fails unless the nodes have it; an interpreter on the storage partition is seen by all",
        field="environment.python",
    )


def _private(python: str) -> Finding:
    return Finding(
        level="error",
        code="python_outside",
        message=f"the python {python} lies in a home folder of this machine, outside of the storage partition: the nodes do not see it",
        hint="make the environment on the storage partition; where the nodes share this folder, name it as the cluster's python in the configuration",
        field="environment.python",
    )


def _linked(python: str, real: str) -> Finding:
    """An environment (venv) is a link to the interpreter that made it."""
    return Finding(
        level="warning",
        code="python_link",
        message=f"the python {python} is a link to {real}, in a home folder of this machine: the run fails unless the nodes have it too",
        hint="make the environment with an interpreter that lies on the storage partition, or at the same place on the nodes",
        field="environment.python",
    )


def only_here(path: Path, mounts: str | None = None) -> bool:
    """Whether a path lies in a home folder that is on this machine's own disk.

    Args:
        path: The path.
        mounts: The text of ``/proc/self/mountinfo``; default: this process's.
    """
    homes = {PurePosixPath(home) for home in _HOMES} | {PurePosixPath(Path.home())}
    if not any(path.is_relative_to(home) and str(home) != "/" for home in homes):
        return False
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(errors="replace")
        except OSError:
            return False
    kinds = dict(_mounts(mounts))
    places = [place for place in (path, *path.parents) if str(place) in kinds]
    return bool(places) and kinds[str(places[0])] not in _NETWORK


def _mounts(text: str) -> Iterator[tuple[str, str]]:
    """Mount points and their kinds (man proc, mountinfo): later ones lie over earlier ones."""
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        words = before.split(" ")
        if dash and len(words) > 4:
            yield words[4].replace("\\040", " "), after.split(" ")[0]


async def storage_findings(facts: Facts, partition: Partition, paths: PathMap) -> list[Finding]:
    """Whether the user whose jobs are sent can read and write bundles over there.

    On this machine that user is this process's own. Elsewhere a folder is made as a bundle's are, looked at from there, and taken away.
    """
    try:
        probe = await asyncio.to_thread(_make_probe, partition)
    except (OSError, HyperpodError):
        return []  # the submit says it, in its own words
    try:
        below = [str(paths.to_there(str(path))) for path in (partition.folder, probe)]
        seen = await facts.look(str(paths.there), *below)
        if seen.uid is not None and seen.uid != os.getuid():
            await asyncio.to_thread(_let_in, partition, probe, seen.uid)
            seen = await facts.look(str(paths.there), *below)
    except StorageError as error:
        return [Finding(level="error", code=error.code, message=error.message, hint=error.hint)]
    finally:
        await asyncio.to_thread(_remove_probe, probe)
    return _storage(seen, str(paths.there))


def _let_in(partition: Partition, probe: Path, uid: int) -> None:
    """Let the jobs' user in, as a submit does."""
    let_through(partition.folder, uid)
    open_tree(probe, uid)


def _make_probe(partition: Partition) -> Path:
    partition.prepare()
    folder = partition.folder / f".seen-{secrets.token_hex(8)}"
    descent.make_folder(folder, partition.folder_mode)
    return folder


def _remove_probe(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _storage(seen: Seen, there: str) -> list[Finding]:
    if len(seen.paths) != 3:
        return []
    root, folder, probe = seen.paths
    who = f"{seen.user or 'the user'} (uid {seen.uid})"
    if "e" not in root:
        code = "partition_missing"
        message = f"the login node has no folder {there}, where the storage partition should be"
        hint = (
            "mount it there, or name its place over there as storage in the cluster's configuration"
        )
    elif ("x" in folder and "e" not in probe) or ("x" in root and "e" not in folder):
        code = "partition_differs"
        message = f"the folder {there} on the login node is not this machine's storage partition"
        hint = "name the partition's place over there as storage in the cluster's configuration"
    elif not {"r", "w", "x"} <= set(probe):
        code = "storage_denied"
        message = f"{who}, as whom jobs run, may not read and write this user's runs in {there}"
        hint = f"let that user through the folder {there} itself, or log in as the one with the same number as here, {os.getuid()}: name it in login_nodes, as in name@host"
    else:
        return []
    return [Finding(level="error", code=code, message=message, hint=hint)]
