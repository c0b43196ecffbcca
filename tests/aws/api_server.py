"""The answers of an EKS cluster's API server to who asks what they may do: over TLS, with an authority of its own."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.aws.control_plane import ControlPlane
from testbed.loopback import Handler, Loopback

REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass
class ApiServer:
    """What it answers, and what it was asked."""

    plane: ControlPlane
    status: int = 201
    allowed: bool = True
    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)


@contextmanager
def api_server(folder: Path) -> Iterator[ApiServer]:
    """A server on loopback until the end of the block."""
    certificate, key = folder / "api.crt", folder / "api.key"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=kubernetes"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *names], capture_output=True, timeout=60, check=True)

    class Reviewer(Handler):
        def take(self) -> None:
            body = json.loads(self.body())
            made.asked.append((self.path, self.headers.get("Authorization", ""), body))
            if made.status == 201:
                answer: dict[str, Any] = {**body, "status": {"allowed": made.allowed}}
            else:
                answer = {"kind": "Status", "message": "Unauthorized", "code": made.status}
            self.answer(made.status, json.dumps(answer).encode())

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    authority = base64.b64encode(certificate.read_bytes()).decode()
    with Loopback(Reviewer, tls=context) as server:
        made = ApiServer(ControlPlane(server.url, authority))
        yield made
