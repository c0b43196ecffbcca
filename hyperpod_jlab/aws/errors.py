"""Convert AWS' errors to ours, each with the denied action and a hint."""

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

BOTO3_SINCE = {
    "sagemaker:BatchAddClusterNodes": "1.40.3",
    "sagemaker:BatchDeleteClusterNodes": "1.35.53",
    "sagemaker:BatchRebootClusterNodes": "1.41.1",
    "sagemaker:BatchReplaceClusterNodes": "1.41.1",
    "sagemaker:CreatePresignedMlflowAppUrl": "1.42.1",
    "sagemaker:DescribeClusterEvent": "1.40.3",
    "sagemaker:ListClusterEvents": "1.40.3",
    "sagemaker:ListMlflowApps": "1.42.1",
}
"""Versions of boto3 that are known to have an operation (from botocore's models); older ones may have it too."""

ENDPOINTS = {
    "sagemaker": "sagemaker.api",
    "cloudwatch": "monitoring",
    "aps": "aps-workspaces",
    "pricing": "pricing.api",
}
"""Names of VPC endpoints that differ from the service's name."""

_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
_THROTTLED = frozenset({"RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException"})
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException"})
_UNKNOWN_KEY = frozenset({"InvalidClientTokenId", "MissingAuthenticationToken", "UnrecognizedClientException"})
_SIGNATURE = frozenset({"InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed", "SignatureDoesNotMatch"})
_ACTION = re.compile(r"not authorized to perform: ([a-z0-9-]+:[A-Za-z0-9]+)")
_CLOCK_SKEW = re.compile(r"signature (expired|not yet current)|too skewed|has expired", re.IGNORECASE)
_RESOURCE = re.compile(r"on resource: (arn:\S+|\*)")
"""Pattern of the resource in IAM's message about a missing permission."""
_NOT_FOUND = frozenset(
    {
        "FileSystemNotFound",
        "InvalidDocument",
        "InvalidGroup.NotFound",
        "InvalidNetworkInterfaceID.NotFound",
        "NoSuchBucket",
        "NoSuchEntity",
        "NotFoundException",
        "ResourceNotFound",
        "ResourceNotFoundException",
    }
)
_IN_USE = frozenset({"ConflictException", "ResourceInUse"})
_INVALID = frozenset(
    {"BadRequest", "InvalidParameterException", "InvalidParameterValue", "ValidationError", "ValidationException"}
)


_IAM_NAMES = {"s3:ListObjectsV2": "s3:ListBucket"}
"""Operations whose IAM action has another name than in boto3 (service authorization reference)."""


@dataclass(frozen=True)
class AwsCall:
    """An AWS operation: the service by boto3's name, the operation by the API's, and the region."""

    service: str
    operation: str
    region: str

    @property
    def action(self) -> str:
        """The IAM action."""
        name = f"{self.service}:{self.operation}"
        return _IAM_NAMES.get(name, name)

    @property
    def detail(self) -> dict[str, Any]:
        """The error detail."""
        return {"action": self.action, "region": self.region}


def boto3_missing(alternative: str | None = None) -> HyperpodError:
    """The package boto3 is not installed.

    Args:
        alternative: What to do instead of installing it.
    """
    hint = "pip install 'hyperpod-jlab[aws]'"
    return UnsupportedError(
        "the package boto3 is needed to call AWS, but is not installed",
        code="boto3_missing",
        hint=f"{hint}, {alternative}" if alternative else hint,
    )


def boto3_too_old_error(call: AwsCall, version: str) -> HyperpodError:
    """The installed boto3 does not know an operation."""
    version_needed = BOTO3_SINCE.get(call.action)
    needs = f"it needs boto3 >= {version_needed}" if version_needed else "it needs a newer boto3"
    requirement = f"boto3>={version_needed}" if version_needed else "boto3"
    return UnsupportedError(
        f"boto3 {version} does not know {call.action}: {needs}",
        code="boto3_too_old",
        hint=f"pip install --upgrade '{requirement}'",
        detail={**call.detail, "boto3": version, "needs": version_needed},
    )


