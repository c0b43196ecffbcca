"""The SageMaker Studio environment of this process, from the metadata that Studio writes into each space."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

METADATA = Path("/opt/ml/metadata/resource-metadata.json")
"""Studio's path of it."""

VARIABLE = "RESOURCE_METADATA_FILE"
"""Environment variable with another path; AWS' own extensions know it too."""


@dataclass(frozen=True)
class Arn:
    """The parts of an ARN that locate a resource."""

    partition: str
    region: str
    account: str


@dataclass(frozen=True)
class Studio:
    """A Studio environment. Values that the metadata lack are None.

    Attributes:
        path: The metadata file.
        app_type: For example ``JupyterLab`` or ``CodeEditor``.
        domain_id: The domain.
        user_profile: The user profile; metadata of spaces often lack it.
        space: The space.
        role_arn: The execution role of this space.
        partition: ``aws``, ``aws-cn`` or ``aws-us-gov``.
        region: The region.
        account: The account's number.
        problems: Problems of the metadata, a sentence each.
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
    """The Studio environment; None outside Studio. Broken metadata is not an error: its problems are listed.

    Args:
        path: The metadata file; default: ``$RESOURCE_METADATA_FILE``, else Studio's path.
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
    # A domain's ARN has the region; a role's never does.
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
# Whether anything here points to an AWS account, without loading boto3: machines without AWS must
# not pay for it.

_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
)
"""Variables that contain credentials or say where they are."""

_FILES = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}

_VENDOR = Path("/sys/devices/virtual/dmi/id/sys_vendor")
"""The machine's vendor: an EC2 instance may have a role."""


def points_to_aws(vendor: Path = _VENDOR) -> bool:
    """Whether credentials may exist: a variable, a file of AWS' tools, Studio's metadata, or an EC2 instance.

    Args:
        vendor: The file that names the machine's vendor.
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
    except OSError:  # file missing or unreadable: not an EC2 instance
        return False
