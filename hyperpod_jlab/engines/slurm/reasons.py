"""Why a job waits, as messages: Slurm's reason codes of all supported versions, 22.05 to 25.11.

The codes are those of job_reason_string (src/common/slurm_protocol_defs.c) in 22.05 and of
job_state_reason.c from 23.02 on; their meanings are in Slurm's job_reason_codes.html. Limits of
accounts and QoS make up two thirds of them, and their messages are composed from parts. If a job
has a description of its own, squeue shows that instead of the code.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hyperpod_jlab.engines.slurm.jobs import SlurmJob

_SINGLE: dict[str, str] = {
    "Priority": "jobs with a higher priority are ahead of it",
    "Resources": "not enough free nodes, GPUs, CPUs or memory",
    "Dependency": "it is waiting for another job to end",
    "DependencyNeverSatisfied": "a job that it depends on did not end as required, so it never starts; cancel it and submit it again",
    "BeginTime": "its begin time is in the future (a requeued job also waits a short time)",
    "JobHeldUser": "its user held it; release it to let it start",
    "JobHeldAdmin": "an administrator or the scheduler held it; only an administrator can release it",
    "JobHoldMaxRequeue": "it is held because the requeue limit is reached; check its log, then release it",
    "JobArrayTaskLimit": "the limit of running tasks of its array (its throttle) is reached",
    "Licenses": "it is waiting for licenses that are in use",
    "Reservation": "it is waiting for its reservation to begin",
    "ReservationDeleted": "it is held because its reservation was deleted; submit it again without the reservation",
    "ReservationInvalid": "it does not fit its reservation; submit it again with another reservation or none",
    "ReqNodeNotAvail": "a node that it needs is down, drained, reserved or in use",
    "NodeDown": "a node that it needs is down; ask your cluster administrator, or use other nodes",
    "PartitionDown": "its queue is down: jobs wait and none starts",
    "PartitionInactive": "its queue is inactive; use another queue",
    "PartitionNodeLimit": "it requests more (or fewer) nodes than its queue allows or has available; request another number, or use "
                          "another queue",
    "PartitionTimeLimit": "its time limit is above the limit of its queue; use a shorter one, or another queue",
    "PartitionConfig": "the limits of its queue do not allow it; request less, or use another queue",
    "MaxMemPerLimit": "it requests more memory per node or CPU than its queue allows; request less",
    "BadConstraints": "no node can ever provide what it requests; submit it again with a smaller request, or with other nodes",
    "Constraints": "nodes with the features that it requests are not available now",
    "Prolog": "its nodes are being prepared (the prolog is running)",
    "Cleaning": "it restarts when its nodes have finished cleaning up its last attempt",
    "FrontEndDown": "no front-end node of the cluster is up",
    "SchedDefer": "it requests an immediate start, which this cluster does not support; submit it without --immediate",
    "DeadLine": "it can no longer end before its deadline",
    "FedJobLock": "it is waiting until the clusters of the federation decide where it starts",
    "BurstBufferResources": "it is waiting for space in the burst buffer",
    "BurstBufferStageIn": "its files are being staged into the burst buffer",
    "BurstBufferOperation": "the burst buffer failed; see the messages of the job, or ask your cluster administrator",
    "PowerNotAvail": "not enough electric power is available now",
    "PowerReserved": "the electric power that it needs is reserved for another job",
    "MaxPoweredUpNodes": "the limit of powered-up nodes is reached; it is waiting until some are released",
    "MpiPortsBusy": "too few MPI ports are free on its nodes; the start is retried",
    "NvidiaImexChannels": "all NVIDIA IMEX channels are in use; it is waiting for a free one",
    "InvalidAccount": "its account is no longer valid; submit it again with another account",
    "AccountNotAllowed": "its account may not use this queue; use another account or queue",
    "InvalidQOS": "its QoS is no longer valid; submit it again with another QoS",
    "QOSNotAllowed": "its account or queue does not allow its QoS; use another QoS or queue",
    "QOSUsageThreshold": "the usage of its account is outside the usage threshold of the QoS; use another QoS",
    "AccountingPolicy": "a limit of its account or QoS is reached; request less, or wait until other jobs end",
    "AssociationJobLimit": "the limit of running jobs of its account and user is reached",
    "AssociationResourceLimit": "the resource limit of its account and user is reached; wait, or request less",
    "AssociationTimeLimit": "the time of its account and user is used up; ask your cluster administrator",
    "QOSJobLimit": "the limit of running jobs of its QoS is reached",
    "QOSResourceLimit": "the resource limit of its QoS is reached; wait, or request less",
    "QOSTimeLimit": "the time of its QoS is used up; use another QoS",
    "BlockMaxError": "blocks of the machine failed too often; ask your cluster administrator",
    "BlockFreeAction": "a block of the machine is being freed",
    "SystemFailure": "the system failed (Slurm, a file system or the network); ask your cluster administrator",
    "JobLaunchFailure": "it could not start on its node: its folder, user or program may be missing there",
    "NonZeroExitCode": "its program ended with an error",
    "RaisedSignal": "its program was ended by a signal",
    "TimeLimit": "it reached its time limit",
    "InactiveLimit": "it was ended because it was inactive for too long",
    "OutOfMemory": "it exceeded its requested memory",
}  # fmt: skip
"""Codes that are not composed."""

_QUEUED_REASONS = frozenset(
    {
        "",
        "(null)",
        "None",
        "Priority",
        "Resources",
        "ReqNodeNotAvail",
        "Constraints",
        "Licenses",
        "BurstBufferResources",
        "MaxPoweredUpNodes",
        "MpiPortsBusy",
        "NvidiaImexChannels",
    }
)

_NOT_CAPACITY_REASONS = frozenset(
    {
        "AccountingPolicy",
        "AssociationJobLimit",
        "AssociationResourceLimit",
        "AssociationTimeLimit",
        "BeginTime",
        "BurstBufferStageIn",
        "Cleaning",
        "DeadLine",
        "Dependency",
        "DependencyNeverSatisfied",
        "FedJobLock",
        "JobArrayTaskLimit",
        "JobHeldAdmin",
        "JobHeldUser",
        "JobHoldMaxRequeue",
        "Prolog",
        "QOSJobLimit",
        "QOSResourceLimit",
        "QOSTimeLimit",
        "QOSUsageThreshold",
        "ReservationDeleted",
    }
)

_DESCRIBED: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"^ReqNodeNotAvail, ?UnavailableNodes: ?(?P<nodes>\S*)"),
        "ReqNodeNotAvail",
        "nodes that it needs are not available: {nodes}",
    ),
    (
        re.compile(r"^ReqNodeNotAvail, ?Reserved for maintenance"),
        "ReqNodeNotAvail",
        "the nodes are reserved for maintenance before it could end; a shorter time limit may fit before the maintenance",
    ),
    (
        re.compile(r"^ReqNodeNotAvail, ?May be reserved for other job"),
        "ReqNodeNotAvail",
        "nodes that it needs may be reserved for another job",
    ),
    (
        re.compile(r"^Nodes required for job are DOWN"),
        "Resources",
        "the nodes that it needs are down, drained, or reserved for jobs of queues with a higher priority",
    ),
    (
        re.compile(r"^launch failed requeued held"),
        "JobHeldUser",
        "it is held because it could not start on its node; check the node and the log, then release it",
    ),
    (re.compile(r"^job requeued in held state"), "JobHeldUser", "it was requeued and held; release it to let it start"),
    (
        re.compile(r"^job requeued in special exit state"),
        "JobHeldUser",
        "it was requeued and held in the special exit state; release it to let it start",
    ),
    (
        re.compile(r"^Job's account not (?:known|permitted).*\((?P<rule>.*)\)$"),
        "AccountNotAllowed",
        "its account may not use this queue ({rule}); use another account or queue",
    ),
    (
        re.compile(r"^Job's QOS not (?:known|permitted).*\((?P<rule>.*)\)$"),
        "QOSNotAllowed",
        "its QoS may not be used in this queue ({rule}); use another QoS or queue",
    ),
    (
        re.compile(r"^Reservation (?P<name>\S+) was deleted"),
        "ReservationDeleted",
        "it is held because its reservation {name} was deleted; submit it again without the reservation",
    ),
    (
        re.compile(r"^Job is at or exceeds (?P<whose>QOS|association)"),
        "TimeLimit",
        "it was ended because the time or resources of its {whose} were used up",
    ),
    (
        re.compile(r"^Burst buffer stage-in timeout"),
        "JobHeldAdmin",
        "it is held because staging its files into the burst buffer timed out; ask your cluster administrator",
    ),
    (re.compile(r"^burst_buffer/\S+: (?P<said>.+)"), "BurstBufferOperation", "the burst buffer failed: {said}"),
    (
        re.compile(r"^(?:Prolog/Epilog failure|Prolog failure)"),
        "JobLaunchFailure",
        "its nodes could not be prepared (the prolog failed); ask your cluster administrator",
    ),
)
"""Texts that the controller writes instead of a code (src/slurmctld/job_scheduler.c, node_scheduler.c, job_mgr.c), the code, and our message."""

_RESOURCE_LABELS = {
    "BB": "burst buffer",
    "Billing": "billing units",
    "CPU": "CPUs",
    "Cpu": "CPUs",
    "Energy": "energy",
    "GRES": "GPUs and other generic resources",
    "License": "licenses",
    "Mem": "memory",
    "Memory": "memory",
    "Node": "nodes",
    "Unknown": "a resource that Slurm does not name",
}

_RESOURCE_PATTERN = "|".join(_RESOURCE_LABELS)

_LIMIT = re.compile(
    rf"^(?:(?P<of>Assoc|QOS))?(?P<what>Grp|Max|Min)(?P<thing>{_RESOURCE_PATTERN})"
    r"(?P<time>RunMinutes|RunMins|Minutes)?(?:Per(?P<each>Job|Node|User|Account))?(?:Limit|NotSatisfied)?$"
)

_COUNT = re.compile(
    r"^(?:(?P<of>Assoc|QOS))?(?P<what>Grp|Max)(?P<thing>Jobs|SubmitJobs?|Wall|WallDuration)"
    r"(?:Per(?P<each>Job|User|Account))?(?:Limit)?$"
)

_SCOPE_LABELS = {"Job": "a job", "Node": "a node of a job", "User": "a user", "Account": "an account"}


def reason_message(reason: str) -> str | None:
    """A sentence for squeue's reason, or None when there is nothing to report. An unknown reason is shown unchanged."""
    text = reason.strip()
    if text in {"None", "", "(null)"}:
        return None
    for pattern, _, described in _DESCRIBED:
        match = pattern.match(_split_camel_case(text))
        if match:
            return described.format(**match.groupdict())
    code = reason_code(text)
    message = _SINGLE.get(code) or _limit_message(code) or _count_message(code)
    if message is None:
        return f"Slurm reports: {text} (an unknown reason)"
    detail = text.removeprefix(code).lstrip(" ,:")
    return f"{message} ({detail})" if detail else message


