"""Where in SageMaker Studio this process runs, by the metadata that Studio lays into each space."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

METADATA = Path("/opt/ml/metadata/resource-metadata.json")
"""Where Studio lays it."""

VARIABLE = "RESOURCE_METADATA_FILE"
"""Environment variable that names another file; AWS' own extensions know it too."""


@dataclass(frozen=True)
class Arn:
    """The parts of an ARN that tell where something is."""

    partition: str
    region: str
    account: str


@dataclass(frozen=True)
class Studio:
    """A place in Studio. Whatever the metadata does not say is None.

    Attributes:
        path: The metadata.
        app_type: Such as ``JupyterLab`` or ``CodeEditor``.
        domain_id: The domain.
        user_profile: The user profile; applications of spaces often do not say it.
        space: The space.
        role_arn: The role that this space acts with.
        partition: ``aws``, ``aws-cn`` or ``aws-us-gov``.
        region: The region.
        account: The account's number.
        problems: What is wrong with the metadata, a sentence each.
    """

    path: Path
    app_type: str | None = None
    domain_id: str | None = None
    user_profile: str | None = None
    space: str | None = None
    role_arn: str | None = None
    partition: str | None = None
    region: str | None = None
    account: str | None = None
    problems: tuple[str, ...] = ()


def find_studio(path: Path | None = None) -> Studio | None:
    """The place in Studio; None outside of it. Metadata that is broken is no error: its problems are told.

    Args:
        path: The metadata; default: what ``$RESOURCE_METADATA_FILE`` names, else where Studio lays it.
    """
    path = path or Path(os.environ.get(VARIABLE) or METADATA)
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        return Studio(path, problems=(f"{path} cannot be read: {error}",))
    try:
        metadata = json.loads(text)
    except ValueError:
        return Studio(path, problems=(f"{path} is not valid JSON",))
    if not isinstance(metadata, dict):
        return Studio(path, problems=(f"{path} is not a JSON object",))
    return _studio(path, metadata)


def _studio(path: Path, metadata: Mapping[str, Any]) -> Studio:
    texts = {name: value for name, value in metadata.items() if isinstance(value, str) and value}
    # A domain's own ARN has the region; a role's never has one.
    resource = parse_arn(texts.get("ResourceArn"))
    role = parse_arn(texts.get("ExecutionRoleArn"))
    arn = resource or role
    missing = [name for name in ("DomainId", "ResourceArn") if name not in texts]
    return Studio(
        path,
        app_type=texts.get("AppType"),
        domain_id=texts.get("DomainId"),
        user_profile=texts.get("UserProfileName"),
        space=texts.get("SpaceName"),
        role_arn=texts.get("ExecutionRoleArn"),
        partition=arn.partition if arn else None,
        region=(resource.region or None) if resource else None,
        account=arn.account if arn else None,
        problems=tuple(f"{path} has no {name}" for name in missing),
    )


def parse_arn(text: str | None) -> Arn | None:
    """The parts of an ARN, ``arn:partition:service:region:account:resource``; None for anything else."""
    parts = (text or "").split(":", 5)
    if len(parts) < 6 or parts[0] != "arn":
        return None
    return Arn(parts[1], parts[3], parts[4])


# --------------------------------------------------------------------------------------------------
# Whether anything here points to an AWS account, found without loading boto3: on a machine without AWS nobody is to pay for it.

_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
)
"""Variables that give credentials or say where they are."""

_FILES = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}

_VENDOR = Path("/sys/devices/virtual/dmi/id/sys_vendor")
"""Who made the machine: an instance of EC2 may have a role."""


def points_to_aws(vendor: Path = _VENDOR) -> bool:
    """Whether credentials may be here: a variable, a file of AWS' tools, Studio's metadata, or an instance of EC2.

    Args:
        vendor: The file that names the machine's maker.
    """
    if any(os.environ.get(name) for name in _VARIABLES):
        return True
    files = (os.environ.get(name) or default_path for name, default_path in _FILES.items())
    if any(Path(name).expanduser().is_file() for name in files):
        return True
    return find_studio() is not None or _is_ec2(vendor)


def _is_ec2(vendor: Path) -> bool:
    if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return False
    try:
        return "amazon" in vendor.read_text(errors="replace").lower()
    except OSError:  # no such file: no machine of theirs, or none that tells
        return False
