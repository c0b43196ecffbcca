"""The API server's refusals as errors of ours: what is wrong, and what to do. Texts seen on Kubernetes 1.34 (research/kubernetes.md).

The server's own sentence is shown where it names what the user can mend, shortened; pages of proxies, which may hold anything, never are.
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
"""Code of an `UnreachableError` after which what was asked for may have been done."""
CUT = "cut"
"""Code of an `UnreachableError`: the connection ended in the middle of an answer."""

_LONGEST = 600
_RIGHT = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]*)"| at the cluster scope)?'
)
_NO_NAMESPACE = re.compile(r'namespaces "([^"]*)" not found')
_WEBHOOK = re.compile(r'admission webhook "([^"]*)" denied the request:?\s*(.*)', re.DOTALL)
_TOO_LARGE = re.compile(
    r"request is too large|trying to send message larger than max|request entity too large",
    re.IGNORECASE,
)
"""etcd's word, that of the API server's way to it, and the API server's own (seen on 1.34); the first two come with status 500."""
_WEBHOOK_DOWN = re.compile(r'failed calling webhook "([^"]*)"')


@dataclass(frozen=True)
class Refusal:
    """A refusal as the API server gave it.

    Attributes:
        status: HTTP status.
        message: Its sentence, "" when the answer is no ``Status`` object (a proxy's page).
        reason: Its word, such as ``AlreadyExists``.
        details: What it is about: ``name``, ``kind``, ``causes``, ``retryAfterSeconds``.
        path: What was asked for.
        verb: By which HTTP method.
        onward: Of a list that has become too old: from where to go on.
    """

    status: int
    message: str
    reason: str
    details: Mapping[str, Any]
    path: str
    verb: str = "GET"
    onward: str = ""


def refusal(status: int, text: str, *, verb: str = "GET", path: str = "") -> HyperpodError:
    """The error for an answer that is no success."""
    answer = _read(status, text, verb, path)
    if status == 401:
        return _unauthorized(answer)
    if _TOO_LARGE.search(answer.message):
        return _too_large(answer)
    if status == 403:
        return _forbidden(answer)
    if status == 404:
        return _not_found(answer)
    if status in {409, 410}:
        return _conflict(answer)
    if status == 422 or (status == 400 and answer.reason in {"BadRequest", "Invalid"}):
        return _invalid(answer)
    if status == 429 or status >= 500:
        return _cannot_now(answer)
    return RefusedError(
        f"Kubernetes: {_said(answer)}",
        hint=None if answer.message else _PROXY,
        detail=_detail(answer),
    )


_PROXY = "the server that answered is not a Kubernetes API server: check the server and the proxy in the kubeconfig"


def _read(status: int, text: str, verb: str, path: str) -> Refusal:
    try:
        found = json.loads(text)
        message = str(found["message"]) if found.get("kind") == "Status" else ""
        details = found.get("details")
        reason = str(found.get("reason") or "")
        onward = str((found.get("metadata") or {}).get("continue") or "")
    except (ValueError, KeyError, TypeError, AttributeError):
        message, details, reason, onward = "", None, "", ""
    about = details if isinstance(details, dict) else {}
    return Refusal(status, message, reason, about, path, verb, onward)


def _said(answer: Refusal) -> str:
    if not answer.message:
        return f"it answered with status {answer.status} and no reason"
    return shortened(answer.message)