def reason_code(reason: str) -> str:
    """Slurm's code in squeue's reason, without the details that the controller appends, such as node names."""
    text = reason.strip()
    for pattern, code, _ in _DESCRIBED:
        if pattern.match(_split_camel_case(text)):
            return code
    first = re.match(r"[A-Za-z]+(?=$|[\s,:])", text)
    is_known = first is not None and (first[0] in _SINGLE or _LIMIT.match(first[0]) or _COUNT.match(first[0]))
    return first[0] if first is not None and is_known else text


def is_queued(reason: str) -> bool:
    """Whether a job with this reason waits for nodes and its turn, and not for a release, a time, another job or a limit of its own."""
    return reason_code(reason) in _QUEUED_REASONS


def needs_capacity(reason: str) -> bool:
    """Whether the job may start in another queue or with fewer resources.

    This excludes jobs that wait for a release, a time or another job, and limits of the account or
    QoS, which ``sbatch --test-only`` ignores (observed on 22.05).
    """
    code = reason_code(reason)
    return not (code in _NOT_CAPACITY_REASONS or _LIMIT.match(code) or _COUNT.match(code))


def _split_camel_case(text: str) -> str:
    """Some versions of squeue write underscores instead of blanks."""
    return text if " " in text else text.replace("_", " ")


