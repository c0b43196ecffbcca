"""Detects variables whose name or value looks like a secret: they belong in ``--secret``, not in a spec, which is stored in a bundle."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from itertools import pairwise

from hyperpod_jlab.core.finding import Finding

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
    return any(
        owner in _KEY_OWNERS and part in {"KEY", "KEYS"} for owner, part in pairwise(name_parts)
    )


def secret_name_findings(
    variables: Mapping[str, str], *, field: str = "environment.variables"
) -> tuple[Finding, ...]:
    """A warning for each variable that looks like a secret. Values are never repeated."""
    return tuple(
        secret_finding(name, field=field)
        for name, value in variables.items()
        if value and looks_secret(name, value)
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
