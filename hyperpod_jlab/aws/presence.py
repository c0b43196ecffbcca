"""Whether anything here points to an AWS account, found without loading boto3: on a machine without AWS nobody is to pay for it."""

from __future__ import annotations

import os
from pathlib import Path

from hyperpod_jlab.aws.studio import find_studio

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
    files = (os.environ.get(name) or usual for name, usual in _FILES.items())
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
