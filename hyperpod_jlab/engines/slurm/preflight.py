"""Preflight checks of a spec on a Slurm cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import HyperpodError, StorageError, UnreachableError, nearest_hint
from hyperpod_jlab.core.finding import Finding, Fix, gpu_fixes, unused_gpus
from hyperpod_jlab.core.quantities import format_duration, format_size
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.launch import GuardPolicy
from hyperpod_jlab.engines.protocol import Rendered, RenderInput
from hyperpod_jlab.engines.slurm.facts import Accounts, ClusterFacts, HostFacts, Limits, NodeGroup, QueueLimits
from hyperpod_jlab.engines.slurm.native import Sending
from hyperpod_jlab.engines.slurm.render import render
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.acl import grant_traversal, grant_tree
from hyperpod_jlab.storage.partition import Partition, PathMap

# --------------------------------------------------------------------------------------------------
# Whether a spec fits a queue at all: pure rules over the cluster's limits.

_CLOSED = {
    "drain": "takes no new jobs (it is being drained)",
    "inact": "takes no jobs (it is inactive)",
    "down": "starts no jobs at the moment (it is down)",
}


def select_queues(spec: JobSpec, limits: Limits) -> list[QueueLimits]:
    """The queues in which a run may start: those that it names (Slurm accepts a comma-separated list), or the default one."""
    if spec.queue is None:
        return [queue for queue in limits.values() if queue.default]
    return [limits[name] for name in spec.queue.split(",") if name in limits]


def fitting_findings(spec: JobSpec, limits: Limits, *, hyperpod: bool) -> list[Finding]:
    """Problems with queue, sizes and time.

    Args:
        spec: The spec.
        limits: The cluster's queues.
        hyperpod: Whether this is known to be a HyperPod cluster.
    """
    unknown_findings = list(_unknown_queue(spec, limits))
    queues = select_queues(spec, limits)
    if unknown_findings or not queues:
        return unknown_findings or [_no_default_queue(limits)]
    findings_by_queue = [list(_check_queue(spec, queue)) for queue in queues]
    fitting = [entry for entry in findings_by_queue if not any(finding.level == "error" for finding in entry)]
    result = fitting[0] if fitting else findings_by_queue[0]
    return [
        *result,
        *([] if result else _unused_gpus(spec, queues)),
        *_time(spec, queues),
        *_check_limits(spec, queues, limits, hyperpod),
    ]


def count_findings(spec: JobSpec, limits: Limits) -> list[Finding]:
    """Problems with queue and node count, for a script that sets everything else itself."""
    unknown_findings = list(_unknown_queue(spec, limits))
    findings_by_queue = [list(_node_count(spec, queue)) for queue in select_queues(spec, limits)]
    return unknown_findings or min(findings_by_queue, key=len, default=[])


def default_limit(spec: JobSpec, limits: Limits) -> int | None:
    """The time limit in seconds of a run without one: its queue's default, else the queue's maximum, else None."""
    times = [queue.default_time or queue.max_time for queue in select_queues(spec, limits)]
    known_times = [time for time in times if time is not None]
    return int(min(known_times)) if known_times else None


def _unknown_queue(spec: JobSpec, limits: Limits) -> Iterator[Finding]:
    for name in spec.queue.split(",") if spec.queue is not None else []:
        if name not in limits:
            yield Finding(
                level="error",
                code="unknown_queue",
                message=f"queue '{name[:60]}' not found on the cluster",
                hint=nearest_hint(name[:60], limits),
                field="queue",
            )


def _no_default_queue(limits: Limits) -> Finding:
    return Finding(
        level="error",
        code="no_default_queue",
        message="the cluster has no default queue",
        hint="use --queue: " + ", ".join(limits),
        field="queue",
    )


def _check_queue(spec: JobSpec, queue: QueueLimits) -> Iterator[Finding]:
    closed = _CLOSED.get(queue.available)
    if closed is not None:
        yield Finding(
            level="warning" if queue.available == "down" else "error",
            code="queue_closed",
            message=f"the queue {queue.name} {closed}",
            hint="use another queue with --queue; list queues with: hpj queues",
            field="queue",
        )
    problems = [*_check_node_size(spec, queue), *_accelerators(spec, queue)]
    yield from problems
    if not problems:
        yield from _node_count(spec, queue)


def _check_node_size(spec: JobSpec, queue: QueueLimits) -> Iterator[Finding]:
    """Requested CPUs and memory that no node of the queue has."""
    if not queue.groups:
        return
    cpus = max(group.cpus for group in queue.groups)
    if _cpus(spec) > cpus:
        is_given = spec.resources.cpus is not None
        yield Finding(
            level="error",
            code="too_many_cpus",
            message=f"{_cpus(spec)} CPUs are requested on each node, but nodes of the queue {queue.name} have at most {cpus}",
            hint="request fewer with --cpus" if is_given else "request fewer processes, or set --cpus",
            field="resources.cpus" if is_given else "resources.processes_per_node",
        )
    memory = max(group.memory for group in queue.groups)
    requested = spec.resources.memory
    if requested is not None and requested > memory:
        yield Finding(
            level="error",
            code="too_much_memory",
            message=f"{format_size(requested)} of memory is requested on each node, but nodes of the queue {queue.name} have at most "
            f"{format_size(memory)}",
            hint="request less with --memory",
            field="resources.memory",
        )


def _accelerators(spec: JobSpec, queue: QueueLimits) -> Iterator[Finding]:
    """Requested accelerators that no node of the queue has."""
    requested = spec.resources.accelerator
    if requested.count == 0 or "gres" in spec.slurm.flags or not queue.groups:
        return
    field = "resources.accelerators" if spec.resources.accelerators else "resources.gpus_per_node"
    device_label = "GPUs" if requested.kind == "gpu" else "NeuronCores"
    available_gres = [entry for group in queue.groups for entry in group.gres]
    types = {entry.type for entry in available_gres if entry.name == requested.kind and entry.type is not None}
    max_count = max(group.count(requested.kind, requested.type) for group in queue.groups)
    if not any(entry.name == requested.kind for entry in available_gres):
        kinds = sorted({entry.name for entry in available_gres})
        code, message = "no_accelerators", f"nodes of the queue {queue.name} have no {device_label}"
        available_text = f"this one has: {', '.join(kinds)}" if kinds else "list nodes with: hpj nodes"
        hint = f"use another queue with --queue; {available_text}"
    elif requested.type is not None and requested.type not in types:
        code = "no_such_type"
        message = f"nodes of the queue {queue.name} have no {device_label} of type {requested.type}"
        hint = nearest_hint(requested.type, types) or "leave out the type"
    elif requested.count > max_count:
        kind = device_label if requested.type is None else f"{device_label} of type {requested.type}"
        code = "too_many_gpus"
        message = f"{requested.count} {kind} are requested on each node, but nodes of the queue {queue.name} have at most {max_count}"
        hint = "request fewer on each node, and more nodes"
    else:
        return
    fixes = () if spec.resources.accelerators else gpu_fixes(max_count)
    yield Finding(
        level="error",
        code=code,
        message=message,
        hint=hint,
        field=field,
        fixes=fixes if code == "too_many_gpus" else (),
    )


_GPU_FLAGS = ("gres", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "tres-per-task")
"""sbatch options that request GPUs."""


def _unused_gpus(spec: JobSpec, queues: Sequence[QueueLimits]) -> Iterator[Finding]:
    """A run without GPUs in queues whose nodes all have them."""
    if spec.resources.accelerator.count > 0 or any(flag in spec.slurm.flags for flag in _GPU_FLAGS):
        return
    groups = [group for queue in queues for group in queue.groups]
    counts = {group.count("gpu") for group in groups}
    if not counts or min(counts) == 0:
        return
    models = {entry.type for group in groups for entry in group.gres if entry.name == "gpu"}
    names = ", ".join(queue.name for queue in queues)
    yield unused_gpus(f"nodes of the queue {names}", filter(None, models), max(counts))


def _node_count(spec: JobSpec, queue: QueueLimits) -> Iterator[Finding]:
    requested = spec.resources.nodes
    fitting = sum(group.nodes for group in queue.groups if _group_fits(spec, group))
    most = min(fitting, queue.nodes, queue.max_nodes or queue.nodes)
    if requested <= most:
        return
    if queue.max_nodes is not None and requested > queue.max_nodes:
        available = f"allows {_nodes_text(queue.max_nodes)} per job"
    elif requested > queue.nodes:
        available = f"has {_nodes_text(queue.nodes)}"
    else:
        available = f"has {_nodes_text(fitting)} with the requested resources"
    yield Finding(
        level="error",
        code="too_many_nodes",
        message=f"queue {queue.name} {available}, {requested} requested",
        hint="request fewer with --nodes, or use another queue; list queues with: hpj queues",
        field="resources.nodes",
        fixes=(Fix(label=f"Use {_nodes_text(most)}", set={"resources.nodes": most}),) if most > 0 else (),
    )


def _nodes_text(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _group_fits(spec: JobSpec, group: NodeGroup) -> bool:
    requested = spec.resources.accelerator
    has_accelerators = requested.count == 0 or "gres" in spec.slurm.flags
    return (
        group.cpus >= _cpus(spec)
        and group.memory >= (spec.resources.memory or 0)
        and (has_accelerators or group.count(requested.kind, requested.type) >= requested.count)
    )


def _cpus(spec: JobSpec) -> int:
    """The CPUs that the script requests on each node."""
    return spec.resources.cpus or spec.resources.processes


def _time(spec: JobSpec, queues: Sequence[QueueLimits]) -> Iterator[Finding]:
    names = ", ".join(queue.name for queue in queues)
    times = [queue.max_time for queue in queues]
    if spec.time_limit is None:
        if any(queue.default_time is None and queue.max_time is None for queue in queues):
            yield Finding(
                level="warning",
                code="no_time_limit",
                message="no time limit set. With one, the scheduler can start your job earlier (backfill)",
                hint="set a time limit with --time-limit, such as 2h",
                field="time_limit",
                fixes=(
                    Fix(label="Use 1 hour", set={"time_limit": "1h"}),
                    Fix(label="Use 4 hours", set={"time_limit": "4h"}),
                ),
            )
        return
    max_limit = max(float("inf") if time is None else time for time in times)
    if spec.time_limit > max_limit:
        limit_text = format_duration(max_limit)
        yield Finding(
            level="error",
            code="time_limit",
            message=f"the time limit is {format_duration(spec.time_limit)}, but the queue {names} allows at most {limit_text}",
            hint=f"use --time-limit {limit_text.replace(' ', '')} or less, or another queue",
            field="time_limit",
            fixes=(Fix(label=f"Use {limit_text.removesuffix(' 00m')}", set={"time_limit": int(max_limit)}),),
        )


def _check_limits(spec: JobSpec, queues: Sequence[QueueLimits], limits: Limits, hyperpod: bool) -> Iterator[Finding]:
    """HyperPod's lifecycle scripts put login and controller nodes into the queue dev (research: aws.md 2.5)."""
    other_queues = [candidate for candidate in limits.values() if not candidate.default]
    if spec.queue is not None or not other_queues:
        return
    queue = queues[0]
    if (hyperpod or queue.name == "dev") and all(queue.nodes > candidate.nodes for candidate in other_queues):
        yield Finding(
            level="warning",
            code="default_queue_has_all",
            message=f"no queue is given, and the default queue {queue.name} contains all nodes: on HyperPod also login nodes and the "
            "controller",
            hint="use --queue: " + ", ".join(candidate.name for candidate in other_queues),
            field="queue",
        )


