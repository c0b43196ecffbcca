"""Kubernetes authentication: bearer tokens, exec plug-ins and client certificates, renewed before they expire. Everything may block: call it in a thread."""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from hyperpod_jlab.core.errors import DeniedError, InvalidInputError, UnsupportedError
from hyperpod_jlab.engines.kubernetes.api.kubeconfig import KubeconfigEntry

_FILE_TTL_S = 60.0
"""Seconds after which a token file is read again: in pods it is rewritten about every hour."""
_EARLY = 120.0
"""Seconds before its expiry at which a token is renewed."""
_MAX_EXEC_S = 60.0
_MAX_TEXT = 300
_MIN_SECRET_LENGTH = 6
_SUBCOMMAND = re.compile(r"[a-z][a-z-]{0,40}")
_SECRET_OPTION = re.compile(r"(?i)^-.*(?:secret|token|pass|key|credential|auth|pin)")


@dataclass(frozen=True)
class Token:
    """A token and its expiry (Unix seconds), or None if unknown."""

    value: str
    expires_at: float | None = None


class TokenSource(Protocol):
    """A source of tokens."""

    def fetch(self) -> Token:
        """Fetch a valid token. Blocking. Raises `HyperpodError`."""
        ...


class Credentials:
    """Authentication headers, renewed before they expire. Thread-safe."""

    def __init__(self, source: TokenSource | None, fixed: Mapping[str, str] | None = None) -> None:
        self._source = source
        self._fixed = dict(fixed or {})
        self._token: Token | None = None
        self._lock = threading.Lock()

    def headers(self) -> dict[str, str]:
        """The headers for a request."""
        if self._source is None:
            return dict(self._fixed)
        with self._lock:
            if self._token is None or _expires_soon(self._token):
                self._token = self._source.fetch()
            return {**self._fixed, "Authorization": f"Bearer {self._token.value}"}

    def renew(self) -> None:
        """Discard all cached tokens."""
        with self._lock:
            self._token = None


def _expires_soon(token: Token) -> bool:
    return token.expires_at is not None and time.time() > token.expires_at - _EARLY


class FixedToken:
    """A token from the kubeconfig."""

    def __init__(self, value: str) -> None:
        self._value = value

    def fetch(self) -> Token:
        return Token(self._value)