def shortened(text: str) -> str:
    """A sentence of the server's on one line, at most 600 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _detail(answer: Refusal, **more: Any) -> dict[str, Any]:
    return {"status": answer.status, "reason": answer.reason, "path": answer.path, **more}


# ---------------------------------------------------------------------------------------------- what may not be


def _unauthorized(answer: Refusal) -> HyperpodError:
    return DeniedError(
        "the cluster does not accept your credentials: they are wrong or expired",
        code="unauthorized",
        hint="log in again as for kubectl (on EKS: aws sts get-caller-identity, and an access entry for that role); see: kubectl auth "
        "whoami",
        detail=_detail(answer),
    )


def _forbidden(answer: Refusal) -> HyperpodError:
    message = answer.message
    if "exceeded quota" in message:
        return _quota(answer)
    if denied := _WEBHOOK.search(message):
        return RefusedError(
            f"the cluster denied it: {shortened(denied[2]) or 'it gives no reason'}",
            code="webhook_denied",
            hint=f"the admission webhook {denied[1]} has this rule",
            detail=_detail(answer, webhook=denied[1]),
        )
    if "is being terminated" in message or "because it is being terminated" in message:
        return ConflictError(
            f"Kubernetes: {_said(answer)}", code="namespace_ends", detail=_detail(answer)
        )
    if right := _RIGHT.search(message):
        return denied_right(
            right["verb"], right["group"], right["resource"], right["namespace"], answer.status
        )
    if not message:
        return DeniedError(
            "a proxy before the API server denied it and gave no reason",
            hint=_PROXY,
            detail=_detail(answer),
        )
    return DeniedError(
        f"Kubernetes: {_said(answer)}",
        hint="ask your cluster administrator",
        detail=_detail(answer),
    )


def denied_right(
    verb: str, group: str, resource: str, namespace: str | None, status: int = 403
) -> DeniedError:
    """What to say of a right that the user lacks; it stands in `detail` as ``right``."""
    where = f"in the namespace {namespace}" if namespace else "in the whole cluster"
    what = f"{resource}.{group}" if group else resource
    asked = f"kubectl auth can-i {verb} {what}" + (f" -n {namespace}" if namespace else "")
    return DeniedError(
        f"you do not have the permission to {verb} {what} {where}",
        code="missing_right",
        hint=f"ask your cluster administrator for the verb {verb} on {what} {where}; see: {asked}",
        detail={
            "status": status,
            "right": {"verb": verb, "group": group, "resource": resource, "namespace": namespace},
        },
    )


def _quota(answer: Refusal) -> HyperpodError:
    found = re.search(r"exceeded quota: (.*)", answer.message, re.DOTALL)
    return RefusedError(
        f"the quota of the namespace is exceeded: {shortened(found[1] if found else answer.message)}",
        code="quota_exceeded",
        hint="request less, or wait until other jobs of the namespace end; see: kubectl describe quota",
        detail=_detail(answer),
    )


# ---------------------------------------------------------------------------------------------- what is not there


def _not_found(answer: Refusal) -> HyperpodError:
    if gone := _NO_NAMESPACE.search(answer.message):
        return NotFoundError(
            f"namespace {gone[1]} not found",
            code="no_namespace",
            hint="set namespace in the configuration of the cluster to an existing one; see: kubectl get namespaces",
            detail=_detail(answer, namespace=gone[1]),
        )
    if not answer.message or answer.message.startswith("the server could not find the requested"):
        return _no_kind(answer)
    return NotFoundError(f"Kubernetes: {_said(answer)}", detail=_detail(answer))


def _no_kind(answer: Refusal) -> HyperpodError:
    """Nothing is served at this path: the kind is not installed; or, of a pod's log, the node's kubelet is only just coming up."""
    if answer.details.get("kind") == "pods/log" or answer.path.endswith("/log"):
        return UnreachableError(
            "the node cannot provide the log yet",
            code="node_not_ready",
            hint="its kubelet is starting; try again in a moment",
            detail=_detail(answer),
        )
    if not answer.message and not answer.path.startswith("/apis/"):
        return NotFoundError(
            "the server that answered is not a Kubernetes API server",
            hint=_PROXY,
            detail=_detail(answer),
        )
    group = re.match(r"/apis/([^/]+)/([^/]+)(?:/namespaces/[^/]+)?(?:/([^/]+))?", answer.path)
    what = f"{group[3] or 'objects'} of {group[1]}/{group[2]}" if group else answer.path
    return NotFoundError(
        f"the cluster has no {what}",
        code="no_such_kind",
        hint="its operator is not installed or has another version; see: kubectl api-resources",
        detail=_detail(answer, group=group[1] if group else ""),
    )


# ---------------------------------------------------------------------------------------------- what does not fit


def _conflict(answer: Refusal) -> HyperpodError:
    if answer.status == 410:
        return ConflictError(
            "the resource version is too old",
            code="expired",
            detail=_detail(answer, **({"continue": answer.onward} if answer.onward else {})),
        )
    code = "already_exists" if answer.reason == "AlreadyExists" else "changed_meanwhile"
    return ConflictError(f"Kubernetes: {_said(answer)}", code=code, detail=_detail(answer))


def _invalid(answer: Refusal) -> HyperpodError:
    causes = [one for one in answer.details.get("causes") or [] if isinstance(one, dict)]
    fields = [str(one["field"]) for one in causes if one.get("field")]
    if answer.status == 422:
        return RefusedError(
            f"the cluster rejected the object as invalid: {_said(answer)}",
            code="invalid_object",
            hint=f"check {', '.join(fields[:5])}" if fields else None,
            detail=_detail(answer, fields=fields),
        )
    kind = InvalidInputError if answer.verb == "GET" else RefusedError
    return kind(f"Kubernetes: {_said(answer)}", code="bad_request", detail=_detail(answer))


def _too_large(answer: Refusal) -> HyperpodError:
    return RefusedError(
        "the object is too large for the cluster; the limit is 1.5 MiB",
        code="object_too_large",
        hint="put large values into files or a separate ConfigMap, and refer to them",
        detail=_detail(answer, said=_said(answer)),
    )


# ---------------------------------------------------------------------------------------------- what cannot be now


def _cannot_now(answer: Refusal) -> HyperpodError:
    if hook := _WEBHOOK_DOWN.search(answer.message):
        return UnreachableError(
            f"the cluster cannot check the object: the webhook {hook[1]} did not answer",
            code="webhook_down",
            hint="an operator of the cluster is down or starting; try again later, or tell your cluster administrator",
            detail=_detail(answer, webhook=hook[1]),
        )
    if answer.status == 429:
        return UnreachableError(
            "the cluster is overloaded (too many requests)",
            code="too_many_requests",
            hint="try again later",
            detail=_detail(answer),
        )
    if answer.status == 500 and "/log" in answer.path and "dial tcp" in answer.message:
        return UnreachableError(
            "the node does not respond, so the logs of its pods are not available now",
            code="node_down",
            detail=_detail(answer),
        )
    said = f": {_said(answer)}" if answer.message else ""
    return UnreachableError(
        f"the API server is not available now (status {answer.status}){said}",
        code=ANSWER_LOST if _may_be_done(answer) else None,
        hint="try again later",
        detail=_detail(answer),
    )


def _may_be_done(answer: Refusal) -> bool:
    """Whether something that changes may have been done all the same: the server ran out of time, or a proxy in between lost its answer."""
    if answer.verb == "GET":
        return False
    if answer.message:
        return answer.status == 504 or "timed out" in answer.message or "etcd" in answer.message
    return True
