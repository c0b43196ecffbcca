"""Reboot or replace instances of a HyperPod cluster, in batches of SageMaker's size, with one result each.

Limits, codes and which nodes can be replaced are from botocore's model of ``BatchRebootClusterNodes`` and ``BatchReplaceClusterNodes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import ConflictError, HyperpodError, NotFoundError, RefusedError, UnreachableError
from hyperpod_jlab.core.node_actions import RepairKind

BATCH_SIZE = 25
"""Maximum instances per request."""

_OPERATIONS: dict[RepairKind, str] = {"reboot": "BatchRebootClusterNodes", "replace": "BatchReplaceClusterNodes"}

_ERROR_TYPES: dict[str, tuple[type[HyperpodError], str, str | None]] = {
    "InstanceIdNotFound": (NotFoundError, "no_such_node", "list nodes with: hpj nodes NAME"),
    "InvalidInstanceStatus": (ConflictError, "wrong_state", "wait until AWS has finished its operation on the node"),
    "InstanceIdInUse": (ConflictError, "node_busy", "another operation on it is in progress; wait until it ends"),
    "InternalServerError": (UnreachableError, "aws_failed", "try again"),
}
"""AWS' error codes for one instance, as our errors with a hint."""


async def check_repair(aws: Aws, action: RepairKind) -> None:
    """Check that this process can send such a request; does not call AWS.

    Raises:
        UnsupportedError: boto3 is not installed, or too old.
        InvalidInputError: The region is unknown, or the AWS configuration is invalid.
    """
    await aws.check("sagemaker", _OPERATIONS[action])


async def repair_instances(
    aws: Aws, cluster: str, action: RepairKind, instances: Sequence[str]
) -> dict[str, HyperpodError | None]:
    """Reboot or replace instances.

    Args:
        aws: AWS in the cluster's region.
        cluster: The cluster's name or ARN.
        action: The action.
        instances: Their ids, without duplicates.

    Returns:
        By instance id: None if AWS accepted it, else the error. Once AWS refuses a whole batch, or does not answer, later batches are not sent and get
        an error.
    """
    results: dict[str, HyperpodError | None] = {}
    stop_error: HyperpodError | None = None
    for begin in range(0, len(instances), BATCH_SIZE):
        batch = list(instances[begin : begin + BATCH_SIZE])
        if stop_error is not None:
            results.update({instance: _not_sent_error(stop_error) for instance in batch})
            continue
        try:
            response = await aws.call("sagemaker", _OPERATIONS[action], ClusterName=cluster, NodeIds=batch)
        except HyperpodError as error:
            stop_error = error
            results.update({instance: _batch_error(error) for instance in batch})
        else:
            results.update(_parse_results(response, batch))
    return results


def _parse_results(response: Mapping[str, Any], batch: Sequence[str]) -> dict[str, HyperpodError | None]:
    accepted = set(response.get("Successful") or ())
    failures = {item.get("NodeId"): item for item in response.get("Failed") or ()}
    return {
        name: _parse_failure(failures[name])
        if name in failures
        else (None if name in accepted else _no_answer_error(name))
        for name in batch
    }


def _parse_failure(failure: Mapping[str, Any]) -> HyperpodError:
    code, message = str(failure.get("ErrorCode", "")), str(failure.get("Message") or "")
    kind, own_code, hint = _ERROR_TYPES.get(code, (RefusedError, "refused", None))
    reason = message or code or "AWS gives no reason"
    return kind(reason, code=own_code, hint=hint, detail={"aws_code": code, "aws_message": message})


def _no_answer_error(name: str) -> HyperpodError:
    return UnreachableError(
        f"AWS accepted the request, but its answer does not mention {name}",
        code="aws_failed",
        hint="check its state: hpj nodes NAME",
    )


def _batch_error(error: HyperpodError) -> HyperpodError:
    """The error of a refused batch for one instance; without an answer, the outcome is unknown."""
    if error.code != "aws_unreachable":
        return error
    return UnreachableError(
        f"the result is unknown: {error.message}",
        code=error.code,
        hint="check its state before you try again: hpj nodes NAME",
        detail=error.detail,
    )


def _not_sent_error(cause: HyperpodError) -> HyperpodError:
    return ConflictError(
        f"not submitted because all nodes before it failed: {cause.message}",
        code="not_sent",
        hint=cause.hint,
        detail={"cause": cause.code},
    )