def _limit_message(code: str) -> str | None:
    """The sentence for a resource limit, or None for other codes."""
    match = _LIMIT.match(code)
    if match is None:
        return None
    resource, owner = _RESOURCE_LABELS[match["thing"]], _owner(match["of"])
    scope = _SCOPE_LABELS.get(match["each"] or "")
    if match["what"] == "Min":
        return f"it requests less than its QoS requires ({resource}); request more, or use another QoS"
    if match["what"] == "Grp":
        if match["time"] == "Minutes":
            return f"{owner} has used up its minutes of {resource}, including past jobs; ask your cluster administrator"
        if match["time"]:
            return (
                f"the running jobs of {owner} use the limit of minutes of {resource}; wait, or set a shorter time limit"
            )
        return f"the running jobs of {owner} use the limit of {resource}; wait, or request less"
    if match["each"] in {"User", "Account"}:
        quantity = f"minutes of {resource}" if match["time"] else resource
        return f"{_possessive(match['each'])} running jobs use the limit of {owner} for {scope} ({quantity}); wait, or request less"
    quantity = f"minutes of {resource}, amount times time limit" if match["time"] else resource
    return f"it requests more than {owner} allows {scope or 'a job'} ({quantity}); request less"


def _count_message(code: str) -> str | None:
    """The sentence for a limit on job counts or time, or None for other codes."""
    match = _COUNT.match(code)
    if match is None:
        return None
    owner, resource = _owner(match["of"]), match["thing"]
    if resource.startswith("Wall"):
        if match["what"] == "Grp":
            return f"{owner} has used up its time (all jobs together); wait, or ask your cluster administrator"
        return f"its time limit is above the limit of {owner}; set a shorter one"
    waiting = " or wait" if resource.startswith("Submit") else ""
    if match["what"] == "Grp":
        return f"{owner} has reached its limit of jobs that run{waiting} at once; wait until some end"
    possessive = "your account's" if match["each"] == "Account" else "your"
    return f"{possessive} jobs that run{waiting} have reached the limit of {owner}; wait until some end"


