"""Who a token of EKS belongs to: the webhook that an API server asks, as aws-iam-authenticator does it (its pkg/token).

A token is a presigned request to STS, "who is this?", with the cluster's name in a header that is signed too. It is sent to STS as it is; the role that STS
names is looked up among the cluster's access entries.
"""

from __future__ import annotations

import base64
import binascii
import ctypes
import json
import os
import socket
import threading
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree as ET

from testbed.aws.control_plane import AccessEntry, ControlPlane
from testbed.loopback import Handler, Loopback

PORT = 21362
"""Where the API server's webhook is configured to be (testbed/kubernetes/etc/token-webhook.kubeconfig)."""

LASTS = timedelta(minutes=15)
"""How long a token is good for, whatever its address says of itself."""

_PREFIX = "k8s-aws-v1."
_CLUSTER_HEADER = "x-k8s-aws-id"
_KNOWN = frozenset(
    {
        "action",
        "version",
        "x-amz-algorithm",
        "x-amz-credential",
        "x-amz-date",
        "x-amz-expires",
        "x-amz-security-token",
        "x-amz-signature",
        "x-amz-signedheaders",
    }
)
_CLONE_NEWNET = 0x40000000
_TIMEOUT = 10.0


class TokenError(Exception):
    """Why a token is good for nothing."""


class TokenAuthenticator(Loopback):
    """Answers an API server that asks whose a token is, while it is entered.

    Args:
        name: The EKS cluster's name.
        plane: The cluster, with its access entries.
        sts: Where STS is, as ``http://127.0.0.1:8080``.
        machine: A process in the API server's network.
    """

    def __init__(self, name: str, plane: ControlPlane, sts: str, machine: int) -> None:
        self._name, self._plane, self._sts = name, plane, urlsplit(sts)
        super().__init__(self._handler(), listening=_listening_in(machine))
        self.refused: list[str] = []
        """Why tokens were refused."""

    def whose(self, token: str) -> dict[str, Any]:
        """The user that a token makes its bearer, as a TokenReview has it.

        Raises:
            TokenError: It is none, is over, or its role has no access entry.
        """
        arn, user_id = self._asked(self._checked(token))
        role, session = _role_of(arn)
        entry = self._plane.entries.get(role)
        if entry is None:
            raise TokenError(f"{role} has no access entry")
        return {
            "username": _user_name(entry, arn, session),
            "uid": f"aws-iam-authenticator:{user_id}",
            "groups": list(entry.groups),
        }

    def _checked(self, token: str) -> str:
        """The path of the request that a token is."""
        if not token.startswith(_PREFIX):
            raise TokenError("it does not begin as a token of EKS")
        text = token.removeprefix(_PREFIX)
        try:
            url = urlsplit(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
        except (binascii.Error, ValueError) as error:
            raise TokenError("it is no address") from error
        if (url.scheme, url.netloc, url.path) != (self._sts.scheme, self._sts.netloc, "/"):
            raise TokenError(f"it is not addressed to STS, but to {url.netloc}{url.path}")
        pairs = parse_qsl(url.query, keep_blank_values=True)
        given = {name.lower(): value for name, value in pairs}
        if len(given) != len(pairs) or not given.keys() <= _KNOWN:
            raise TokenError("its address has what does not belong there")
        if given.get("action") != "GetCallerIdentity":
            raise TokenError("it does not ask who its bearer is")
        if _CLUSTER_HEADER not in given.get("x-amz-signedheaders", "").lower().split(";"):
            raise TokenError(f"{_CLUSTER_HEADER} is not signed")
        lasts = given.get("x-amz-expires", "")
        if not lasts.isdecimal() or timedelta(seconds=int(lasts)) > LASTS:
            raise TokenError("it says that it lasts too long, or not how long")
        try:
            date = given.get("x-amz-date", "")
            signed = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError as error:
            raise TokenError("it does not say when it was signed") from error
        if datetime.now(UTC) > signed + LASTS:
            raise TokenError("it has expired")
        return f"{url.path}?{url.query}"

    def _asked(self, path: str) -> tuple[str, str]:
        """Ask STS; the ARN and the user id that it names."""
        connection = HTTPConnection(self._sts.netloc, timeout=_TIMEOUT)
        try:
            connection.request("GET", path, headers={_CLUSTER_HEADER: self._name})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise TokenError(f"STS says {answer.status}: {text.decode(errors='replace')}")
        found = {one.tag.rpartition("}")[2]: one.text or "" for one in ET.fromstring(text).iter()}
        return found["Arn"], found["UserId"]

    def _handler(self) -> type[Handler]:
        authenticator = self

        class Reviewer(Handler):
            # One connection for each question: a kept one would be answered by an authenticator that is over.
            protocol_version = "HTTP/1.0"

            def take(self) -> None:
                review = json.loads(self.body())
                try:
                    user = authenticator.whose(str(review["spec"]["token"]))
                    status: dict[str, Any] = {"authenticated": True, "user": user}
                except TokenError as error:
                    authenticator.refused.append(str(error))
                    status = {"authenticated": False, "error": str(error)}
                told = {"apiVersion": review["apiVersion"], "kind": "TokenReview", "status": status}
                self.answer(200, json.dumps(told).encode(), {"Content-Type": "application/json"})

        return Reviewer


def _listening_in(machine: int) -> socket.socket:
    """A listening socket in the network namespace of a process: a thread goes there, and ends there."""
    found: list[socket.socket | OSError] = []

    def listen() -> None:
        namespace = os.open(f"/proc/{machine}/ns/net", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(namespace, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            found.append(socket.create_server(("127.0.0.1", PORT)))
        except OSError as error:
            found.append(error)
        finally:
            os.close(namespace)

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    if isinstance(found[0], OSError):
        raise found[0]
    return found[0]


def _role_of(arn: str) -> tuple[str, str]:
    """The role of a session, as access entries name it, and the session's name."""
    kind, _, rest = arn.rpartition(":")[2].partition("/")
    if kind != "assumed-role":
        return arn, ""
    role, _, session = rest.partition("/")
    partition, account = arn.split(":")[1], arn.split(":")[4]
    return f"arn:{partition}:iam::{account}:role/{role}", session


def _user_name(entry: AccessEntry, arn: str, session: str) -> str:
    """What EKS calls somebody whose entry gives no name: the session's ARN, with the session in it."""
    return (entry.username or arn).replace("{{SessionName}}", session)