# --------------------------------------------------------------------------------------------------
# Whether the nodes can use the run's interpreter and bundle, as far as the machine with Slurm's
# commands can tell.

_COMMAND = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
"""A command that is looked up on PATH."""

_HOME_FOLDERS = ("/home", "/root", "/Users")

_NETWORK = frozenset(
    {"afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gpfs", "lustre", "nfs", "nfs4", "orangefs", "smb3", "wekafs"}
)  # fmt: skip
"""Types of file systems that several machines mount."""


def check_python_path(python: str) -> Finding | None:
    """Problems with the text of an interpreter's path."""
    if _COMMAND.fullmatch(python) if "/" not in python else python.startswith("/"):
        return None
    return Finding(
        level="error",
        code="bad_python",
        message=f"Python '{python[:60]}' is neither an absolute path nor the name of a command",
        hint="set --python to the path of an interpreter on this machine or on the nodes",
        field="environment.python",
    )


async def python_findings(
    python: str, is_explicit: bool, facts: ClusterFacts, paths: PathMap, remote: bool
) -> list[Finding]:
    """Whether an interpreter exists.

    Args:
        python: Its path as the nodes see it, or a command's name.
        is_explicit: Whether the spec sets it. Otherwise the configuration does, and is trusted if
            the path cannot be checked.
        facts: Cached facts about the cluster.
        paths: The partition's paths on this machine and on the nodes.
        remote: Whether Slurm's commands run on a login node.
    """
    problem = check_python_path(python)
    if problem is not None or not python.startswith("/"):
        return [problem] if problem is not None else []
    path = PurePosixPath(python)
    on_partition = path.is_relative_to(paths.remote) and ".." not in path.parts
    if not remote:
        return await asyncio.to_thread(_check_local_python, path, is_explicit, on_partition, paths)
    path_states = (await facts.probe(python)).paths
    return [] if path_states and "x" in path_states[0] else [_missing_python(python, is_explicit, on_partition, remote)]


