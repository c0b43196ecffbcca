"""Why a job waits, in words: Slurm's reason codes of all supported versions, 22.05 to 25.11.

The codes are those of job_reason_string (src/common/slurm_protocol_defs.c) in 22.05 and of job_state_reason.c from 23.02 on; what they mean is in
Slurm's job_reason_codes.html. Limits of accounts and QoS make up two thirds of them and are put together from their parts. Where a job has a
description of its own, squeue shows that in the code's place.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hyperpod_jlab.engines.slurm.jobs import SlurmJob

_SINGLE: dict[str, str] = {
    "Priority": "jobs with a higher priority are before it",
    "Resources": "it waits for nodes, GPUs, CPUs or memory that others use now",
    "Dependency": "it waits for another job to end",
    "DependencyNeverSatisfied": "a job that it depends on did not end as it should, so it never starts; cancel it and submit it again",
    "BeginTime": "its begin time has not come yet (a requeued job waits a short time too)",
    "JobHeldUser": "its user holds it; release it to let it start",
    "JobHeldAdmin": "an administrator, or the scheduler, holds it; only an administrator can release it",
    "JobHoldMaxRequeue": "it is held, for it was started again too often; look at its log, then release it",
    "JobArrayTaskLimit": "as many tasks of its array run as its throttle lets run at once",
    "Licenses": "it waits for licenses that others use now",
    "Reservation": "it waits for its reservation to begin",
    "ReservationDeleted": "it is held, for its reservation was deleted; submit it again without the reservation",
    "ReservationInvalid": "its reservation does not fit it; submit it again with another reservation, or with none",
    "ReqNodeNotAvail": "a node that it needs is down, drained, reserved or in use",
    "NodeDown": "a node that it needs is down; ask the cluster's admin, or name other nodes",
    "PartitionDown": "its queue is down: jobs wait there, none starts",
    "PartitionInactive": "its queue is switched off; choose another one",
    "PartitionNodeLimit": "it asks for more nodes (or fewer) than its queue allows or has in working order; ask for another number, or choose another queue",
    "PartitionTimeLimit": "its time limit is above that of its queue; make it shorter, or choose another queue",
    "PartitionConfig": "its queue's rules don't allow it as it is; ask for less, or choose another queue",
    "MaxMemPerLimit": "it asks for more memory on a node or CPU than its queue allows; ask for less",
    "BadConstraints": "no node can ever give what it asks for; submit it again asking for less, or for other nodes",
    "Constraints": "the nodes that have the features it asks for are not there now",
    "Prolog": "its nodes are being made ready (the prolog runs)",
    "Cleaning": "it starts again as soon as its nodes are cleared of its last attempt",
    "FrontEndDown": "no front-end node of the cluster is up",
    "SchedDefer": "it asked to start at once, which this cluster does not do; submit it without --immediate",
    "DeadLine": "it cannot end before its deadline any more",
    "FedJobLock": "it waits until the clusters of the federation agree who starts it",
    "BurstBufferResources": "it waits for room in the burst buffer",
    "BurstBufferStageIn": "its files are being brought into the burst buffer",
    "BurstBufferOperation": "the burst buffer could not do what it asked for; see the job's messages, or ask the cluster's admin",
    "PowerNotAvail": "there is not enough electric power for it now",
    "PowerReserved": "the electric power that it needs is reserved for another job",
    "MaxPoweredUpNodes": "as many nodes are powered up as the cluster allows; it waits until some are given back",
    "MpiPortsBusy": "too few ports for MPI are free on its nodes; it is tried again",
    "NvidiaImexChannels": "all of NVIDIA's IMEX channels are in use; it waits for a free one",
    "InvalidAccount": "its account is not valid any more; submit it again with another account",
    "AccountNotAllowed": "its account may not use this queue; choose another account or queue",
    "InvalidQOS": "its QoS is not valid any more; submit it again with another QoS",
    "QOSNotAllowed": "its account or its queue does not allow its QoS; choose another QoS or queue",
    "QOSUsageThreshold": "its account has used too little or too much for the QoS (its usage threshold); choose another QoS",
    "AccountingPolicy": "a limit of its account or QoS keeps it; ask for less, or wait until other jobs have ended",
    "AssociationJobLimit": "as many jobs of its account and user run as they may",
    "AssociationResourceLimit": "its account and user have as much as they may; wait, or ask for less",
    "AssociationTimeLimit": "its account and user have used up their time; ask the cluster's admin",
    "QOSJobLimit": "as many jobs of its QoS run as may",
    "QOSResourceLimit": "the jobs of its QoS have as much as they may; wait, or ask for less",
    "QOSTimeLimit": "its QoS has used up its time; choose another QoS",
    "BlockMaxError": "the machine's blocks failed too often; ask the cluster's admin",
    "BlockFreeAction": "a block of the machine is being freed",
    "SystemFailure": "something failed: Slurm, a file system or the network; ask the cluster's admin",
    "JobLaunchFailure": "it could not be started on its node: its folder, user or program may be missing there",
    "NonZeroExitCode": "its program ended with an error",
    "RaisedSignal": "its program was ended by a signal",
    "TimeLimit": "it reached its time limit",
    "InactiveLimit": "it was ended, for it did nothing too long",
    "OutOfMemory": "it used more memory than it had asked for",
}  # fmt: skip
"""Codes that stand alone."""

_IN_LINE = frozenset(
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

_NOT_FOR_ROOM = frozenset(
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
        "the nodes are reserved for maintenance before it would have ended; a shorter time limit may fit before it",
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
        "it is held, for it could not be started on its node; look at the node and the log, then release it",
    ),
    (
        re.compile(r"^job requeued in held state"),
        "JobHeldUser",
        "it is held since it was requeued; release it to let it start",
    ),
    (
        re.compile(r"^job requeued in special exit state"),
        "JobHeldUser",
        "it is held since it was requeued in the special exit state; release it to let it start",
    ),
    (
        re.compile(r"^Job's account not (?:known|permitted).*\((?P<rule>.*)\)$"),
        "AccountNotAllowed",
        "its account may not use this queue ({rule}); choose another account or queue",
    ),
    (
        re.compile(r"^Job's QOS not (?:known|permitted).*\((?P<rule>.*)\)$"),
        "QOSNotAllowed",
        "its QoS may not be used in this queue ({rule}); choose another QoS or queue",
    ),
    (
        re.compile(r"^Reservation (?P<name>\S+) was deleted"),
        "ReservationDeleted",
        "it is held, for its reservation {name} was deleted; submit it again without the reservation",
    ),
    (
        re.compile(r"^Job is at or exceeds (?P<whose>QOS|association)"),
        "TimeLimit",
        "it was ended, for the time or resources of its {whose} were used up",
    ),
    (
        re.compile(r"^Burst buffer stage-in timeout"),
        "JobHeldAdmin",
        "it is held, for its files were not brought into the burst buffer in time; ask the cluster's admin",
    ),
    (
        re.compile(r"^burst_buffer/\S+: (?P<said>.+)"),
        "BurstBufferOperation",
        "the burst buffer could not do what it asked for: {said}",
    ),
    (
        re.compile(r"^(?:Prolog/Epilog failure|Prolog failure)"),
        "JobLaunchFailure",
        "its nodes could not be made ready (the prolog failed); ask the cluster's admin",
    ),
)
"""Texts that the controller writes in a code's place (src/slurmctld/job_scheduler.c, node_scheduler.c, job_mgr.c), the code and our words."""