def no_credentials(problem: str | None = None) -> HyperpodError:
    """There are no credentials, or obtaining them fails."""
    return DeniedError(
        f"no AWS credentials found: {problem}" if problem else "no AWS credentials found",
        code="no_aws_credentials",
        hint="in Studio, the role of the space provides them; elsewhere, run aws configure or aws sso login",
    )


def no_region() -> HyperpodError:
    """The region is not set."""
    return InvalidInputError(
        "no AWS region is set", code="no_aws_region", hint="set AWS_REGION", detail={"field": "region"}
    )


def translate(error: Exception, call: AwsCall) -> HyperpodError:
    """Convert boto3's exception to our error."""
    from botocore import exceptions as aws
    from botocore.parsers import ResponseParserError

    if isinstance(error, aws.ClientError):
        return _response_error(error.response, call)
    if isinstance(error, aws.ParamValidationError):
        return _invalid_input_error(str(error), call)
    known_error = _configuration_error(error, call) or _credentials_error(error)
    if known_error is not None:
        return known_error
    # A KeyError is what botocore raises for XML that is not a response of the service.
    if isinstance(error, aws.BotoCoreError | ResponseParserError | KeyError):
        return _connection_error(error, call)
    return InternalError(f"{call.action}: {type(error).__name__}: {mask_credentials(error)}", detail=call.detail)


def _configuration_error(error: Exception, call: AwsCall) -> HyperpodError | None:
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
    # botocore raises ValueError for an invalid endpoint URL.
    config_errors = aws.ConfigParseError | aws.ConfigNotFound | aws.ProfileNotFound | ValueError
    if isinstance(error, config_errors):
        return InvalidInputError(
            f"the AWS configuration is invalid: {mask_credentials(error)}",
            code="invalid_aws_config",
            hint="check ~/.aws/config, AWS_PROFILE and AWS_ENDPOINT_URL",
            detail=call.detail,
        )
    return None


def _credentials_error(error: Exception) -> HyperpodError | None:
    from botocore import exceptions as aws

    if isinstance(error, aws.NoCredentialsError):
        return no_credentials()
    is_invalid = aws.PartialCredentialsError | aws.CredentialRetrievalError | aws.TokenRetrievalError | aws.SSOError
    return no_credentials(mask_credentials(error)) if isinstance(error, is_invalid) else None


def _connection_error(error: Exception, call: AwsCall) -> HyperpodError:
    endpoint = ENDPOINTS.get(call.service, call.service)
    return UnreachableError(
        f"{call.service} did not answer in {call.region}: {mask_credentials(error)}",
        code="aws_unreachable",
        hint=f"check that {call.region} is the right region; a VPC without internet access needs an interface endpoint for {endpoint}",
        detail={**call.detail, "error": type(error).__name__},
    )