def _check_local_python(path: PurePosixPath, is_explicit: bool, on_partition: bool, paths: PathMap) -> list[Finding]:
    local_path = Path(paths.to_local_path(path) if on_partition else path)
    if not os.access(local_path, os.X_OK):
        return [_missing_python(str(path), is_explicit, on_partition, remote=False)]
    if is_explicit and not on_partition and is_local_only(local_path):
        return [_private(str(path))]
    real = local_path.resolve()
    if on_partition and not real.is_relative_to(paths.local) and is_local_only(real):
        return [_linked(str(path), str(real))]
    return []


def _missing_python(python: str, is_explicit: bool, on_partition: bool, remote: bool) -> Finding:
    """The finding for a path that is not visible: an error on the partition or the login node, otherwise perhaps local to the nodes."""
    location = "on the login node" if remote else "on this machine"
    is_certain = on_partition or (remote and is_explicit)
    return Finding(
        level="error" if is_certain else "warning",
        code="no_python",
        message=f"no interpreter found at {python} " + ("on the storage partition" if on_partition else location),
        hint="set --python to an interpreter on the storage partition or on the nodes"
        if is_certain
        else "the run fails unless the nodes have it; an interpreter on the storage partition is available on all nodes",
        field="environment.python",
    )


def _private(python: str) -> Finding:
    return Finding(
        level="error",
        code="python_outside",
        message=f"Python {python} is in a home folder of this machine, outside the storage partition, so the nodes do not have it",
        hint="create the environment on the storage partition; if the nodes share this folder, set it as python of the cluster in the "
        "configuration",
        field="environment.python",
    )