_THINGS = {
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

_THING = "|".join(_THINGS)

_LIMIT = re.compile(
    rf"^(?:(?P<of>Assoc|QOS))?(?P<what>Grp|Max|Min)(?P<thing>{_THING})"
    r"(?P<time>RunMinutes|RunMins|Minutes)?(?:Per(?P<each>Job|Node|User|Account))?(?:Limit|NotSatisfied)?$"
)

_COUNT = re.compile(
    r"^(?:(?P<of>Assoc|QOS))?(?P<what>Grp|Max)(?P<thing>Jobs|SubmitJobs?|Wall|WallDuration)"
    r"(?:Per(?P<each>Job|User|Account))?(?:Limit)?$"
)

_EACH = {"Job": "a job", "Node": "a node of a job", "User": "a user", "Account": "an account"}


def reason_words(reason: str) -> str | None:
    """A sentence for squeue's reason, or None when there is nothing to say. An unknown one is shown as it is."""
    text = reason.strip()
    if text in {"None", "", "(null)"}:
        return None
    for pattern, _, described in _DESCRIBED:
        found = pattern.match(_spaced(text))
        if found:
            return described.format(**found.groupdict())
    code = reason_code(text)
    words = _SINGLE.get(code) or _limit_words(code) or _count_words(code)
    if words is None:
        return f"Slurm says: {text} (a reason that is not known here)"
    rest = text.removeprefix(code).lstrip(" ,:")
    return f"{words} ({rest})" if rest else words


def reason_code(reason: str) -> str:
    """Slurm's code for squeue's reason: without what the controller added to it, such as the nodes' names."""
    text = reason.strip()
    for pattern, code, _ in _DESCRIBED:
        if pattern.match(_spaced(text)):
            return code
    first = re.match(r"[A-Za-z]+(?=$|[\s,:])", text)
    known = first is not None and (
        first[0] in _SINGLE or _LIMIT.match(first[0]) or _COUNT.match(first[0])
    )
    return first[0] if first is not None and known else text


def is_in_line(reason: str) -> bool:
    """Whether a job with squeue's reason waits for nodes and its turn, and not for a release, a time, another job or a limit of its own."""
    return reason_code(reason) in _IN_LINE


def wants_room(reason: str) -> bool:
    """Whether it may start elsewhere or with less.

    Not when it waits for a release, a time or another job; nor at a limit of its account or QoS, which ``sbatch --test-only`` does not look at (seen on 22.05).
    """
    code = reason_code(reason)
    return not (code in _NOT_FOR_ROOM or _LIMIT.match(code) or _COUNT.match(code))


def _spaced(text: str) -> str:
    """Some versions of squeue write underscores for blanks."""
    return text if " " in text else text.replace("_", " ")


def _limit_words(code: str) -> str | None:
    """The sentence for a limit of a resource, or None when the code is none."""
    found = _LIMIT.match(code)
    if found is None:
        return None
    thing, owner = _THINGS[found["thing"]], _owner(found["of"])
    each = _EACH.get(found["each"] or "")
    if found["what"] == "Min":
        return f"it asks for less than its QoS wants of each job ({thing}); ask for more, or choose another QoS"
    if found["what"] == "Grp":
        if found["time"] == "Minutes":
            return f"{owner} has used up its minutes of {thing}, past jobs counted; ask the cluster's admin"
        if found["time"]:
            return f"the running jobs of {owner} have all the minutes of {thing} that they may have at once; wait, or give it a shorter time limit"
        return f"the running jobs of {owner} have all the {thing} that they may have at once; wait, or ask for less"
    if found["each"] in {"User", "Account"}:
        what = f"minutes of {thing}" if found["time"] else thing
        return f"{_whose(found['each'])} running jobs have as much as {owner} allows {each} at once ({what}); wait, or ask for less"
    what = f"minutes of {thing}, amount times time limit" if found["time"] else thing
    return f"it asks for more than {owner} allows {each or 'a job'} ({what}); ask for less"


def _count_words(code: str) -> str | None:
    """The sentence for a limit of numbers of jobs or of time, or None when the code is none."""
    found = _COUNT.match(code)
    if found is None:
        return None
    owner, thing = _owner(found["of"]), found["thing"]
    if thing.startswith("Wall"):
        if found["what"] == "Grp":
            return f"{owner} has used up its time (all jobs together); wait, or ask the cluster's admin"
        return f"its time limit is above what {owner} allows a job; give it a shorter one"
    waiting = " or wait" if thing.startswith("Submit") else ""
    if found["what"] == "Grp":
        return f"as many jobs of {owner} run{waiting} as may at once; wait until some have ended"
    whose = "your account's" if found["each"] == "Account" else "your"
    return f"as many of {whose} jobs run{waiting} as {owner} allows at once; wait until some have ended"


def _owner(of: str | None) -> str:
    """Whose limit it is; the codes that name nobody are the QoS's (MaxTRESPerAccount)."""
    return "its account" if of == "Assoc" else "its QoS"


def _whose(each: str) -> str:
    return "its account's" if each == "Account" else "its user's"


# --------------------------------------------------------------------------------------------------
# A job's state and reason in words, the same for runs and for the table of everybody's jobs.

RUNNING = {
    "CONFIGURING": "its nodes are being made ready",
    "COMPLETING": "its nodes are being cleared",
    "STAGE_OUT": "its files are being staged out",
    "STOPPED": "it was stopped, and keeps its nodes",
}
"""What goes on in states in which a job has nodes, beside running."""

_NOTHING = frozenset({"None", "", "(null)"})

# Thousands of jobs wait for the same reason.
_code_of = lru_cache(maxsize=4096)(reason_code)
words_of = lru_cache(maxsize=4096)(reason_words)
"""`reason_words`, remembered."""


def code_of(job: SlurmJob) -> str | None:
    """Why a job waits, as a code: one of the contract's where it has one, else Slurm's own."""
    if job.state == "SUSPENDED":
        return "suspended"
    if job.held:
        return "held"
    return None if job.reason in _NOTHING else _code_of(job.reason)
