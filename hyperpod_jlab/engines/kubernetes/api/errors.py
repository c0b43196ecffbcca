"""The API server's error responses as our errors: what is wrong, and what to do. Texts observed on Kubernetes 1.34 (research/kubernetes.md).

The server's message is shown, shortened, if the user can act on it; pages of proxies are never
shown, because they may contain anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)

ANSWER_LOST = "answer_lost"
"""Code of an `UnreachableError` after which the request may have been applied."""
STREAM_CUT = "cut"
"""Code of an `UnreachableError`: the connection ended in the middle of a response."""

_MAX_MESSAGE = 600
_FORBIDDEN_TEXT = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]*)"| at the cluster scope)?'
)
_NAMESPACE_NOT_FOUND = re.compile(r'namespaces "([^"]*)" not found')
_WEBHOOK = re.compile(r'admission webhook "([^"]*)" denied the request:?\s*(.*)', re.DOTALL)
_TOO_LARGE_TEXT = re.compile(
    r"request is too large|trying to send message larger than max|request entity too large", re.IGNORECASE
)
"""Texts of etcd, of the API server's etcd client, and of the API server itself (observed on 1.34); the first two have status 500."""
_WEBHOOK_DOWN = re.compile(r'failed calling webhook "([^"]*)"')


@dataclass(frozen=True)
class ApiStatus:
    """An error response of the API server.

    Attributes:
        status: HTTP status.
        message: Its message, "" when the response is not a ``Status`` object (a proxy's page).
        reason: Its reason, such as ``AlreadyExists``.
        details: Its details: ``name``, ``kind``, ``causes``, ``retryAfterSeconds``.
        path: The request's path.
        verb: The HTTP method.
        continue_token: For an expired list: the token to continue with.
    """

    status: int
    message: str
    reason: str
    details: Mapping[str, Any]
    path: str
    verb: str = "GET"
    continue_token: str = ""


def parse_error(status: int, text: str, *, verb: str = "GET", path: str = "") -> HyperpodError:
    """The error for a response that is not a success."""
    status_object = _read(status, text, verb, path)
    if status == 401:
        return _unauthorized(status_object)
    if _TOO_LARGE_TEXT.search(status_object.message):
        return _too_large(status_object)
    if status == 403:
        return _forbidden(status_object)
    if status == 404:
        return _not_found(status_object)
    if status in {409, 410}:
        return _conflict(status_object)
    if status == 422 or (status == 400 and status_object.reason in {"BadRequest", "Invalid"}):
        return _invalid(status_object)
    if status == 429 or status >= 500:
        return _retry_later(status_object)
    return RefusedError(
        f"Kubernetes: {_message(status_object)}",
        hint=None if status_object.message else _PROXY,
        detail=_detail(status_object),
    )


_PROXY = "the server that answered is not a Kubernetes API server: check the server and the proxy in the kubeconfig"


def _read(status: int, text: str, verb: str, path: str) -> ApiStatus:
    try:
        document = json.loads(text)
        message = str(document["message"]) if document.get("kind") == "Status" else ""
        details = document.get("details")
        reason = str(document.get("reason") or "")
        continue_token = str((document.get("metadata") or {}).get("continue") or "")
    except (ValueError, KeyError, TypeError, AttributeError):
        message, details, reason, continue_token = "", None, "", ""
    details_object = details if isinstance(details, dict) else {}
    return ApiStatus(status, message, reason, details_object, path, verb, continue_token)


def _message(status_object: ApiStatus) -> str:
    if not status_object.message:
        return f"it answered with status {status_object.status} and no reason"
    return shortened(status_object.message)


