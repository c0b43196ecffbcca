"""What an admin says about a lifecycle configuration, and the rules on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.validation import DNS_LABEL, LABEL

Orchestrator = Literal["slurm", "eks"]
SlurmAuth = Literal["munge", "jwt", "none"]

_SHA256 = re.compile(r"(?!0{64})[0-9a-f]{64}")
_PATH = re.compile(
    r"(?:s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/)?[A-Za-z0-9./_][A-Za-z0-9._+/@=-]{0,255}"
)
_REQUIREMENT = re.compile(r"hyperpod[-_]jlab==[0-9][0-9A-Za-z.!+]{0,40}")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9][A-Za-z0-9.-]{0,252}(?::[0-9]{1,5})?")
_NAMES = {
    "region": r"^[a-z]{2}(-[a-z]+)+-\d+$",
    "file_system": r"^fs-[0-9a-f]{8,17}$",
    "slurm_user": r"^[a-z_][a-z0-9_-]{0,31}$",
    "eks": r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$",
    "namespace": DNS_LABEL,
    "claim": r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
    "image": r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$",
    "cluster": LABEL,
}
_PATHS = ("node_mount", "python", "claim_mount", "slurm_conf", "slurm_bin")


@dataclass(frozen=True)
class ScriptSettings:
    """What a script prepares. Paths that do not begin with a slash are meant from the storage partition.

    Attributes:
        cluster: The HyperPod cluster; its name in the configuration too.
        region: The AWS region.
        orchestrator: What schedules on it.
        file_system: The file system of FSx for Lustre; None: the only one that the space has.
        package: hyperpod_jlab: a wheel, or a folder of wheels with a list ``SHA256SUMS``, on the partition or at ``s3://`` (a folder ends with a
            slash); or ``hyperpod-jlab==VERSION`` of the package index.
        package_sha256: SHA-256 of the wheel, or of the folder's ``SHA256SUMS``. Only of the package index it need not be given.
        slurm_client: Slurm's commands: an archive (``.tar.gz``) that is unpacked at ``/``, or a folder of Debian packages with ``SHA256SUMS``;
            None: the image has them, or nobody needs them.
        slurm_client_sha256: SHA-256 of that archive or list.
        slurm_auth: How the space's Slurm client says who it is.
        munge_key: With munge: where the key is: ``secret:NAME`` of Secrets Manager, a path, or ``s3://``.
        munge_key_sha256: SHA-256 of the key's bytes.
        slurm_token: With jwt: the file that holds the person's token, which somebody renews; it is read at each call.
        slurm_conf: Slurm's configuration file.
        slurm_bin: Folder of Slurm's commands.
        slurm_user: Who runs run as on the cluster, when not this one.
        login_nodes: Machines of the cluster for ssh, in place of commands in the space.
        node_mount: Where the nodes mount the whole file system.
        python: The interpreter on the nodes, or in the image.
        eks: The EKS cluster's name.
        namespace: Namespace of the runs.
        image: Container image of the runs.
        claim: Persistent volume claim of the file system; None: pods do not see it.
        claim_mount: Where pods mount it.
        kubeconfig: With EKS, add the cluster to the person's kubeconfig; `hpj` needs none, kubectl and helm do.
        tools: An archive (``.tar.gz``) of programs for terminals, such as kubectl, helm and session-manager-plugin; None: those of the image.
        tools_sha256: SHA-256 of that archive.
        shared: Whether people see each other's runs on the partition.
    """

    cluster: str
    region: str
    orchestrator: Orchestrator
    file_system: str | None
    package: str
    package_sha256: str | None
    slurm_client: str | None = None
    slurm_client_sha256: str | None = None
    slurm_auth: SlurmAuth = "none"
    munge_key: str | None = None
    munge_key_sha256: str | None = None
    slurm_token: str | None = None
    slurm_conf: str = "/opt/slurm/etc/slurm.conf"
    slurm_bin: str = "/opt/slurm/bin"
    slurm_user: str | None = None
    login_nodes: tuple[str, ...] = ()
    node_mount: str = "/fsx"
    python: str | None = None
    eks: str | None = None
    namespace: str | None = None
    image: str | None = None
    claim: str | None = None
    claim_mount: str = "/data"
    kubeconfig: bool = True
    tools: str | None = None
    tools_sha256: str | None = None
    shared: bool = False

    def check(self) -> None:
        """See that they can be meant.

        Raises:
            InvalidInputError: One cannot, with its name.
        """
        for field, pattern in _NAMES.items():
            value = getattr(self, field)
            if value is not None and re.fullmatch(pattern, value) is None:
                raise _wrong(field, value, "it does not look like one")
        for field in _PATHS:
            value = getattr(self, field)
            if value is not None and not (value.startswith("/") and _PATH.fullmatch(value)):
                raise _wrong(field, value, "write a whole path, without blanks")
        for host in self.login_nodes:
            if _HOST.fullmatch(host) is None:
                raise _wrong("login_nodes", host, "write [USER@]HOST[:PORT]")
        self._check_package()
        self._check_tools()
        self._check_slurm()
        if self.orchestrator == "eks" and self.eks is None:
            raise _missing("eks", "name the EKS cluster behind the HyperPod cluster")

    def _check_package(self) -> None:
        if "==" in self.package:
            if _REQUIREMENT.fullmatch(self.package) is None:
                raise _wrong("package", self.package, "such as hyperpod-jlab==1.2.3")
            if self.package_sha256 is not None:
                _check_digest("package_sha256", self.package_sha256)
            return
        _check_path("package", self.package)
        _check_digest("package_sha256", self.package_sha256)

    def _check_tools(self) -> None:
        if self.tools is None:
            return
        _check_path("tools", self.tools)
        if not self.tools.endswith(".tar.gz"):
            raise _wrong("tools", self.tools, "an archive of make-tools.sh ends with .tar.gz")
        _check_digest("tools_sha256", self.tools_sha256)

    def _check_slurm(self) -> None:
        if self.slurm_client is not None:
            _check_path("slurm_client", self.slurm_client)
            _check_digest("slurm_client_sha256", self.slurm_client_sha256)
        if self.slurm_auth == "munge":
            if self.munge_key is None:
                raise _missing("munge_key", "say where the key is; better still: jwt, or ssh")
            _check_path("munge_key", self.munge_key.removeprefix("secret:"))
            _check_digest("munge_key_sha256", self.munge_key_sha256)
        if self.slurm_auth == "jwt":
            if self.slurm_token is None:
                raise _missing("slurm_token", "say which file holds the token")
            _check_path("slurm_token", self.slurm_token)
        if self.orchestrator != "slurm" and (self.slurm_client or self.slurm_auth != "none"):
            raise _wrong("slurm_client", self.slurm_client or self.slurm_auth, "no Slurm is there")


def _check_path(field: str, value: str) -> None:
    if _PATH.fullmatch(value) is None or ".." in value.split("/"):
        raise _wrong(field, value, "write a path or s3://BUCKET/KEY, without blanks and ..")


def _check_digest(field: str, value: str | None) -> None:
    if value is None:
        raise _missing(field, "what is run in everybody's space is pinned: sha256sum FILE")
    if _SHA256.fullmatch(value) is None:
        raise _wrong(
            field,
            value,
            "'sha256sum FILE' prints it: 64 hexadecimal digits in small letters, not all of them 0",
        )


def _wrong(field: str, value: str, hint: str) -> InvalidInputError:
    return InvalidInputError(
        f"{field}: '{value[:60]}' cannot be used", hint=hint, detail={"field": field}
    )


def _missing(field: str, hint: str) -> InvalidInputError:
    return InvalidInputError(f"{field} is missing", hint=hint, detail={"field": field})
