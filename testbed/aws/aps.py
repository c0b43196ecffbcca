"""Amazon Managed Service for Prometheus' ``QueryMetrics``: who asks and whether they may is checked here, the answer is a real Prometheus'."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from email.message import Message
from urllib.parse import parse_qsl, urlsplit

from testbed.aws.faults import Faults
from testbed.aws.iam import Asked, Verdict, decide, denied
from testbed.aws.replies import ApiError, Reply
from testbed.aws.signature import Scope
from testbed.aws.sigv4 import check_signature
from testbed.aws.state import Account, Caller

SERVICE, ACTION = "aps", "aps:QueryMetrics"
_STATUSES = {
    "ThrottlingException": 429,
    "InvalidSignatureException": 403,
    "UnrecognizedClientException": 403,
    "ExpiredTokenException": 403,
}
_PATH = re.compile(r"/workspaces/(?P<workspace>ws-[\w-]+)/api/v1/(?P<what>query|query_range)")


@dataclass(frozen=True)
class Query:
    """A request as it came, and who signed it."""

    headers: Message
    scope: Scope
    caller: Caller
    verb: str
    path: str
    body: bytes

    @property
    def given(self) -> dict[str, str]:
        """Its fields, of the form or of the address."""
        return dict(parse_qsl(self.body.decode() or urlsplit(self.path).query))


def answer(
    account: Account, faults: Faults, query: Query, counted: Callable[[dict[str, str]], AbstractContextManager[None]]
) -> Reply:
    """Ask the workspace's Prometheus.

    Args:
        account: What there is.
        faults: What goes wrong.
        query: The request.
        counted: Counts it while it is under way.

    Raises:
        ApiError: It was not signed as AWS wants, the caller may not, or there is no such workspace.
    """
    found = _PATH.fullmatch(urlsplit(query.path).path)
    if found is None or query.verb not in {"GET", "POST"}:
        raise ApiError("UnknownOperationException", f"no operation: {query.verb} {query.path}", 404)
    with counted(query.given):
        check_signature(query.headers, query.scope, query.caller.secret, query.verb, query.path, query.body)
        time.sleep(faults.slow.get(ACTION, 0))
        faults.before(ACTION)
        _check_right(account, faults, query, found["workspace"])
        server = account.workspaces.get((query.scope.region, found["workspace"]))
        if server is None:
            raise ApiError("ResourceNotFoundException", "Workspace not found", 404)
        return _forward(f"{server}/api/v1/{found['what']}", query)


def fail(error: ApiError) -> Reply:
    """An error as the service gives it."""
    status = _STATUSES.get(error.code, error.status)
    body = json.dumps({"message": error.message}).encode()
    headers = {"Content-Type": "application/json", "x-amzn-ErrorType": error.code}
    return Reply(status, body, headers)


def _check_right(account: Account, faults: Faults, query: Query, workspace: str) -> None:
    where = f"{account.partition}:aps:{query.scope.region}:{account.account_id}"
    context = {"aws:RequestedRegion": query.scope.region, "aws:PrincipalAccount": account.account_id}
    asked = Asked(ACTION, f"arn:{where}:workspace/{workspace}", context)
    verdict = decide(query.caller.policies, asked, query.caller.session)
    if faults.denies(ACTION, workspace):
        verdict = Verdict(allowed=False)
    if not verdict.allowed:
        raise denied("rest-json", query.caller.arn, asked, explicit=verdict.explicit)


def _forward(url: str, query: Query) -> Reply:
    kind = query.headers.get("Content-Type", "application/x-www-form-urlencoded")
    body = query.body or urlsplit(query.path).query.encode()
    request = urllib.request.Request(url, data=body, headers={"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=30) as told:
            return Reply(told.status, told.read(), {"Content-Type": "application/json"})
    except urllib.error.HTTPError as error:  # what Prometheus itself refuses
        return Reply(error.code, error.read(), {"Content-Type": "application/json"})