def shortened(text: str) -> str:
    """A server message on one line, at most 600 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_MESSAGE else f"{line[: _MAX_MESSAGE - 1]}…"


def _detail(status_object: ApiStatus, **extra: Any) -> dict[str, Any]:
    return {"status": status_object.status, "reason": status_object.reason, "path": status_object.path, **extra}


# ----------------------------------------------------------------------------------------------
# what may not be
# permissions


def _unauthorized(status_object: ApiStatus) -> HyperpodError:
    return DeniedError(
        "the cluster does not accept your credentials: they are wrong or expired",
        code="unauthorized",
        hint="log in again as for kubectl (on EKS: aws sts get-caller-identity, and an access entry for that role); see: kubectl auth "
        "whoami",
        detail=_detail(status_object),
    )


def _forbidden(status_object: ApiStatus) -> HyperpodError:
    message = status_object.message
    if "exceeded quota" in message:
        return _quota(status_object)
    if denied := _WEBHOOK.search(message):
        return RefusedError(
            f"the cluster denied it: {shortened(denied[2]) or 'it gives no reason'}",
            code="webhook_denied",
            hint=f"the admission webhook {denied[1]} has this rule",
            detail=_detail(status_object, webhook=denied[1]),
        )
    if "is being terminated" in message or "because it is being terminated" in message:
        return ConflictError(
            f"Kubernetes: {_message(status_object)}", code="namespace_ends", detail=_detail(status_object)
        )
    if match := _FORBIDDEN_TEXT.search(message):
        return permission_denied(
            match["verb"], match["group"], match["resource"], match["namespace"], status_object.status
        )
    if not message:
        return DeniedError(
            "a proxy before the API server denied it and gave no reason", hint=_PROXY, detail=_detail(status_object)
        )
    return DeniedError(
        f"Kubernetes: {_message(status_object)}", hint="ask your cluster administrator", detail=_detail(status_object)
    )


def permission_denied(verb: str, group: str, resource: str, namespace: str | None, status: int = 403) -> DeniedError:
    """The error for a missing permission, which is in `detail` as ``right``."""
    scope_text = f"in the namespace {namespace}" if namespace else "in the whole cluster"
    resource_text = f"{resource}.{group}" if group else resource
    check_command = f"kubectl auth can-i {verb} {resource_text}" + (f" -n {namespace}" if namespace else "")
    return DeniedError(
        f"you do not have the permission to {verb} {resource_text} {scope_text}",
        code="missing_right",
        hint=f"ask your cluster administrator for the verb {verb} on {resource_text} {scope_text}; see: {check_command}",
        detail={
            "status": status,
            "right": {"verb": verb, "group": group, "resource": resource, "namespace": namespace},
        },
    )


def _quota(status_object: ApiStatus) -> HyperpodError:
    match = re.search(r"exceeded quota: (.*)", status_object.message, re.DOTALL)
    return RefusedError(
        f"the quota of the namespace is exceeded: {shortened(match[1] if match else status_object.message)}",
        code="quota_exceeded",
        hint="request less, or wait until other jobs of the namespace end; see: kubectl describe quota",
        detail=_detail(status_object),
    )


# ----------------------------------------------------------------------------------------------
# what is not there
# not found


def _not_found(status_object: ApiStatus) -> HyperpodError:
    if match := _NAMESPACE_NOT_FOUND.search(status_object.message):
        return NotFoundError(
            f"namespace {match[1]} not found",
            code="no_namespace",
            hint="set namespace in the configuration of the cluster to an existing one; see: kubectl get namespaces",
            detail=_detail(status_object, namespace=match[1]),
        )
    if not status_object.message or status_object.message.startswith("the server could not find the requested"):
        return _unknown_kind(status_object)
    return NotFoundError(f"Kubernetes: {_message(status_object)}", detail=_detail(status_object))


def _unknown_kind(status_object: ApiStatus) -> HyperpodError:
    """The error for a path that is not served: the kind is not installed or, for a pod's log, the node's kubelet is still starting."""
    if status_object.details.get("kind") == "pods/log" or status_object.path.endswith("/log"):
        return UnreachableError(
            "the node cannot provide the log yet",
            code="node_not_ready",
            hint="its kubelet is starting; try again in a moment",
            detail=_detail(status_object),
        )
    if not status_object.message and not status_object.path.startswith("/apis/"):
        return NotFoundError(
            "the server that answered is not a Kubernetes API server", hint=_PROXY, detail=_detail(status_object)
        )
    group = re.match(r"/apis/([^/]+)/([^/]+)(?:/namespaces/[^/]+)?(?:/([^/]+))?", status_object.path)
    resource_text = f"{group[3] or 'objects'} of {group[1]}/{group[2]}" if group else status_object.path
    return NotFoundError(
        f"the cluster has no {resource_text}",
        code="no_such_kind",
        hint="its operator is not installed or has another version; see: kubectl api-resources",
        detail=_detail(status_object, group=group[1] if group else ""),
    )


# ----------------------------------------------------------------------------------------------
# what does not fit
# conflicts and invalid objects


def _conflict(status_object: ApiStatus) -> HyperpodError:
    if status_object.status == 410:
        return ConflictError(
            "the resource version is too old",
            code="expired",
            detail=_detail(
                status_object, **({"continue": status_object.continue_token} if status_object.continue_token else {})
            ),
        )
    code = "already_exists" if status_object.reason == "AlreadyExists" else "changed_meanwhile"
    return ConflictError(f"Kubernetes: {_message(status_object)}", code=code, detail=_detail(status_object))


def _invalid(status_object: ApiStatus) -> HyperpodError:
    causes = [cause for cause in status_object.details.get("causes") or [] if isinstance(cause, dict)]
    fields = [str(cause["field"]) for cause in causes if cause.get("field")]
    if status_object.status == 422:
        return RefusedError(
            f"the cluster rejected the object as invalid: {_message(status_object)}",
            code="invalid_object",
            hint=f"check {', '.join(fields[:5])}" if fields else None,
            detail=_detail(status_object, fields=fields),
        )
    kind = InvalidInputError if status_object.verb == "GET" else RefusedError
    return kind(f"Kubernetes: {_message(status_object)}", code="bad_request", detail=_detail(status_object))


def _too_large(status_object: ApiStatus) -> HyperpodError:
    return RefusedError(
        "the object is too large for the cluster; the limit is 1.5 MiB",
        code="object_too_large",
        hint="put large values into files or a separate ConfigMap, and refer to them",
        detail=_detail(status_object, said=_message(status_object)),
    )


# ----------------------------------------------------------------------------------------------
# what cannot be now
# temporary failures


def _retry_later(status_object: ApiStatus) -> HyperpodError:
    if hook := _WEBHOOK_DOWN.search(status_object.message):
        return UnreachableError(
            f"the cluster cannot check the object: the webhook {hook[1]} did not answer",
            code="webhook_down",
            hint="an operator of the cluster is down or starting; try again later, or tell your cluster administrator",
            detail=_detail(status_object, webhook=hook[1]),
        )
    if status_object.status == 429:
        return UnreachableError(
            "the cluster is overloaded (too many requests)",
            code="too_many_requests",
            hint="try again later",
            detail=_detail(status_object),
        )
    if status_object.status == 500 and "/log" in status_object.path and "dial tcp" in status_object.message:
        return UnreachableError(
            "the node does not respond, so the logs of its pods are not available now",
            code="node_down",
            detail=_detail(status_object),
        )
    message_text = f": {_message(status_object)}" if status_object.message else ""
    return UnreachableError(
        f"the API server is not available now (status {status_object.status}){message_text}",
        code=ANSWER_LOST if _may_have_applied(status_object) else None,
        hint="try again later",
        detail=_detail(status_object),
    )


def _may_have_applied(status_object: ApiStatus) -> bool:
    """Whether a change may have been applied: the server timed out, or a proxy lost its response."""
    if status_object.verb == "GET":
        return False
    if status_object.message:
        return status_object.status == 504 or "timed out" in status_object.message or "etcd" in status_object.message
    return True
