"""AWS' complaints as errors of ours, each with the action that was refused and what to do about it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    InternalError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnreachableError,
    UnsupportedError,
    mask_credentials,
)

SINCE = {
    "sagemaker:BatchAddClusterNodes": "1.40.3",
    "sagemaker:BatchDeleteClusterNodes": "1.35.53",
    "sagemaker:BatchRebootClusterNodes": "1.41.1",
    "sagemaker:BatchReplaceClusterNodes": "1.41.1",
    "sagemaker:DescribeClusterEvent": "1.40.3",
    "sagemaker:ListClusterEvents": "1.40.3",
}
"""Versions of boto3 that are known to have an operation (botocore's models of those versions); older ones may have it too."""

ENDPOINTS = {
    "sagemaker": "sagemaker.api",
    "cloudwatch": "monitoring",
    "aps": "aps-workspaces",
}
"""Names of VPC endpoints where they are others than the service's."""

_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
_THROTTLED = frozenset(
    {
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException"})
_UNKNOWN_KEY = frozenset(
    {"InvalidClientTokenId", "MissingAuthenticationToken", "UnrecognizedClientException"}
)
_SIGNATURE = frozenset(
    {
        "InvalidSignatureException",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
    }
)
_PERFORM = re.compile(r"not authorized to perform: ([a-z0-9-]+:[A-Za-z0-9]+)")
_SKEWED = re.compile(r"signature (expired|not yet current)|too skewed|has expired", re.IGNORECASE)
_ON = re.compile(r"on resource: (arn:\S+|\*)")
"""What a right is missing on, as IAM says it."""
_ABSENT = frozenset(
    {
        "FileSystemNotFound",
        "InvalidDocument",
        "InvalidGroup.NotFound",
        "InvalidNetworkInterfaceID.NotFound",
        "NoSuchBucket",
        "NoSuchEntity",
        "ResourceNotFound",
        "ResourceNotFoundException",
    }
)
_IN_USE = frozenset({"ConflictException", "ResourceInUse"})
_INVALID = frozenset(
    {
        "BadRequest",
        "InvalidParameterException",
        "InvalidParameterValue",
        "ValidationError",
        "ValidationException",
    }
)


_IAM_NAMES = {
    "s3:ListObjectsV2": "s3:ListBucket",
    "service-quotas:ListServiceQuotas": "servicequotas:ListServiceQuotas",
}
"""What IAM calls operations by another name than boto3 (service authorization reference)."""


@dataclass(frozen=True)
class AwsCall:
    """A call of AWS: the service by boto3's name, the operation by the API's, and the region."""

    service: str
    operation: str
    region: str

    @property
    def action(self) -> str:
        """What IAM calls it."""
        name = f"{self.service}:{self.operation}"
        return _IAM_NAMES.get(name, name)

    @property
    def detail(self) -> dict[str, Any]:
        """What programs are told of it."""
        return {"action": self.action, "region": self.region}


def boto3_missing(otherwise: str | None = None) -> HyperpodError:
    """The package boto3 is not installed.

    Args:
        otherwise: What can be done instead of installing it.
    """
    hint = "pip install 'hyperpod-jlab[aws]'"
    return UnsupportedError(
        "the package boto3 is needed to call AWS, but is not installed",
        code="boto3_missing",
        hint=f"{hint}, {otherwise}" if otherwise else hint,
    )


def boto3_too_old(call: AwsCall, version: str) -> HyperpodError:
    """The installed boto3 does not know an operation."""
    since = SINCE.get(call.action)
    needs = f"it needs boto3 >= {since}" if since else "it needs a newer boto3"
    wanted = f"boto3>={since}" if since else "boto3"
    return UnsupportedError(
        f"boto3 {version} does not know {call.action}: {needs}",
        code="boto3_too_old",
        hint=f"pip install --upgrade '{wanted}'",
        detail={**call.detail, "boto3": version, "needs": since},
    )


def no_credentials(problem: str | None = None) -> HyperpodError:
    """Nobody has credentials, or what has them fails."""
    return DeniedError(
        f"no AWS credentials found: {problem}" if problem else "no AWS credentials found",
        code="no_aws_credentials",
        hint="in Studio, the role of the space provides them; elsewhere, run aws configure or aws sso login",
    )


def no_region() -> HyperpodError:
    """Nobody says which region."""
    return InvalidInputError(
        "no AWS region is set",
        code="no_aws_region",
        hint="set AWS_REGION",
        detail={"field": "region"},
    )


def translate(error: Exception, call: AwsCall) -> HyperpodError:
    """What boto3 raised as an error of ours."""
    from botocore import exceptions as aws
    from botocore.parsers import ResponseParserError

    if isinstance(error, aws.ClientError):
        return _refused(error.response, call)
    if isinstance(error, aws.ParamValidationError):
        return _invalid(str(error), call)
    told = _of_configuration(error, call) or _of_credentials(error)
    if told is not None:
        return told
    # A KeyError is what botocore makes of XML that is no answer of the service.
    if isinstance(error, aws.BotoCoreError | ResponseParserError | KeyError):
        return _no_answer(error, call)
    return InternalError(
        f"{call.action}: {type(error).__name__}: {mask_credentials(error)}", detail=call.detail
    )


def _of_configuration(error: Exception, call: AwsCall) -> HyperpodError | None:
    from botocore import exceptions as aws

    if isinstance(error, aws.NoRegionError):
        return no_region()
    if isinstance(error, aws.InvalidRegionError):
        return InvalidInputError(
            f"'{call.region}' is not an AWS region",
            code="no_aws_region",
            hint="example: us-west-2",
            detail={"field": "region"},
        )
    # A ValueError is how botocore calls an endpoint's address that is none.
    wrong = aws.ConfigParseError | aws.ConfigNotFound | aws.ProfileNotFound | ValueError
    if isinstance(error, wrong):
        return InvalidInputError(
            f"the AWS configuration is invalid: {mask_credentials(error)}",
            code="invalid_aws_config",
            hint="check ~/.aws/config, AWS_PROFILE and AWS_ENDPOINT_URL",
            detail=call.detail,
        )
    return None


def _of_credentials(error: Exception) -> HyperpodError | None:
    from botocore import exceptions as aws

    if isinstance(error, aws.NoCredentialsError):
        return no_credentials()
    failed = (
        aws.PartialCredentialsError
        | aws.CredentialRetrievalError
        | aws.TokenRetrievalError
        | aws.SSOError
    )
    return no_credentials(mask_credentials(error)) if isinstance(error, failed) else None


def _no_answer(error: Exception, call: AwsCall) -> HyperpodError:
    endpoint = ENDPOINTS.get(call.service, call.service)
    return UnreachableError(
        f"{call.service} did not answer in {call.region}: {mask_credentials(error)}",
        code="aws_unreachable",
        hint=f"check that {call.region} is the right region; a VPC without internet access needs an interface endpoint for {endpoint}",
        detail={**call.detail, "error": type(error).__name__},
    )


def _refused(response: Mapping[str, Any], call: AwsCall) -> HyperpodError:
    told = response.get("Error", {})
    code, message = str(told.get("Code", "")), str(told.get("Message", ""))
    detail = {**call.detail, "aws_code": code, "aws_message": message}
    if retries := response.get("ResponseMetadata", {}).get("RetryAttempts"):
        detail["retries"] = retries
    if code in _DENIED:
        what = _ON.search(message)
        on = f" on {what[1]}" if what and what[1] != "*" else ""
        named = _PERFORM.search(message)
        # One call may need several rights: to make a cluster, that its role may be passed on.
        action = named[1] if named else call.action
        return DeniedError(
            f"you do not have the permission {action}",
            code="missing_right",
            hint=f"ask your AWS administrator to allow {action}{on} for your role",
            detail={**detail, "right": {"action": action}},
        )
    if code in _EXPIRED:
        return DeniedError(
            "the AWS credentials have expired",
            code="expired_aws_credentials",
            hint="log in again; in Studio they renew automatically, so restart the space",
            detail=detail,
        )
    if code in _UNKNOWN_KEY:
        return DeniedError(
            "AWS does not recognize these credentials",
            code="invalid_aws_credentials",
            hint=f"log in again, and check that your account has enabled the region {call.region}",
            detail=detail,
        )
    if code in _SIGNATURE:
        return _signature(message, response, detail)
    return _failed(code, message, call, detail)


def _failed(code: str, message: str, call: AwsCall, detail: dict[str, Any]) -> HyperpodError:
    if code in _ABSENT:
        return NotFoundError(message or f"{call.action}: not found", detail=detail)
    if code in _INVALID:
        return _invalid(message, call)
    if code in _THROTTLED:
        return UnreachableError(
            f"AWS throttles {call.action} in this account and region",
            code="aws_throttled",
            hint="wait a minute; several retries failed",
            detail=detail,
        )
    if code in _IN_USE:
        return ConflictError(
            message or f"{call.action}: another operation is in progress", detail=detail
        )
    if code == "ResourceLimitExceeded":
        return RefusedError(
            message or f"{call.action}: an account limit is reached",
            code="aws_limit",
            hint="request an increase in the Service Quotas console",
            detail=detail,
        )
    words = f"{code}: {message}" if message else code or "no reason"
    return UnreachableError(
        f"{call.action} failed at AWS: {words}",
        code="aws_failed",
        hint="try again; if it still fails, see the AWS Health Dashboard",
        detail=detail,
    )


def _invalid(message: str, call: AwsCall) -> HyperpodError:
    return InvalidInputError(
        f"AWS does not accept the input of {call.action}: {message}",
        code="aws_invalid_input",
        detail=call.detail,
    )


def _signature(message: str, response: Mapping[str, Any], detail: dict[str, Any]) -> HyperpodError:
    if not _SKEWED.search(message):
        return DeniedError(
            "AWS does not accept the signature: the secret key does not belong to the access key",
            code="invalid_aws_credentials",
            hint="log in again",
            detail=detail,
        )
    behind = _behind(response)
    words = "is wrong"
    if behind is not None:
        words = f"is {abs(behind):.0f} s {'behind' if behind > 0 else 'ahead of'} AWS"
    return DeniedError(
        f"the clock of this machine {words}, so AWS does not accept its signatures",
        code="clock_skew",
        hint="set the clock (NTP)",
        detail={**detail, "behind_s": behind},
    )


def _behind(response: Mapping[str, Any]) -> float | None:
    """Seconds that this machine's clock is behind the answer's, by the answer's date."""
    headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        theirs = parsedate_to_datetime(str(headers.get("date", "")))
    except ValueError:
        return None
    if theirs.tzinfo is None:
        return None
    return round((theirs - datetime.now(UTC)).total_seconds())


# --------------------------------------------------------------------------------------------------
# AWS' answers as they came, where botocore takes too little or too much for one.
#
# It drops what it does not know, and SageMaker's images have a boto3 that is a year older than the service: so much of a cluster would
# be missing (that Slurm schedules there, the nodes' names, which updates are due). And it takes the page of a network that wants a
# login first for an answer without anything in it: an account without clusters.

_JSON = "application/x-amz-json"


def check_kind(http_response: Any, model: Any, **_: Any) -> None:
    """Refuse what no AWS service answers: botocore's event ``after-call``.

    Args:
        http_response: The answer as it came.
        model: The operation in botocore's model.

    Raises:
        ResponseParserError: It is good by its status, but of another kind than the service's protocol has.
    """
    kind = _kind(http_response)
    service = model.service_model
    # Of a service with several protocols a newer botocore chooses one; an older one knows only the first.
    spoken = getattr(service, "resolved_protocol", service.metadata.get("protocol"))
    if spoken == "json" and http_response.status_code == 200 and not kind.startswith(_JSON):
        from botocore.parsers import ResponseParserError

        raise ResponseParserError(
            f"a server other than AWS answered, with {kind or 'no content type'}"
        )


def keep_newer(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
    """Put back what was dropped: botocore's event ``after-call``. Values come as they are in JSON, so a time is a number.

    Args:
        http_response: The answer as it came.
        parsed: The answer as botocore knows it; it is changed.
    """
    if http_response.status_code == 200 and _kind(http_response).startswith(_JSON):
        _join(parsed, json.loads(http_response.content))


def _kind(http_response: Any) -> str:
    return str(http_response.headers.get("Content-Type", ""))


def _join(known: Any, told: Any) -> None:
    if isinstance(known, dict) and isinstance(told, dict):
        for name, value in told.items():
            if name in known:
                _join(known[name], value)
            elif value is not None:
                known[name] = value
    elif isinstance(known, list) and isinstance(told, list) and len(known) == len(told):
        for one, other in zip(known, told, strict=True):
            _join(one, other)
