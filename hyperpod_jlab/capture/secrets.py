"""Detects secrets in variables, addresses and files: they belong in ``--secret``, not in a spec or a project file, which are stored in a bundle."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from hyperpod_jlab.capture.captured import ProjectFile
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.storage import descent

_SECRET_WORDS = {
    "APIKEY",
    "CREDENTIAL",
    "CREDENTIALS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PAT",
    "SECRET",
    "SECRETS",
    "TOKEN",
}
_KEY_OWNERS = {"ACCESS", "ACCOUNT", "API", "AUTH", "ENCRYPTION", "LICENSE", "PRIVATE", "SECRET"}
# HF_TOKEN_PATH or DB_PASSWORD_FILE name a secret's location and are not secrets.
_LOCATION_WORDS = {"DIR", "FILE", "PATH", "ENDPOINT", "URL", "URI", "TYPE", "NAME"}
_VALUE = re.compile(
    r"(hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|sk-[A-Za-z0-9_-]{20,}"
    r"|(AKIA|ASIA)[A-Z0-9]{16}|xox[abp]-[A-Za-z0-9-]{10,}|glpat-[\w-]{16,}|-----BEGIN [A-Z ]*PRIVATE KEY-----.*"
    r"|[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@$]+@\S*)",
    re.DOTALL,
)


def looks_secret(name: str, value: str = "") -> bool:
    """Whether a variable is probably a secret, by its name or the format of its value."""
    if _VALUE.fullmatch(value):
        return True
    name_parts = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).upper().split("_")
    if name_parts[-1] in _LOCATION_WORDS or value.startswith("/"):
        return False
    if _SECRET_WORDS.intersection(name_parts):
        return True
    return any(owner in _KEY_OWNERS and part in {"KEY", "KEYS"} for owner, part in pairwise(name_parts))


def secret_name_findings(variables: Mapping[str, str], *, field: str = "environment.variables") -> tuple[Finding, ...]:
    """A warning for each variable that looks like a secret. Values are never repeated."""
    return tuple(
        secret_finding(name, field=field) for name, value in variables.items() if value and looks_secret(name, value)
    )


def secret_finding(name: str, location: str = "", field: str = "source") -> Finding:
    """The warning for one variable; `location` precedes the message."""
    return Finding(
        level="warning",
        code="secret_in_variable",
        message=f"{location}{name} looks like a secret, but its value would be readable in the files of the run",
        hint=f"use --secret {name} instead",
        field=field,
    )


# --------------------------------------------------------------------------------------------------
# Files whose names suggest secrets: they are excluded unless included by name.

_FOLDERS = {".aws", ".azure", ".docker", ".gnupg", ".kube", ".ssh"}
_FILES = (
    "*.jks",
    "*.kdbx",
    "*.key",
    "*.keystore",
    "*.ovpn",
    "*.p12",
    "*.pem",
    "*.pfx",
    "*.ppk",
    ".env",
    ".env.*",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    "_netrc",
    "application_default_credentials.json",
    "credentials.json",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "kaggle.json",
    "kubeconfig",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "service-account*.json",
    "service_account*.json",
)
_PATHS = (".cache/huggingface/token", ".huggingface/token", ".config/gcloud/*")
_HARMLESS = (".env.dist", ".env.example", ".env.sample", ".env.template")


def is_secret_file(path: str) -> bool:
    """Whether a file's path relative to the project suggests that it contains secrets."""
    lower = path.lower()
    folders, _, name = lower.rpartition("/")
    if name in _HARMLESS:
        return False
    if _FOLDERS.intersection(folders.split("/")):
        return True
    if any(fnmatchcase(name, pattern) for pattern in _FILES):
        return True
    return any(fnmatchcase(f"/{lower}", f"*/{pattern}") for pattern in _PATHS)


# --------------------------------------------------------------------------------------------------
# Passwords and tokens in the addresses of package files. The patterns take time in proportion to the
# text, whatever it is: each begins only where a word or a parameter does.

MAX_PACKAGE_BYTES = 8 << 20
"""How much of a project's package files is searched."""
_MAX_NAMED = 5

_PACKAGE_FILE = re.compile(
    r"(pyproject\.toml|uv\.(lock|toml)|pip\.conf|(environment|conda)\.ya?ml|\.condarc|Pipfile.*|poetry\.(lock|toml)|setup\.cfg)"
)
_USER_INFO = re.compile(r"(?<![\w+.-])(?P<scheme>[\w+.-]+://)(?P<user>[^/\s:]*)(?P<password>:[^/\s]*)?@(?=\S)")
"""Up to the last ``@``, as pip reads it: a password may have one, too."""
_PARAMETER = re.compile(
    r"(?P<name>[?&;#](?:[\w.-]*(?:token|secret|passwd|password|passphrase|credentials?|signature|(?:access|api|private)[_-]?key)|(?:[\w.-]*[_.-])?(?:auth|pat|sig))=)"
    r"(?P<value>(?:\$\{[A-Z0-9_]+\}|[^&;#\s\"'<>,)\]}])+)",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"(\$\{[A-Z0-9_]+\})+")


def without_credentials(text: str) -> str:
    """A text whose addresses have no passwords and tokens, neither before the host nor as parameters. ``${NAME}``, which the installers replace, and the user of ssh stay."""
    return _PARAMETER.sub(_without_value, _USER_INFO.sub(_without_user, text))


def _without_user(match: re.Match[str]) -> str:
    user, password = match["user"], match["password"]
    if _REFERENCE.fullmatch(password[1:] if password else user):
        return match[0]
    return match["scheme"] + (f"{user}@" if "ssh" in match["scheme"] else "")


def _without_value(match: re.Match[str]) -> str:
    return match[0] if _REFERENCE.fullmatch(match["value"]) else match["name"]


def is_package_file(path: str) -> bool:
    """Whether a project file may name a private index, by its path: also ``requirements/dev.txt``."""
    if path.endswith((".txt", ".in")) and ("requirements" in path or "constraints" in path):
        return True
    return _PACKAGE_FILE.fullmatch(path.rpartition("/")[2]) is not None


def read_package_file(file: ProjectFile) -> str:
    """A package file's text, from which its bytes can be made again.

    Raises:
        OSError: It cannot be read, or is larger than `MAX_PACKAGE_BYTES`.
    """
    return descent.read(file.source, MAX_PACKAGE_BYTES).decode("utf-8", "surrogateescape")


def credential_findings(project: Sequence[ProjectFile]) -> tuple[Finding, ...]:
    """A warning that names the package files whose addresses have passwords or tokens; these are never repeated."""
    found, remaining = [], MAX_PACKAGE_BYTES
    for file in project:
        if not is_package_file(file.path) or file.size > remaining:
            continue
        try:
            text = read_package_file(file)
        except OSError:
            continue  # the copy reports it
        remaining -= len(text)
        if without_credentials(text) != text:
            found.append(file.path)
    if not found:
        return ()
    names = ", ".join(found[:_MAX_NAMED]) + (", ..." if len(found) > _MAX_NAMED else "")
    return (
        Finding(
            level="warning",
            code="credentials_in_files",
            message=f"{names}: the addresses have passwords or tokens, which would be readable in the files of the run",
            hint="write ${NAME} in their place and use --secret NAME, or leave the files out with .hyperpodignore",
            field="files",
        ),
    )