def _response_error(response: Mapping[str, Any], call: AwsCall) -> HyperpodError:
    aws_error = response.get("Error", {})
    code, message = str(aws_error.get("Code", "")), str(aws_error.get("Message", ""))
    detail = {**call.detail, "aws_code": code, "aws_message": message}
    if retries := response.get("ResponseMetadata", {}).get("RetryAttempts"):
        detail["retries"] = retries
    if code in _DENIED:
        resource = _RESOURCE.search(message)
        resource_text = f" on {resource[1]}" if resource and resource[1] != "*" else ""
        match = _ACTION.search(message)
        # One call may need several permissions: creating a cluster also needs iam:PassRole.
        action = match[1] if match else call.action
        return DeniedError(
            f"you do not have the permission {action}",
            code="missing_right",
            hint=f"ask your AWS administrator to allow {action}{resource_text} for your role",
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
        return _signature_error(message, response, detail)
    return _service_error(code, message, call, detail)


def _service_error(code: str, message: str, call: AwsCall, detail: dict[str, Any]) -> HyperpodError:
    if code in _NOT_FOUND:
        return NotFoundError(message or f"{call.action}: not found", detail=detail)
    if code in _INVALID:
        return _invalid_input_error(message, call)
    if code in _THROTTLED:
        return UnreachableError(
            f"AWS throttles {call.action} in this account and region",
            code="aws_throttled",
            hint="wait a minute; several retries failed",
            detail=detail,
        )
    if code in _IN_USE:
        return ConflictError(message or f"{call.action}: another operation is in progress", detail=detail)
    if code == "ResourceLimitExceeded":
        return RefusedError(
            message or f"{call.action}: an account limit is reached",
            code="aws_limit",
            hint="request an increase in the Service Quotas console",
            detail=detail,
        )
    reason = f"{code}: {message}" if message else code or "no reason"
    return UnreachableError(
        f"{call.action} failed at AWS: {reason}",
        code="aws_failed",
        hint="try again; if it still fails, see the AWS Health Dashboard",
        detail=detail,
    )


def _invalid_input_error(message: str, call: AwsCall) -> HyperpodError:
    return InvalidInputError(
        f"AWS does not accept the input of {call.action}: {message}", code="aws_invalid_input", detail=call.detail
    )


def _signature_error(message: str, response: Mapping[str, Any], detail: dict[str, Any]) -> HyperpodError:
    if not _CLOCK_SKEW.search(message):
        return DeniedError(
            "AWS does not accept the signature: the secret key does not belong to the access key",
            code="invalid_aws_credentials",
            hint="log in again",
            detail=detail,
        )
    lag = _clock_lag(response)
    problem = "is wrong"
    if lag is not None:
        problem = f"is {abs(lag):.0f} s {'behind' if lag > 0 else 'ahead of'} AWS"
    return DeniedError(
        f"the clock of this machine {problem}, so AWS does not accept its signatures",
        code="clock_skew",
        hint="set the clock (NTP)",
        detail={**detail, "behind_s": lag},
    )


def _clock_lag(response: Mapping[str, Any]) -> float | None:
    """Seconds that this machine's clock is behind the response's date."""
    headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        server_time = parsedate_to_datetime(str(headers.get("date", "")))
    except ValueError:
        return None
    if server_time.tzinfo is None:
        return None
    return round((server_time - datetime.now(UTC)).total_seconds())


# --------------------------------------------------------------------------------------------------
# Raw responses of AWS, where botocore ignores too much or accepts too much.
#
# It drops unknown fields, and SageMaker's images have a boto3 that is a year older than the
# service: much of a cluster would
# be missing (that Slurm is the scheduler, the nodes' names, pending updates). And it accepts a
# captive portal's login page as an empty
# response: an account without clusters.

_JSON_TYPE = "application/x-amz-json"


def check_content_type(http_response: Any, model: Any, **_: Any) -> None:
    """Refuse a response that is not from an AWS service: botocore's event ``after-call``.

    Args:
        http_response: The raw response.
        model: The operation in botocore's model.

    Raises:
        ResponseParserError: Its status is a success, but its content type does not match the service's protocol.
    """
    kind = _content_type(http_response)
    service = model.service_model
    # A newer botocore chooses among a service's protocols; an older one only knows the first.
    protocol = getattr(service, "resolved_protocol", service.metadata.get("protocol"))
    if protocol == "json" and http_response.status_code == 200 and not kind.startswith(_JSON_TYPE):
        from botocore.parsers import ResponseParserError

        raise ResponseParserError(f"a server other than AWS answered, with {kind or 'no content type'}")


def keep_unknown_fields(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
    """Restore dropped fields: botocore's event ``after-call``. Values have their JSON types, so a time is a number.

    Args:
        http_response: The raw response.
        parsed: The response as botocore parsed it; modified in place.
    """
    if http_response.status_code == 200 and _content_type(http_response).startswith(_JSON_TYPE):
        _merge_unknown(parsed, json.loads(http_response.content))


def _content_type(http_response: Any) -> str:
    return str(http_response.headers.get("Content-Type", ""))


def _merge_unknown(parsed: Any, raw: Any) -> None:
    if isinstance(parsed, dict) and isinstance(raw, dict):
        for name, value in raw.items():
            if name in parsed:
                _merge_unknown(parsed[name], value)
            elif value is not None:
                parsed[name] = value
    elif isinstance(parsed, list) and isinstance(raw, list) and len(parsed) == len(raw):
        for parsed_item, raw_item in zip(parsed, raw, strict=True):
            _merge_unknown(parsed_item, raw_item)