def _linked(python: str, real: str) -> Finding:
    """A virtual environment (venv) links to the interpreter that created it."""
    return Finding(
        level="warning",
        code="python_link",
        message=f"Python {python} is a link to {real} in a home folder of this machine: the run fails unless the nodes have it too",
        hint="create the environment with an interpreter on the storage partition, or one that has the same path on the nodes",
        field="environment.python",
    )


def is_local_only(path: Path, mounts: str | None = None) -> bool:
    """Whether a path is in a home folder on this machine's own disk.

    Args:
        path: The path.
        mounts: The text of ``/proc/self/mountinfo``; this process's by default.
    """
    home_folders = {PurePosixPath(folder) for folder in _HOME_FOLDERS} | {PurePosixPath(Path.home())}
    if not any(path.is_relative_to(folder) and str(folder) != "/" for folder in home_folders):
        return False
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(errors="replace")
        except OSError:
            return False
    kinds = dict(_mounts(mounts))
    mount_points = [parent for parent in (path, *path.parents) if str(parent) in kinds]
    return bool(mount_points) and kinds[str(mount_points[0])] not in _NETWORK


def _mounts(text: str) -> Iterator[tuple[str, str]]:
    """Mount points and their types (man proc, mountinfo); later ones cover earlier ones."""
    for line in text.splitlines():
        head, dash, tail = line.partition(" - ")
        fields = head.split(" ")
        if dash and len(fields) > 4:
            yield fields[4].replace("\\040", " "), tail.split(" ")[0]


