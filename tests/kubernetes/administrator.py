"""The administrator of a testbed's cluster without kubectl: each start of that one costs a tenth of a second of CPU, and tests look often."""

from __future__ import annotations

import base64
import ssl
import time
from pathlib import Path
from typing import Any

import httpx
import yaml

_PATHS = {
    **dict.fromkeys(("pod", "service", "event", "configmap", "serviceaccount"), "/api/v1/namespaces/{}/{}s"),
    "node": "/api/v1/nodes",
    "job": "/apis/batch/v1/namespaces/{}/{}s",
    "pytorchjob": "/apis/kubeflow.org/v1/namespaces/{}/{}s",
    "persistentvolumeclaim": "/api/v1/namespaces/{}/{}s",
}
_TRIES = 110.0
"""Seconds: controllers try again up to a minute later when the API server was away for long."""


def path_of(kind: str, namespace: str | None) -> str | None:
    """Where the objects of a kind are, which is said as kubectl takes it, such as ``pods``; None: it is not one of those known here."""
    singular = kind.removesuffix("s")
    known = _PATHS.get(singular)
    return known.format(namespace or "default", singular) if known else None


class Administrator:
    """Requests with the administrator's token of a testbed's kubeconfig.

    Raises:
        RuntimeError: All requests, when they are refused or not answered.
    """

    def __init__(self, kubeconfig: Path) -> None:
        data = yaml.safe_load(kubeconfig.read_text())
        (cluster,), (user,) = data["clusters"], data["users"]
        authority = cluster["cluster"]["certificate-authority-data"]
        self._client = httpx.Client(
            base_url=cluster["cluster"]["server"],
            headers={"Authorization": f"Bearer {user['user']['token']}"},
            verify=ssl.create_default_context(cadata=base64.b64decode(authority).decode()),
            trust_env=False,
            timeout=60,
        )

    def get(self, path: str) -> dict[str, Any]:
        """An object, or a list of them."""
        return self._send("GET", path)

    def make_namespace(self, name: str) -> None:
        """A namespace, with what a new one gets."""
        self._send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self._until(f"/api/v1/namespaces/{name}/serviceaccounts/default")

    def delete_namespace(self, name: str) -> None:
        """Returns at once; what is in it goes after that."""
        self._send("DELETE", f"/api/v1/namespaces/{name}")

    def claim(self, namespace: str, name: str, folder: Path) -> None:
        """A claim whose volume is a folder of the machines."""
        sizes = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        volume = {
            **sizes,
            "capacity": {"storage": "1200Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": namespace, "name": name},
            "hostPath": {"path": str(folder), "type": "Directory"},
        }
        claim = {**sizes, "resources": {"requests": {"storage": "1200Gi"}}, "volumeName": f"{namespace}-{name}"}
        claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        named = {"metadata": {"name": f"{namespace}-{name}"}, "spec": volume}
        self._send("POST", "/api/v1/persistentvolumes", named)
        self._send("POST", claims, {"metadata": {"name": name}, "spec": claim})
        self._until(f"{claims}/{name}", "Bound")

    def _until(self, path: str, phase: str | None = None) -> None:
        end = time.monotonic() + _TRIES
        while True:
            answer = self._client.get(path)
            if answer.status_code == 200 and answer.json().get("status", {}).get("phase") == phase:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"{path} does not come: {answer.status_code} {answer.text}")
            time.sleep(0.05)

    def _send(self, verb: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            answer = self._client.request(verb, path, json=body, params={"fieldValidation": "Strict"} if body else None)
            answer.raise_for_status()
        except httpx.HTTPStatusError as error:
            raise RuntimeError(f"{verb} {path}: {error.response.text}") from error
        except httpx.TransportError as error:
            raise RuntimeError(f"{verb} {path}: {error!r}") from error
        found: dict[str, Any] = answer.json()
        return found
