"""Access to a cluster's API server: address and credentials from a kubeconfig, from inside a pod, or from an EKS cluster's name."""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import InvalidInputError, UnsupportedError
from hyperpod_jlab.engines.kubernetes.api.credentials import (
    Credentials,
    ExecPlugin,
    FixedToken,
    PackageToken,
    TokenFile,
    TokenSource,
    basic,
    load_chain,
)
from hyperpod_jlab.engines.kubernetes.api.kubeconfig import (
    KubeconfigContext,
    KubeconfigEntry,
    find_proxy,
    kubeconfig_files,
    read_context,
)

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token and the API server's certificate authority."""


@dataclass(frozen=True)
class ApiAccess:
    """An API server and the credentials for it.

    Attributes:
        server: Its address.
        verify: The context that verifies its certificate; False without TLS.
        headers: Returns a request's headers. It renews a token that expires soon (exec plug-ins),
            which may block: call it in a thread.
        proxy: Address of a proxy, or None.
        renew: Makes the next `headers` ignore all cached tokens. Blocking.
        server_name: The name in the API server's certificate if it differs from its address.
    """

    server: str
    verify: ssl.SSLContext | bool
    headers: Callable[[], dict[str, str]]
    proxy: str | None = None
    renew: Callable[[], None] = lambda: None
    server_name: str | None = None


def load_access(config: KubernetesCluster) -> ApiAccess:
    """Load the access for a configured cluster. Blocking.

    Raises:
        InvalidInputError: No kubeconfig is usable, or the context does not exist.
        DeniedError: The kubeconfig's authentication failed.
        UnsupportedError: A required package is not installed.
        NotFoundError: The EKS cluster does not exist.
        UnreachableError: AWS does not answer.
    """
    if config.eks is not None:
        from hyperpod_jlab.engines.kubernetes.api.eks import eks_access

        return eks_access(config.eks)
    if config.context is None and not kubeconfig_files() and _is_in_pod():
        return service_account_access()
    return kubeconfig_access(read_context(config.context))


def kubeconfig_access(context: KubeconfigContext) -> ApiAccess:
    """Access from a kubeconfig context."""
    cluster, user = context.cluster, context.user
    server = cluster.text("server").rstrip("/")
    tls = server.startswith("https://")
    verify = (
        tls_context(
            ca_file=cluster.path("certificate-authority"),
            ca_data=cluster.text("certificate-authority-data"),
            insecure=cluster.data.get("insecure-skip-tls-verify") is True,
        )
        if tls
        else None
    )
    if verify is not None:
        _client_certificate(verify, user)
    credentials = Credentials(_source(context, verify), _fixed(user))
    return ApiAccess(
        server=server,
        verify=verify or False,
        headers=credentials.headers,
        proxy=find_proxy(server, cluster.text("proxy-url")),
        renew=credentials.renew,
        server_name=cluster.text("tls-server-name") or None,
    )


def service_account_access() -> ApiAccess:
    """Access from inside a pod, with its service account's permissions."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    name = f"[{host}]" if ":" in host else host
    credentials = Credentials(TokenFile(SERVICE_ACCOUNT_DIR / "token"))
    return ApiAccess(
        server=f"https://{name}:{port}",
        verify=tls_context(ca_file=SERVICE_ACCOUNT_DIR / "ca.crt"),
        headers=credentials.headers,
        renew=credentials.renew,
    )


def tls_context(*, ca_file: Path | None = None, ca_data: str = "", insecure: bool = False) -> ssl.SSLContext:
    """The TLS context that verifies an API server's certificate.

    Args:
        ca_file: The certificate authority.
        ca_data: The same in base64, which overrides the file. Without both, the machine's own
            authorities are used.
        insecure: Skip verification.

    Raises:
        InvalidInputError: The certificate authority is unreadable.
    """
    try:
        text = base64.b64decode(ca_data).decode("ascii") if ca_data else None
        file = ca_file if text is None else None
        context = ssl.create_default_context(cafile=file, cadata=text)
    except (OSError, ssl.SSLError, binascii.Error, ValueError) as error:
        raise InvalidInputError(
            "the certificate authority in the kubeconfig cannot be read",
            code="invalid_kubeconfig",
            hint="download the kubeconfig again",
        ) from error
    # Clusters' own authorities, including EKS', lack what Python 3.13 began to require.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_in_pod() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (SERVICE_ACCOUNT_DIR / "token").is_file()


def _client_certificate(context: ssl.SSLContext, user: KubeconfigEntry) -> None:
    certificate = _data(user, "client-certificate")
    key = _data(user, "client-key")
    if certificate and key:
        load_chain(context, certificate, key)


def _data(user: KubeconfigEntry, name: str) -> bytes:
    """Data that a kubeconfig contains in base64 or names as a file."""
    try:
        if inline := user.text(f"{name}-data"):
            return base64.b64decode(inline)
        path = user.path(name)
        return path.read_bytes() if path is not None else b""
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"the {name} in the kubeconfig cannot be read", code="invalid_kubeconfig") from error


def _source(context: KubeconfigContext, verify: ssl.SSLContext | None) -> TokenSource | None:
    user = context.user
    # A token file overrides a token: the file's is newer (client-go does the same).
    if (path := user.path("tokenFile")) is not None:
        return TokenFile(path)
    if user.text("token"):
        return FixedToken(user.text("token"))
    exec_config = user.data.get("exec")
    if isinstance(exec_config, Mapping):
        return ExecPlugin(exec_config, user.folder, context.cluster, verify)
    if user.data.get("auth-provider"):
        return PackageToken(kubeconfig_files(), context.name)
    return None


def _fixed(user: KubeconfigEntry) -> dict[str, str]:
    """Fixed headers."""
    headers: dict[str, str] = {}
    if user.text("username"):
        headers |= basic(user.text("username"), user.text("password"))
    if user.data.get("as-groups") or user.data.get("as-user-extra"):
        raise UnsupportedError(
            "the kubeconfig uses impersonation with groups (as-groups), which is not supported", code="impersonation"
        )
    if user.text("as"):
        headers["Impersonate-User"] = user.text("as")
    if user.text("as-uid"):
        headers["Impersonate-Uid"] = user.text("as-uid")
    return headers