async def storage_findings(facts: ClusterFacts, partition: Partition, paths: PathMap) -> list[Finding]:
    """Whether the user of the jobs can read and write bundles on the cluster.

    On this machine that user is this process's own. For a login node, a test folder is created like
    a bundle's, checked from there, and removed.
    """
    try:
        probe = await asyncio.to_thread(_make_probe, partition)
    except (OSError, HyperpodError):
        return []  # the submit reports this error itself
    try:
        remote_paths = [str(paths.to_cluster_path(str(path))) for path in (partition.folder, probe)]
        host_facts = await facts.probe(str(paths.remote), *remote_paths)
        if host_facts.uid is not None and host_facts.uid != os.getuid():
            await asyncio.to_thread(_grant_access, partition, probe, host_facts.uid)
            host_facts = await facts.probe(str(paths.remote), *remote_paths)
    except StorageError as error:
        return [Finding(level="error", code=error.code, message=error.message, hint=error.hint)]
    finally:
        await asyncio.to_thread(_remove_probe, probe)
    return _storage(host_facts, str(paths.remote))


def _grant_access(partition: Partition, probe: Path, uid: int) -> None:
    """Grant the jobs' user access, as a submit does."""
    grant_traversal(partition.folder, uid)
    grant_tree(probe, uid)


def _make_probe(partition: Partition) -> Path:
    partition.prepare()
    folder = partition.folder / f".seen-{secrets.token_hex(8)}"
    descent.make_folder(folder, partition.folder_mode)
    return folder