class TokenFile:
    """A token in a file that another program rewrites."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def fetch(self) -> Token:
        """Read the file."""
        try:
            value = self._path.read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            raise InvalidInputError(f"the token file {self._path} cannot be read", code="invalid_kubeconfig") from error
        return Token(value, time.time() + _EARLY + _FILE_TTL_S)


class ExecPlugin:
    """A program that returns tokens or a client certificate (client.authentication.k8s.io)."""

    def __init__(
        self, exec_config: Mapping[str, Any], folder: Path, cluster: KubeconfigEntry, context: ssl.SSLContext | None
    ) -> None:
        self._exec_config, self._folder, self._cluster = exec_config, folder, cluster
        self._context = context
        self._version = str(exec_config.get("apiVersion") or "client.authentication.k8s.io/v1beta1")
        self._command = str(exec_config.get("command") or "")
        if exec_config.get("interactiveMode") == "Always":
            raise UnsupportedError(
                f"{self._command} asks for input, but there is no terminal here",
                code="interactive_login",
                hint="use a login that needs no input",
            )

    def fetch(self) -> Token:
        """Run the program."""
        status = self._run().get("status")
        status = status if isinstance(status, dict) else {}
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if certificate and key and self._context is not None:
            load_chain(self._context, str(certificate).encode(), str(key).encode())
        value = str(status.get("token") or "")
        if not value and not certificate:
            raise self._exec_error("it printed neither a token nor a certificate")
        return Token(value, _parse_time(status.get("expirationTimestamp")))

    def _run(self) -> dict[str, Any]:
        argv = [self._program(), *map(str, self._exec_config.get("args") or [])]
        extra_env = {str(entry["name"]): str(entry["value"]) for entry in self._exec_config.get("env") or []}
        environment = {**os.environ, **extra_env, "KUBERNETES_EXEC_INFO": json.dumps(self._info())}
        try:
            completed = subprocess.run(
                argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_MAX_EXEC_S, check=False
            )
        except FileNotFoundError as error:
            raise self._exec_error("the program is not on PATH") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._exec_error(f"it could not be run ({type(error).__name__})") from error
        if completed.returncode != 0:
            lines = completed.stderr.decode("utf-8", "replace").strip().splitlines()
            last_line = self._mask_secrets(lines[-1])[:_MAX_TEXT] if lines else ""
            raise self._exec_error(last_line or f"exit code {completed.returncode}")
        try:
            document = json.loads(completed.stdout)
        except ValueError as error:
            raise self._exec_error("its output is not valid JSON") from error
        return document if isinstance(document, dict) else {}

    def _program(self) -> str:
        """A relative path with a folder starts at the kubeconfig's folder."""
        if not self._command:
            raise self._exec_error("the kubeconfig has no command")
        return str(self._folder / self._command) if os.sep in self._command else self._command

    def _info(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": False}
        if self._exec_config.get("provideClusterInfo"):
            names = ("server", "certificate-authority-data", "tls-server-name")
            spec["cluster"] = {name: self._cluster.text(name) for name in names if self._cluster.text(name)}
        return {"apiVersion": self._version, "kind": "ExecCredential", "spec": spec}

    def _exec_error(self, detail: str) -> DeniedError:
        return DeniedError(
            f"{self._command or 'the kubeconfig'} returned no credentials: {detail}",
            code="login_failed",
            hint=f"run {self._command_text()} in a terminal, with the arguments that the kubeconfig gives it",
        )

    def _command_text(self) -> str:
        """The program and its first argument. The rest may contain a secret, such as a client's, and must not appear on a screen or in a report."""
        first = next(map(str, self._exec_config.get("args") or []), "")
        argv = [self._command, first] if _SUBCOMMAND.fullmatch(first) else [self._command]
        return " ".join(argv)[:_MAX_TEXT] or "the program"

    def _mask_secrets(self, line: str) -> str:
        """Mask the values of the program's options and variables in a line of its output."""
        env_values = [str(entry.get("value") or "") for entry in self._exec_config.get("env") or []]
        previous = ""
        for argument in map(str, self._exec_config.get("args") or []):
            name, equals, value = argument.partition("=")
            if _SECRET_OPTION.search(name):
                env_values.append(value if equals else "")
            elif _SECRET_OPTION.search(previous):
                env_values.append(argument)
            previous = argument if argument.startswith("-") and not equals else ""
        for value in sorted(set(env_values), key=len, reverse=True):
            if len(value) >= _MIN_SECRET_LENGTH:
                line = line.replace(value, "***")
        return line


class PackageToken:
    """Authentication that only the package `kubernetes` supports (auth-provider: OpenID Connect)."""

    def __init__(self, files: Sequence[Path], context: str) -> None:
        self._files, self._context = files, context

    def fetch(self) -> Token:
        """Fetch a token from the package."""
        try:
            from kubernetes import client
            from kubernetes import config as kube
        except ImportError:
            raise UnsupportedError(
                "the kubeconfig uses an auth-provider, which needs a package that is not installed",
                code="kubernetes_missing",
                hint="pip install kubernetes",
            ) from None
        configuration = client.Configuration()
        try:
            kube.load_kube_config(  # type: ignore[no-untyped-call] # the package has no types here
                os.pathsep.join(map(str, self._files)), self._context, configuration, persist_config=False
            )
        except Exception as error:  # the login libraries below it may raise any exception
            raise DeniedError(
                f"the auth-provider of the kubeconfig returned no credentials ({type(error).__name__})",
                code="login_failed",
                hint="log in again as for kubectl",
            ) from error
        authorization = str(configuration.auth_settings().get("BearerToken", {}).get("value") or "")
        return Token(authorization.removeprefix("Bearer ").strip(), time.time() + _EARLY + _FILE_TTL_S)


def basic(user: str, password: str) -> dict[str, str]:
    """Basic authentication header."""
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {encoded}"}


def load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a client certificate into a context, through a temporary file that is deleted afterwards.

    Raises:
        InvalidInputError: Certificate or key is invalid, or they do not match.
    """
    with tempfile.NamedTemporaryFile(prefix="hpj-", suffix=".pem") as file:  # readable by its owner only
        file.write(certificate + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except (ssl.SSLError, OSError) as error:
            raise InvalidInputError(
                "the client certificate and its key cannot be used", code="invalid_kubeconfig"
            ) from error


def _parse_time(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp() if text else None
    except ValueError:
        return None
