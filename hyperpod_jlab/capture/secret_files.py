"""Files that hold secrets by their name: they stay here unless they are asked for by name."""

from __future__ import annotations

from fnmatch import fnmatchcase

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
    """Whether a file, by its path relative to the project, looks like one that holds secrets."""
    lower = path.lower()
    folders, _, name = lower.rpartition("/")
    if name in _HARMLESS:
        return False
    if _FOLDERS.intersection(folders.split("/")):
        return True
    if any(fnmatchcase(name, pattern) for pattern in _FILES):
        return True
    return any(fnmatchcase(f"/{lower}", f"*/{pattern}") for pattern in _PATHS)
