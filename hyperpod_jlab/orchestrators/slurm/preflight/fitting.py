"""Whether a spec fits into a queue at all: pure rules over the cluster's limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hyperpod_jlab.model.errors import nearest_hint
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.model.quantities import format_duration, format_size
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.orchestrators.slurm.preflight.limits import Limits, NodeGroup, QueueLimits

_CLOSED = {
    "drain": "takes no new jobs (it is being drained)",
    "inact": "takes no jobs (it is inactive)",
    "down": "starts no jobs at the moment (it is down)",
}


def queues_of(spec: JobSpec, limits: Limits) -> list[QueueLimits]:
    """The queues that a run may start in: those that it names (Slurm takes several, with commas), or the default one."""
    if spec.queue is None:
        return [queue for queue in limits.values() if queue.default]
    return [limits[name] for name in spec.queue.split(",") if name in limits]


def fitting_findings(spec: JobSpec, limits: Limits, *, hyperpod: bool) -> list[Finding]:
    """What is wrong with queue, sizes and time.

    Args:
        spec: The spec.
        limits: The cluster's queues.
        hyperpod: Whether it is known to be a HyperPod cluster.
    """
    unknown = list(_unknown(spec, limits))
    queues = queues_of(spec, limits)
    if unknown or not queues:
        return unknown or [_no_default(limits)]
    found = [list(_in_queue(spec, queue)) for queue in queues]
    fitting = [entry for entry in found if not any(one.level == "error" for one in entry)]
    result = fitting[0] if fitting else found[0]
    return [*result, *_time(spec, queues), *_everything(spec, queues, limits, hyperpod)]


def count_findings(spec: JobSpec, limits: Limits) -> list[Finding]:
    """What is wrong with queue and number of nodes, of a script that says all else itself."""
    unknown = list(_unknown(spec, limits))
    found = [list(_node_count(spec, queue)) for queue in queues_of(spec, limits)]
    return unknown or min(found, key=len, default=[])


def default_limit(spec: JobSpec, limits: Limits) -> int | None:
    """Seconds that a run without a limit of its own gets: its queue's default, else the queue's longest, else None."""
    times = [queue.default_time or queue.max_time for queue in queues_of(spec, limits)]
    known = [time for time in times if time is not None]
    return int(min(known)) if known else None


def _unknown(spec: JobSpec, limits: Limits) -> Iterator[Finding]:
    for name in spec.queue.split(",") if spec.queue is not None else []:
        if name not in limits:
            yield Finding(
                level="error",
                code="unknown_queue",
                message=f"the cluster has no queue '{name[:60]}'",
                hint=nearest_hint(name[:60], limits),
                field="queue",
            )


def _no_default(limits: Limits) -> Finding:
    return Finding(
        level="error",
        code="no_default_queue",
        message="the cluster has no default queue",
        hint="name one with --queue: " + ", ".join(limits),
        field="queue",
    )


def _in_queue(spec: JobSpec, queue: QueueLimits) -> Iterator[Finding]:
    closed = _CLOSED.get(queue.available)
    if closed is not None:
        yield Finding(
            level="warning" if queue.available == "down" else "error",
            code="queue_closed",
            message=f"the queue {queue.name} {closed}",
            hint="name another one with --queue; see: hpj queues",
            field="queue",
        )
    wrong = [*_each_node(spec, queue), *_accelerators(spec, queue)]
    yield from wrong
    if not wrong:
        yield from _node_count(spec, queue)


def _each_node(spec: JobSpec, queue: QueueLimits) -> Iterator[Finding]:
    """What no node of the queue has, of CPUs and memory."""
    if not queue.groups:
        return
    cpus = max(group.cpus for group in queue.groups)
    if _cpus(spec) > cpus:
        said = spec.resources.cpus is not None
        yield Finding(
            level="error",
            code="too_many_cpus",
            message=f"{_cpus(spec)} CPUs are asked for on each node, and nodes of the queue {queue.name} have at most {cpus}",
            hint="ask for fewer with --cpus" if said else "ask for fewer processes, or set --cpus",
            field="resources.cpus" if said else "resources.processes_per_node",
        )
    memory = max(group.memory for group in queue.groups)
    wanted = spec.resources.memory
    if wanted is not None and wanted > memory:
        yield Finding(
            level="error",
            code="too_much_memory",
            message=f"{format_size(wanted)} of memory are asked for on each node, and nodes of the queue {queue.name} have at most {format_size(memory)}",
            hint="ask for less with --memory",
            field="resources.memory",
        )


def _accelerators(spec: JobSpec, queue: QueueLimits) -> Iterator[Finding]:
    """What no node of the queue has, of accelerators."""
    wanted = spec.resources.accelerator
    if wanted.count == 0 or "gres" in spec.slurm.flags or not queue.groups:
        return
    field = "resources.accelerators" if spec.resources.accelerators else "resources.gpus_per_node"
    word = "GPUs" if wanted.kind == "gpu" else "NeuronCores"
    here = [entry for group in queue.groups for entry in group.gres]
    types = {entry.type for entry in here if entry.name == wanted.kind and entry.type is not None}
    most = max(group.count(wanted.kind, wanted.type) for group in queue.groups)
    if not any(entry.name == wanted.kind for entry in here):
        kinds = sorted({entry.name for entry in here})
        code, message = "no_accelerators", f"nodes of the queue {queue.name} have no {word}"
        have = f"this one has: {', '.join(kinds)}" if kinds else "see: hpj nodes"
        hint = f"name another queue with --queue; {have}"
    elif wanted.type is not None and wanted.type not in types:
        code = "no_such_type"
        message = f"nodes of the queue {queue.name} have no {word} of type {wanted.type}"
        hint = nearest_hint(wanted.type, types) or "leave out the type"
    elif wanted.count > most:
        kind = word if wanted.type is None else f"{word} of type {wanted.type}"
        code = "too_many_gpus"
        message = f"{wanted.count} {kind} are asked for on each node, and nodes of the queue {queue.name} have at most {most}"
        hint = "ask for fewer on each node, and more nodes"
    else:
        return
    yield Finding(level="error", code=code, message=message, hint=hint, field=field)


def _node_count(spec: JobSpec, queue: QueueLimits) -> Iterator[Finding]:
    wanted = spec.resources.nodes
    fitting = sum(group.nodes for group in queue.groups if _fits(spec, group))
    problem = None
    if queue.max_nodes is not None and wanted > queue.max_nodes:
        problem = f"a job in the queue {queue.name} may have at most {queue.max_nodes}"
    elif wanted > queue.nodes:
        problem = f"the queue {queue.name} has {queue.nodes}"
    elif wanted > fitting:
        problem = f"only {fitting} of the {queue.nodes} in the queue {queue.name} have what is asked for on each"
    if problem is not None:
        yield Finding(
            level="error",
            code="too_many_nodes",
            message=f"nodes asked for: {wanted}; {problem}",
            hint="ask for fewer with --nodes, or name another queue; see: hpj queues",
            field="resources.nodes",
        )


def _fits(spec: JobSpec, group: NodeGroup) -> bool:
    wanted = spec.resources.accelerator
    enough = wanted.count == 0 or "gres" in spec.slurm.flags
    return (
        group.cpus >= _cpus(spec)
        and group.memory >= (spec.resources.memory or 0)
        and (enough or group.count(wanted.kind, wanted.type) >= wanted.count)
    )


def _cpus(spec: JobSpec) -> int:
    """CPUs that the script asks for on each node."""
    return spec.resources.cpus or spec.resources.processes


def _time(spec: JobSpec, queues: Sequence[QueueLimits]) -> Iterator[Finding]:
    names = ", ".join(queue.name for queue in queues)
    times = [queue.max_time for queue in queues]
    if spec.time_limit is None:
        if any(queue.default_time is None and queue.max_time is None for queue in queues):
            yield Finding(
                level="warning",
                code="no_time_limit",
                message=f"the run has no time limit, and the queue {names} sets none: the scheduler cannot fit it in between other jobs",
                hint="say how long it may take with --time-limit, such as 2h",
                field="time_limit",
            )
        return
    longest = max(float("inf") if time is None else time for time in times)
    if spec.time_limit > longest:
        yield Finding(
            level="error",
            code="time_limit",
            message=f"the time limit is {format_duration(spec.time_limit)}, and the queue {names} allows {format_duration(longest)}",
            hint=f"use --time-limit {format_duration(longest).replace(' ', '')} or less, or name another queue",
            field="time_limit",
        )


def _everything(
    spec: JobSpec, queues: Sequence[QueueLimits], limits: Limits, hyperpod: bool
) -> Iterator[Finding]:
    """HyperPod's queue dev holds login and controller nodes as well (its lifecycle scripts make it so: research, aws.md 2.5)."""
    others = [other for other in limits.values() if not other.default]
    if spec.queue is not None or not others:
        return
    queue = queues[0]
    if (hyperpod or queue.name == "dev") and all(queue.nodes > other.nodes for other in others):
        yield Finding(
            level="warning",
            code="default_queue_has_all",
            message=f"no queue is named, and the default one, {queue.name}, holds all nodes: on HyperPod also those for logging in and for the controller",
            hint="name one with --queue: " + ", ".join(other.name for other in others),
            field="queue",
        )