def _remove_probe(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _storage(host_facts: HostFacts, remote_root: str) -> list[Finding]:
    if len(host_facts.paths) != 3:
        return []
    root, folder, probe = host_facts.paths
    user_text = f"{host_facts.user or 'the user'} (uid {host_facts.uid})"
    if "e" not in root:
        code = "partition_missing"
        message = f"folder {remote_root} of the storage partition not found on the login node"
        hint = "mount it there, or set storage of the cluster in the configuration to its path on the nodes"
    elif ("x" in folder and "e" not in probe) or ("x" in root and "e" not in folder):
        code = "partition_differs"
        message = f"the folder {remote_root} on the login node is not the storage partition of this machine"
        hint = "set storage of the cluster in the configuration to the path of the partition on the nodes"
    elif not {"r", "w", "x"} <= set(probe):
        code = "storage_denied"
        message = f"jobs run as {user_text}, who cannot read and write the runs of this user in {remote_root}"
        hint = f"give that user access to the folder {remote_root}, or log in as the user with the uid of this machine, {os.getuid()}: set login_nodes to name@host"
    else:
        return []
    return [Finding(level="error", code=code, message=message, hint=hint)]


_CERTAIN_CODES = {
    "array_too_large": "array",
    "denied": None,
    "invalid_feature": "slurm.flags.constraint",
    "invalid_gres": "resources.accelerators",
    "invalid_license": "slurm.flags.licenses",
    "invalid_qos": "qos",
    "invalid_reservation": "slurm.flags.reservation",
    "invalid_time_min": "slurm.flags.time-min",
    "no_association": "account",
    "no_such_nodes": "resources",
    "queue_closed": "queue",
    "queue_denied": "queue",
    "reservation_denied": "slurm.flags.reservation",
    "too_many_cpus": "resources.cpus",
    "too_many_nodes": "resources.nodes",
    "unknown_node": "slurm.flags.nodelist",
    "unknown_queue": "queue",
}
"""Codes with which sbatch rejects a job for good (see `client.parse_error`), and the field that each is about."""

_PARTIAL_CODES = frozenset({"accounting_down", "no_accounting", "controller_slow"})
"""Codes of an `UnreachableError` after which sbatch may still answer."""

_CONTROLLER = "allocation failure: "
"""Prefix of the controller's message in sbatch --test-only (src/sbatch/sbatch.c)."""

_FLAG = re.compile(r"--([a-z][-a-z]+)")

_PRIORITY = re.compile(r"[0-9]{1,10}|TOP", re.IGNORECASE)


@dataclass(frozen=True)
class PreflightContext:
    """Input of the preflight besides the spec.

    Attributes:
        name: The cluster's name in the configuration.
        config: Its configuration.
        facts: Cached facts about it.
        partition: The storage partition.
        paths: The partition's paths on this machine and on the nodes.
        python: The interpreter as the nodes see it, or None for their own.
    """

    name: str
    config: SlurmCluster
    facts: ClusterFacts
    partition: Partition
    paths: PathMap
    python: str | None


async def preflight(spec: JobSpec, context: PreflightContext) -> list[Finding]:
    """All findings. If only a part of the cluster does not answer, that is a warning.

    Raises:
        InvalidInputError: An extra flag is unknown, protected or has an invalid value.
        UnreachableError: The cluster does not answer; a submit would only time out as well.
    """
    return [*_check_settings(spec), *await _ignore_partial_failure(_check_both(spec, context))]


async def dry_run_native(render_input: RenderInput, rendered: Rendered, context: PreflightContext) -> list[Finding]:
    """Findings about a user's own script with its options and ``#SBATCH`` lines: the number of nodes, and the controller's verdict.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    return await _ignore_partial_failure(_check_script(render_input, rendered, context))


async def _check_script(render_input: RenderInput, rendered: Rendered, context: PreflightContext) -> list[Finding]:
    facts = rendered.facts
    assert render_input.native is not None  # the render step set it
    assert facts is not None
    resources = render_input.spec.resources.model_copy(update={"nodes": facts.nodes})
    spec = render_input.spec.model_copy(update={"queue": facts.queue, "resources": resources})
    findings = count_findings(spec, await context.facts.limits())
    if any(finding.level == "error" for finding in findings):
        return findings
    options = Sending.from_json(rendered.text).options
    return await _run_dry_run(spec, context, render_input.native.data, options)


async def _ignore_partial_failure(findings: Awaitable[list[Finding]]) -> list[Finding]:
    """The findings, or a warning if only a part of the cluster does not answer."""
    try:
        return await findings
    except HyperpodError as error:
        is_unanswered = isinstance(error, UnreachableError) and error.code not in _PARTIAL_CODES
        if error.code == "invalid_flag" or is_unanswered:
            raise
        message = f"the cluster did not check the run: {error.message}"
        return [Finding(level="warning", code="unchecked", message=message, hint=error.hint)]


async def _check_both(spec: JobSpec, context: PreflightContext) -> list[Finding]:
    """Run our checks and the controller's in parallel; the controller's verdict counts when ours find nothing."""
    dry_run = asyncio.create_task(_dry_run(spec, context))
    try:
        findings = [finding async for finding in _check_facts(spec, context)]
        is_refused = any(finding.level == "error" for finding in findings)
        return findings if is_refused else [*findings, *await dry_run]
    finally:
        dry_run.cancel()
        await asyncio.gather(dry_run, return_exceptions=True)


async def _check_facts(spec: JobSpec, context: PreflightContext) -> AsyncIterator[Finding]:
    """Checks that query the cluster and its login node, cheapest first."""
    facts, remote = context.facts, context.config.transport == "ssh"
    python, paths = context.python, context.paths
    if python is not None and spec.environment.image is None:
        is_explicit = spec.environment.python is not None
        check = partial(python_findings, python, is_explicit, facts, paths, remote)
        for finding in await facts.cached_findings(f"python {is_explicit} {python}", check):
            yield finding
    if remote:
        check = partial(storage_findings, facts, context.partition, paths)
        for finding in await facts.cached_findings("storage", check):
            yield finding
    if spec.environment.image is not None and not await facts.containers():
        yield Finding(
            level="error",
            code="unsupported",
            message="the cluster does not support containers: its srun has no --container-image",
            hint="use --python instead of --image, or ask your cluster administrator for Pyxis and Enroot",
            field="environment.image",
        )
    limits = await facts.limits()
    for finding in fitting_findings(spec, limits, hyperpod=context.config.hyperpod is not None):
        yield finding
    for finding in _instances(spec, limits):
        yield finding
    if spec.account is not None or spec.qos is not None:
        accounts = await facts.accounts()
        enforced = (await facts.settings()).enforced
        for finding in _check_names(spec, accounts, enforced):
            yield finding


def _check_names(spec: JobSpec, accounts: Accounts | None, enforced: frozenset[str]) -> Iterator[Finding]:
    """Check account and QoS. If the cluster does not enforce them, a wrong one has no effect."""
    if accounts is None:
        for field in ("account", "qos"):
            if getattr(spec, field) is not None:
                yield Finding(
                    level="info",
                    code="ignored",
                    message=f"the cluster has no accounts, so {field} has no effect",
                    field=field,
                )
        return
    if spec.account is not None and spec.account not in accounts.qos:
        yield Finding(
            level="error" if "associations" in enforced else "warning",
            code="no_association",
            message=f"{accounts.user} has no account '{spec.account[:60]}' on the cluster",
            hint=nearest_hint(spec.account[:60], accounts.names) or "ask your cluster administrator for an account",
            field="account",
        )
        return
    known_qos = accounts.qos_of(spec.account)
    if spec.qos is not None and spec.qos not in known_qos:
        account_text = f" with the account {spec.account}" if spec.account is not None else ""
        yield Finding(
            level="error" if "qos" in enforced else "warning",
            code="invalid_qos",
            message=f"{accounts.user} may not use the QoS '{spec.qos[:60]}'{account_text}",
            hint=nearest_hint(spec.qos[:60], known_qos) or "ask your cluster administrator for one",
            field="qos",
        )


def _check_settings(spec: JobSpec) -> Iterator[Finding]:
    """Checks that need no query."""
    if spec.priority is not None and not _PRIORITY.fullmatch(spec.priority):
        yield Finding(
            level="error",
            code="bad_priority",
            message=f"the priority must be a whole number or TOP, not '{spec.priority[:60]}'",
            hint="leave it out, or use --qos",
            field="priority",
        )
    own_variables = [name for name in spec.environment.variables if name.startswith(("SLURM_", "SLURMD_"))]
    if own_variables:
        yield Finding(
            level="error",
            code="scheduler_variable",
            message=f"the scheduler sets {own_variables[0]} for each job",
            hint="leave it out, or use another name",
            field="environment.variables",
        )
    unsupported = {
        "resources.instance_group": spec.resources.instance_group,
        "resources.efa": spec.resources.efa,
        "kubernetes.kind": spec.kubernetes.kind,
        "kubernetes.namespace": spec.kubernetes.namespace,
        "kubernetes.service_account": spec.kubernetes.service_account,
        "kubernetes.patch": spec.kubernetes.patch or None,
        "kubernetes.keep_companions": spec.kubernetes.keep_companions or None,
    }
    if spec.environment.image is not None:
        unsupported["environment.python"] = spec.environment.python
    for field, value in unsupported.items():
        if value is not None:
            reason = ": the image's python3 is used" if field == "environment.python" else ""
            yield Finding(level="info", code="ignored", message=f"a Slurm cluster ignores {field}{reason}", field=field)


def _instances(spec: JobSpec, limits: Limits) -> Iterator[Finding]:
    """Slurm does not know instance types, but queues or node features are often named after them."""
    requested = spec.resources.instance_type
    if requested is None:
        return
    features = {feature for queue in limits.values() for group in queue.groups for feature in group.features}
    queue = next((name for name in limits if name in {requested, requested.removeprefix("ml.")}), None)
    if spec.queue is not None and spec.queue == queue:
        return
    hint = None
    if queue is not None:
        hint = f"the cluster has a queue of this name: --queue {queue}"
    elif requested in features:
        hint = f"nodes have a feature of this name: use the flag constraint={requested}"
    yield Finding(
        level="warning",
        code="ignored",
        message="a Slurm cluster has no instance types, so resources.instance_type is ignored",
        hint=hint or "choose nodes with --queue; list queues with: hpj queues",
        field="resources.instance_type",
    )


async def _dry_run(spec: JobSpec, context: PreflightContext) -> list[Finding]:
    """The controller's verdict on the script itself (sbatch --test-only, about 10 ms)."""
    bundle = str(context.partition.bundle("preflight").relative_to(context.partition.root))
    name = spec.name or "preflight"
    render_input = RenderInput("preflight", name, spec, bundle, context.paths, context.python, GuardPolicy.current())
    return await _run_dry_run(spec, context, render(render_input).text.encode())


async def _run_dry_run(
    spec: JobSpec, context: PreflightContext, script: bytes, options: tuple[str, ...] = ()
) -> list[Finding]:
    error = await context.facts.dry_run(script, options)
    if error is None:
        return []
    # The controller gives the same answer for nodes that are missing at the moment, such as seconds
    # after its start, as for nodes that never existed.
    unsure = error.code == "no_such_nodes" and await context.facts.has_missing_nodes()
    limits = await context.facts.limits()
    return [_dry_run_finding(error, spec, limits, is_certain=not unsure)]


def _dry_run_finding(error: HyperpodError, spec: JobSpec, limits: Limits, *, is_certain: bool = True) -> Finding:
    """A verdict that there is no capacity now is a warning: the run waits. An error of sbatch itself, or a permanent rejection, is an error."""
    is_controller_error = _CONTROLLER in error.message
    message = error.message.replace(_CONTROLLER, "")
    if is_controller_error and not (is_certain and error.code in _CERTAIN_CODES):
        names = ", ".join(queue.name for queue in select_queues(spec, limits))
        return Finding(
            level="warning",
            code="would_not_start",
            message=f"it would not start now in the queue {names}: {message}",
            hint=error.hint,
        )
    flag = _FLAG.search(message)
    field = f"slurm.flags.{flag[1]}" if flag and flag[1] in spec.slurm.flags else None
    return Finding(
        level="error", code=error.code, message=message, hint=error.hint, field=field or _CERTAIN_CODES.get(error.code)
    )
