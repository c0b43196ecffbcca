"""What Slurm's commands complain about, as errors of ours: whether nobody answered, somebody may not, or something is wrong.

The texts are those of slurm_strerror (src/common/slurm_errno.c), the same from 22.05 to 25.11 unless several are listed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hyperpod_jlab.model.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.orchestrators.slurm.transports.protocol import Output


@dataclass(frozen=True)
class Complaint:
    """A text of Slurm's, in lower case, and what it means here."""

    text: str
    kind: type[HyperpodError]
    code: str
    hint: str | None


_SAID: tuple[Complaint, ...] = (
    # First, for below it stands that the connection to slurmdbd was refused.
    Complaint("persistinit msg", UnreachableError, "accounting_down", None),
    Complaint("problem talking to the database", UnreachableError, "accounting_down", None),
    Complaint(
        "munge",
        UnreachableError,
        "munge_down",
        "the service munge on this machine (or the login node) must run with the cluster's key",
    ),
    Complaint(
        "protocol authentication error",
        UnreachableError,
        "munge_down",
        "the keys or clocks of this machine and the controller differ: munge -n | unmunge",
    ),
    Complaint(
        "invalid authentication credential",
        UnreachableError,
        "munge_down",
        "the keys of this machine and the controller differ",
    ),
    Complaint("unable to contact slurm controller", UnreachableError, "controller_down", None),
    Complaint("unable to contact slurmctld", UnreachableError, "controller_down", None),
    Complaint("socket timed out", UnreachableError, "controller_slow", None),
    Complaint("zero bytes were transmitted", UnreachableError, "controller_down", None),
    Complaint("connection refused", UnreachableError, "controller_down", None),
    Complaint("connection timed out", UnreachableError, "controller_down", None),
    Complaint("unexpected message received", UnreachableError, "controller_down", None),
    Complaint("slurm backup controller in standby", UnreachableError, "controller_down", None),
    Complaint(
        "could not establish a configuration source", UnreachableError, "no_slurm_conf", None
    ),
    Complaint("unable to process configuration", UnreachableError, "no_slurm_conf", None),
    Complaint("slurm accounting storage is disabled", UnreachableError, "no_accounting", None),
    Complaint("access/permission denied", DeniedError, "denied", None),
    Complaint("invalid user id", DeniedError, "denied", "it is somebody else's job"),
    Complaint("user id is missing", DeniedError, "denied", "your user is not known to the cluster"),
    Complaint("invalid job id", NotFoundError, "no_such_job", None),
    Complaint("job has already finished", ConflictError, "wrong_state", None),
    Complaint("already completing or completed", ConflictError, "wrong_state", None),
    Complaint("job is no longer pending execution", ConflictError, "wrong_state", None),
    Complaint("job is pending execution", ConflictError, "wrong_state", None),
    Complaint(
        "requested operation is presently disabled",
        ConflictError,
        "not_requeueable",
        "it was sent with --no-requeue, or the cluster allows none; send it again instead",
    ),
    Complaint(
        "invalid account or account/partition",
        RefusedError,
        "no_association",
        "name an account that you belong to with --account (sacctmgr show assoc user=$USER), or ask the cluster's admin for one",
    ),
    Complaint(
        "invalid qos", RefusedError, "invalid_qos", "see: sacctmgr show assoc user=$USER format=qos"
    ),
    Complaint("invalid partition", RefusedError, "unknown_queue", "see: hpj queues"),
    Complaint("requested time limit is invalid", RefusedError, "time_limit", "see: hpj queues"),
    Complaint("job dependency problem", RefusedError, "dependency", None),
    Complaint(
        "job violates accounting/qos policy",
        RefusedError,
        "qos_limit",
        "ask for less, wait until other jobs of yours have ended, or name another --qos",
    ),
    Complaint(
        "requested node configuration is not available",
        RefusedError,
        "no_such_nodes",
        "ask for fewer GPUs, CPUs or memory on each node; see: hpj nodes",
    ),
    Complaint("more processors requested than permitted", RefusedError, "too_many_cpus", None),
    Complaint(
        "node count specification invalid", RefusedError, "too_many_nodes", "see: hpj queues"
    ),
    Complaint("invalid node state", ConflictError, "wrong_state", "see: hpj nodes"),
    Complaint("invalid node name", RefusedError, "unknown_node", "see: hpj nodes"),
    Complaint("invalid preferred feature", RefusedError, "invalid_feature", None),
    Complaint("invalid license", RefusedError, "invalid_license", "see: scontrol show licenses"),
    Complaint(
        "reservation is invalid",
        RefusedError,
        "invalid_reservation",
        "see: scontrol show reservations",
    ),
    Complaint("access denied to requested reservation", DeniedError, "reservation_denied", None),
    Complaint("invalid time-min", RefusedError, "invalid_time_min", None),
    Complaint(
        "group not permitted",
        DeniedError,
        "queue_denied",
        "name another queue with --queue; see: hpj queues",
    ),
    Complaint(
        "required partition not available",
        RefusedError,
        "queue_closed",
        "name another queue with --queue; see: hpj queues",
    ),
    Complaint(
        "invalid job array specification",
        RefusedError,
        "array_too_large",
        "the cluster's largest index is one below MaxArraySize: scontrol show config",
    ),
    Complaint("invalid generic resource", RefusedError, "invalid_gres", "see: hpj nodes"),
    Complaint("invalid feature specification", RefusedError, "invalid_feature", None),
)

_NOISE = re.compile(
    r"^(sbatch|squeue|scancel|scontrol|sinfo|sacct|sacctmgr|slurm_\w+): (error|fatal): ",
    re.MULTILINE,
)


def complaint(program: str, output: Output) -> HyperpodError:
    """The error for a command that failed."""
    text = _NOISE.sub("", output.err or output.out).strip()
    lower = text.lower()
    shown = " ".join(text.split())[:400] or f"it ended with exit code {output.code}"
    for known in _SAID:
        if known.text in lower:
            # Of several lines the one that says it; the others are what Slurm tried meanwhile.
            said = next((line for line in text.splitlines() if known.text in line.lower()), shown)
            return known.kind(
                f"Slurm: {' '.join(said.split())[:400]}",
                code=known.code,
                hint=known.hint or _HINTS.get(known.code),
                detail={"command": program, "exit_code": output.code},
            )
    return RefusedError(f"Slurm: {shown}", detail={"command": program, "exit_code": output.code})


_HINTS = {
    "accounting_down": "the accounting (slurmdbd) does not answer; jobs run all the same",
    "controller_down": "try again in a while; see: scontrol ping",
    "controller_slow": "the controller is busy; try again in a while",
    "no_slurm_conf": "name Slurm's configuration with slurm_conf, or set SLURM_CONF",
}
