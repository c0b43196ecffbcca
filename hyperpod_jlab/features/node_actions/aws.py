"""Instances of a HyperPod cluster are rebooted or replaced, in batches as SageMaker takes them, with one result for each.

Limits, codes and which nodes can be replaced are from botocore's model of `BatchRebootClusterNodes` and `BatchReplaceClusterNodes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import (
    ConflictError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.core.node_actions import RepairKind

BATCH = 25
"""The most instances that one call takes."""

_OPERATIONS: dict[RepairKind, str] = {
    "reboot": "BatchRebootClusterNodes",
    "replace": "BatchReplaceClusterNodes",
}

_KINDS: dict[str, tuple[type[HyperpodError], str, str | None]] = {
    "InstanceIdNotFound": (NotFoundError, "no_such_node", "see: hpj nodes NAME"),
    "InvalidInstanceStatus": (
        ConflictError,
        "wrong_state",
        "wait until AWS has finished its operation on the node",
    ),
    "InstanceIdInUse": (
        ConflictError,
        "node_busy",
        "another operation on it is in progress; wait until it ends",
    ),
    "InternalServerError": (UnreachableError, "aws_failed", "try again"),
}
"""AWS' codes for one instance, as errors of ours with what to do."""


async def check_repair(aws: Aws, action: RepairKind) -> None:
    """Whether AWS can be told to do it from here; it is not asked.

    Raises:
        UnsupportedError: boto3 is not installed, or too old.
        InvalidInputError: No region is known, or the AWS configuration is wrong.
    """
    await aws.check("sagemaker", _OPERATIONS[action])


async def repair_instances(
    aws: Aws, cluster: str, action: RepairKind, instances: Sequence[str]
) -> dict[str, HyperpodError | None]:
    """Have instances rebooted or replaced.

    Args:
        aws: AWS in the cluster's region.
        cluster: The cluster's name or ARN.
        action: What to do.
        instances: Their ids, each once.

    Returns:
        By instance id: None where AWS took it, else why not. Once AWS refuses a whole batch, or does not answer, those after it are not sent, and say so.
    """
    found: dict[str, HyperpodError | None] = {}
    stopped: HyperpodError | None = None
    for begin in range(0, len(instances), BATCH):
        batch = list(instances[begin : begin + BATCH])
        if stopped is not None:
            found.update({one: _not_sent(stopped) for one in batch})
            continue
        try:
            answer = await aws.call(
                "sagemaker", _OPERATIONS[action], ClusterName=cluster, NodeIds=batch
            )
        except HyperpodError as error:
            stopped = error
            found.update({one: _whole_batch(error) for one in batch})
        else:
            found.update(_each(answer, batch))
    return found


def _each(answer: Mapping[str, Any], batch: Sequence[str]) -> dict[str, HyperpodError | None]:
    taken = set(answer.get("Successful") or ())
    failed = {one.get("NodeId"): one for one in answer.get("Failed") or ()}
    return {
        name: _refusal(failed[name])
        if name in failed
        else (None if name in taken else _no_word(name))
        for name in batch
    }


def _refusal(told: Mapping[str, Any]) -> HyperpodError:
    code, message = str(told.get("ErrorCode", "")), str(told.get("Message") or "")
    kind, ours, hint = _KINDS.get(code, (RefusedError, "refused", None))
    words = message or code or "AWS gives no reason"
    return kind(words, code=ours, hint=hint, detail={"aws_code": code, "aws_message": message})


def _no_word(name: str) -> HyperpodError:
    return UnreachableError(
        f"AWS accepted the request, but its answer does not mention {name}",
        code="aws_failed",
        hint="check its state: hpj nodes NAME",
    )


def _whole_batch(error: HyperpodError) -> HyperpodError:
    """What a refusal of all means for one; without an answer it may have been done."""
    if error.code != "aws_unreachable":
        return error
    return UnreachableError(
        f"the result is unknown: {error.message}",
        code=error.code,
        hint="check its state before you try again: hpj nodes NAME",
        detail=error.detail,
    )


def _not_sent(cause: HyperpodError) -> HyperpodError:
    return ConflictError(
        f"not submitted because all nodes before it failed: {cause.message}",
        code="not_sent",
        hint=cause.hint,
        detail={"cause": cause.code},
    )
