"""What an admin says about a lifecycle configuration, and the rules on it."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.reach import quoted
from hyperpod_jlab.core.scheduler import KUBERNETES, SLURM
from hyperpod_jlab.core.validation import DNS_LABEL, LABEL

Orchestrator = Literal["slurm", "eks"]
SlurmAuth = Literal["munge", "jwt", "none"]

_SHA256 = re.compile(r"(?!0{64})[0-9a-f]{64}")
_PATH = re.compile(r"(?:s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/)?[A-Za-z0-9./_][A-Za-z0-9._+/@=-]{0,255}")
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
        kubeconfig: With EKS, add the cluster to the person's kubeconfig; ``hpj`` needs none, kubectl and helm do.
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

    @property
    def on_slurm(self) -> bool:
        """Whether Slurm orchestrates the cluster; else EKS does."""
        return self.orchestrator == "slurm"

    def check(self) -> None:
        """See that they can be meant.

        Raises:
            InvalidInputError: One cannot, with its name.
        """
        for field, pattern in _NAMES.items():
            value = getattr(self, field)
            if value is not None and re.fullmatch(pattern, value) is None:
                raise _invalid_setting(field, value, "it is not in the expected form")
        for field in _PATHS:
            value = getattr(self, field)
            if value is not None and not (value.startswith("/") and _PATH.fullmatch(value)):
                raise _invalid_setting(field, value, "use an absolute path without spaces")
        for host in self.login_nodes:
            if _HOST.fullmatch(host) is None:
                raise _invalid_setting("login_nodes", host, "write [USER@]HOST[:PORT]")
        self._check_package()
        self._check_tools()
        self._check_slurm()
        if self.orchestrator == "eks" and self.eks is None:
            raise _missing_setting("eks", "use the EKS cluster of the HyperPod cluster")

    def _check_package(self) -> None:
        if "==" in self.package:
            if _REQUIREMENT.fullmatch(self.package) is None:
                raise _invalid_setting("package", self.package, "such as hyperpod-jlab==1.2.3")
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
            raise _invalid_setting("tools", self.tools, "an archive of make-tools.sh ends with .tar.gz")
        _check_digest("tools_sha256", self.tools_sha256)

    def _check_slurm(self) -> None:
        if self.slurm_client is not None:
            _check_path("slurm_client", self.slurm_client)
            _check_digest("slurm_client_sha256", self.slurm_client_sha256)
        if self.slurm_auth == "munge":
            if self.munge_key is None:
                raise _missing_setting("munge_key", "give the path of the key; jwt or ssh are better")
            _check_path("munge_key", self.munge_key.removeprefix("secret:"))
            _check_digest("munge_key_sha256", self.munge_key_sha256)
        if self.slurm_auth == "jwt":
            if self.slurm_token is None:
                raise _missing_setting("slurm_token", "give the file with the token")
            _check_path("slurm_token", self.slurm_token)
        if not self.on_slurm and (self.slurm_client or self.slurm_auth != "none"):
            raise _invalid_setting(
                "slurm_client", self.slurm_client or self.slurm_auth, "it is a system folder without Slurm"
            )


def _check_path(field: str, value: str) -> None:
    if _PATH.fullmatch(value) is None or ".." in value.split("/"):
        raise _invalid_setting(field, value, "use a path or s3://BUCKET/KEY, without spaces and ..")


def _check_digest(field: str, value: str | None) -> None:
    if value is None:
        raise _missing_setting(field, "scripts that run in all spaces need a checksum: sha256sum FILE")
    if _SHA256.fullmatch(value) is None:
        raise _invalid_setting(
            field, value, "'sha256sum FILE' prints it: 64 hexadecimal digits in small letters, not all of them 0"
        )


def _invalid_setting(field: str, value: str, hint: str) -> InvalidInputError:
    return InvalidInputError(f"{field}: '{value[:60]}' cannot be used", hint=hint, detail={"field": field})


def _missing_setting(field: str, hint: str) -> InvalidInputError:
    return InvalidInputError(f"{field} is missing", hint=hint, detail={"field": field})


# --------------------------------------------------------------------------------------------------
# The cluster's table of the configuration file that a script writes. Which folder of the file system is mounted is known in the space only: ``@FOLDER@`` and ``@SUB@`` stand for it.

FOLDER = "@FOLDER@"
"""The mounted folder, such as ``/alice``; empty for the whole file system. Lines with it are left out when none is mounted."""

SUB = "@SUB@"
"""The same without its slash."""

WRAPPERS = "/opt/hyperpod-jlab/slurm"
"""Where a script with a token puts the commands that read it."""


def cluster_table(settings: ScriptSettings) -> str:
    """The table of the cluster, in TOML."""
    name = f'clusters."{settings.cluster}"'
    lines = [f"[{name}]", f"hyperpod = {quoted(settings.cluster)}"]
    lines += _slurm(settings) if settings.on_slurm else _kubernetes(settings, name)
    return "\n".join(lines) + "\n"


def _slurm(settings: ScriptSettings) -> list[str]:
    lines = [f"orchestrator = {quoted(SLURM)}"]
    if settings.login_nodes:
        hosts = ", ".join(quoted(host) for host in settings.login_nodes)
        lines += ['transport = "ssh"', f"login_nodes = [{hosts}]"]
    elif settings.slurm_auth == "jwt":
        lines.append(f"commands = {quoted(WRAPPERS)}")
    elif settings.slurm_client is not None:
        lines.append(f"commands = {quoted(settings.slurm_bin)}")
    if not settings.login_nodes and settings.slurm_client is not None:
        lines.append(f"slurm_conf = {quoted(settings.slurm_conf)}")
    lines += _optional_lines("user", settings.slurm_user) + _optional_lines("python", settings.python)
    return [*lines, f"storage = {quoted(settings.node_mount.rstrip('/') + FOLDER)}"]


def _kubernetes(settings: ScriptSettings, name: str) -> list[str]:
    lines = [f"orchestrator = {quoted(KUBERNETES)}", f"eks = {quoted(settings.eks or '')}"]
    lines += _optional_lines("namespace", settings.namespace) + _optional_lines("image", settings.image)
    lines += _optional_lines("python", settings.python)
    if settings.claim is None:
        return lines
    lines += [f"[{name}.storage]", f"claim = {quoted(settings.claim)}"]
    return [*lines, f"mount = {quoted(settings.claim_mount)}", f"sub_path = {quoted(SUB)}"]


def _optional_lines(key: str, value: str | None) -> list[str]:
    return [] if value is None else [f"{key} = {quoted(value)}"]


# --------------------------------------------------------------------------------------------------
# The scripts of lifecycle configurations, composed out of the shell parts in ``lifecycle-configs/``. Pure: the same settings give the same bytes.

__all__ = ["APPS", "MAX_BASE64", "App", "ScriptSettings", "config_name", "encoded", "render"]

App = Literal["jupyterlab", "code-editor"]
"""The application whose start runs the script."""

APPS: tuple[App, ...] = ("jupyterlab", "code-editor")

MAX_BASE64 = 12 * 1024
"""Characters of a script in base64. Studio takes 16,384; its documentation does not say whether of the text or of the base64."""

_BEGIN = ("status", "fetch", "package", "partition", "config", "start")
"""The parts that stand in a script, in order; the others come with the package that it installs."""

_HEAD = """\
#!/bin/bash
# Generated by hyperpod_jlab: sets up a Studio space for the HyperPod cluster {cluster}. Do not edit it; generate it again.
# The commented parts are in lifecycle-configs/ of hyperpod_jlab. It always exits with 0, so that an application starts even if the setup fails.
# shellcheck disable=SC1090,SC2034,SC2329
"""


def render(app: App, settings: ScriptSettings) -> str:
    """A whole script.

    Args:
        app: Whose start runs it.
        settings: What is to be prepared.

    Raises:
        InvalidInputError: A setting is wrong or missing, or the script would be too long.
    """
    settings.check()
    steps = ["package", "partition", "config", *(["tools"] if settings.tools else [])]
    steps.append("client" if settings.on_slurm else "access")
    steps.append("doctor")
    text = _HEAD.format(cluster=settings.cluster)
    text += "".join(f"{name}={_shell_quote(value)}\n" for name, value in _variables(app, settings).items())
    text += f"STEPS=({' '.join(steps)})\n"
    text += f"LATER=({' '.join(_later_parts(app, settings))})\n"
    text += "".join(_strip_comments(_part(f"begin/{name}.sh")) for name in _BEGIN)
    size = len(encoded(text))
    if size > MAX_BASE64:
        raise InvalidInputError(
            f"the script for {app} has {size} characters in base64, but the limit is {MAX_BASE64}",
            code="script_too_long",
            hint="shorten paths, names and the list of login nodes in the settings",
            detail={"field": "settings", "size": size},
        )
    return text


def _shell_quote(value: str) -> str:
    """A value for the shell, in quotes whatever it is."""
    return "'" + value.replace("'", "'\"'\"'") + "'"


def encoded(script: str) -> str:
    """A script as ``StudioLifecycleConfigContent`` wants it."""
    return base64.b64encode(script.encode()).decode()


def config_name(app: App, script: str) -> str:
    """The name of a StudioLifecycleConfig with this script: at most 63 characters, another one for another script (they cannot be changed)."""
    return f"hyperpod-jlab-{app}-{hashlib.sha256(script.encode()).hexdigest()[:12]}"


def _variables(app: App, settings: ScriptSettings) -> dict[str, str]:
    """The settings as the parts read them; empty: not set."""
    values = {
        "APP": app,
        "REGION": settings.region,
        "FILE_SYSTEM": settings.file_system,
        "PACKAGE": settings.package,
        "PACKAGE_SHA256": settings.package_sha256,
        "EXTRAS": "aws" if settings.on_slurm else "aws,kubernetes",
        "CLUSTER": settings.cluster,
        "CLUSTER_TABLE": cluster_table(settings),
        "SHARED": "true" if settings.shared else "false",
    }
    if settings.on_slurm:
        values |= {
            "SLURM_CLIENT": settings.slurm_client,
            "SLURM_CLIENT_SHA256": settings.slurm_client_sha256,
            "SLURM_AUTH": settings.slurm_auth,
            "SLURM_CONF": settings.slurm_conf,
            "SLURM_BIN": settings.slurm_bin,
        }
    if settings.slurm_auth == "munge":
        values |= {"MUNGE_KEY": settings.munge_key, "MUNGE_KEY_SHA256": settings.munge_key_sha256}
    if settings.slurm_auth == "jwt":
        values["SLURM_TOKEN"] = settings.slurm_token
    if settings.tools:
        values |= {"TOOLS": settings.tools, "TOOLS_SHA256": settings.tools_sha256}
    if settings.orchestrator == "eks" and settings.kubeconfig:
        values |= {"EKS": settings.eks, "NAMESPACE": settings.namespace}
    return {name: value or "" for name, value in values.items()}


def _later_parts(app: App, settings: ScriptSettings) -> list[str]:
    """The parts that a running script takes from the installed package."""
    names = [f"{app}/ready", "later/doctor", *(["later/tools"] if settings.tools else [])]
    if settings.on_slurm:
        return [*names, "later/slurm-client", f"later/slurm-{settings.slurm_auth}"]
    return [*names, "later/kubeconfig" if settings.kubeconfig else "later/eks"]


def _strip_comments(text: str) -> str:
    """A part without its comments and blank lines. The parts have no here-documents, so no other line can look like one."""
    lines = (line.lstrip() for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("#"))


@cache
def _part(name: str) -> str:
    """A file of ``lifecycle-configs/``: of the package as it was installed, else of the source tree."""
    packaged = files("hyperpod_jlab.admin.lifecycle").joinpath("shell", *name.split("/"))
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    tree = Path(__file__).resolve().parents[3] / "lifecycle-configs"
    return tree.joinpath(name).read_text(encoding="utf-8")