def _owner(scope: str | None) -> str:
    """The limit's owner; codes that name none are the QoS's (MaxTRESPerAccount)."""
    return "its account" if scope == "Assoc" else "its QoS"


def _possessive(scope: str) -> str:
    return "its account's" if scope == "Account" else "its user's"


# --------------------------------------------------------------------------------------------------
# A job's state and reason as messages, the same for runs and for the table of all users' jobs.

RUNNING = {
    "CONFIGURING": "its nodes are being prepared",
    "COMPLETING": "its nodes are cleaning up",
    "STAGE_OUT": "its files are being staged out",
    "STOPPED": "it is suspended and keeps its nodes",
}
"""Messages for states, other than running, in which a job has nodes."""

_NO_REASON = frozenset({"None", "", "(null)"})

# Thousands of jobs wait for the same reason.
_cached_code = lru_cache(maxsize=4096)(reason_code)
cached_message = lru_cache(maxsize=4096)(reason_message)
"""`reason_message`, cached."""


def find_code(job: SlurmJob) -> str | None:
    """Why a job waits, as a code: one of the contract's if it has one, else Slurm's own."""
    if job.state == "SUSPENDED":
        return "suspended"
    if job.is_held:
        return "held"
    return None if job.reason in _NO_REASON else _cached_code(job.reason)
