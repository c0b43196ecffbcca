"""A child that sees real mounts where Studio mounts file systems, in a mount namespace of its own (see `tests.mounts`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hyperpod_jlab.clusters import configuration as partition_choice
from hyperpod_jlab.clusters.configuration import find_partition, load_settings
from testbed.aws.endpoint import Endpoint
from testbed.aws.server import AwsServer
from testbed.aws.state import Profile
from tests.mounts import tell

DOMAIN, REGION, KEY = "d-example", "us-west-2", "AKIATESTBEDEXAMPLE01"


def mount(disk: Path, **folders: str) -> Path:
    """Mount a folder of the disk under each name, as Studio does; returns where."""
    points = disk / "studio"
    for name, how in folders.items():
        source, point = disk / "real" / name, points / name
        source.mkdir(parents=True)
        point.mkdir(parents=True)
        subprocess.run(["mount", "--bind", source, point], check=True)
        if how == "ro":
            subprocess.run(["mount", "-o", "remount,bind,ro", point], check=True)
    partition_choice.STUDIO_MOUNT = points
    return points


def shared_space(disk: Path, **folders: str) -> None:
    """A shared space of Studio, and a table of mounts that says which folders of a file system are mounted."""
    metadata, table = disk / "metadata.json", disk / "mountinfo"
    arn = f"arn:aws:sagemaker:{REGION}:111122223333:app/{DOMAIN}/team/JupyterLab/default"
    metadata.write_text(json.dumps({"DomainId": DOMAIN, "SpaceName": "team", "ResourceArn": arn}))
    lines = ["22 1 259:1 / / rw - ext4 /dev/root rw"]
    for number, (name, folder) in enumerate(folders.items()):
        point = disk / "studio" / name
        lines.append(f"{30 + number} 22 0:40 / {point} rw - lustre 10.0.1.2@tcp:/x{folder} rw")
    table.write_text("\n".join(lines) + "\n")
    os.environ["RESOURCE_METADATA_FILE"] = str(metadata)
    os.environ["HYPERPOD_MOUNT_TABLE"] = str(table)
    os.environ["SAGEMAKER_SPACE_TYPE_LOWERCASE"] = "shared"


def chosen(disk: Path) -> dict[str, Any]:
    """What is chosen, and what is said."""
    choice = partition_choice.choose_partition(load_settings())
    root = choice.partition.root
    inside = root.is_relative_to(disk / "studio")
    return {"root": root.name if inside else None, "by": choice.chosen_by, "notes": list(choice.notes)}


def in_shared_space(disk: Path, deny: str | None = None) -> dict[str, Any]:
    """A private partition comes first by its name, a common one after it; SageMaker says which is which."""
    mount(disk, a="rw", b="rw")
    shared_space(disk, a="/alice", b="/vision")
    endpoint = Endpoint()
    endpoint.account.add_caller(KEY)
    endpoint.account.profiles[DOMAIN, "alice"] = Profile()
    if deny is not None:
        endpoint.faults.deny(deny)
    given = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": REGION}
    with AwsServer(endpoint) as server:
        os.environ.update({**given, "AWS_ENDPOINT_URL": server.url})
        found = chosen(disk)
        first = len(endpoint.calls)
        again = find_partition(load_settings()).root.name
    return {**found, "calls": first, "calls_again": len(endpoint.calls) - first, "again": again}


def run(case: str, disk: Path) -> dict[str, Any]:
    """One case."""
    for name in ("STATE", "CACHE", "CONFIG", "DATA"):
        os.environ[f"XDG_{name}_HOME"] = str(disk / name.lower())
    for name in [name for name in os.environ if name.startswith(("AWS_", "SAGEMAKER_", "HYPERPOD"))]:
        del os.environ[name]
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    os.environ["HYPERPOD_CONFIG"] = str(disk / "config.toml")
    (disk / "config.toml").touch()
    if case == "shared":
        return in_shared_space(disk)
    if case == "denied":
        return in_shared_space(disk, "sagemaker:DescribeUserProfile")
    if case == "two":
        mount(disk, a="rw", b="rw")
    elif case == "read-only":
        mount(disk, a="ro", b="rw")
    elif case == "configured":
        mount(disk, a="rw", b="rw")
        (disk / "config.toml").write_text(f'[storage]\npath = "{disk}/studio/b"\n')
    return chosen(disk)


if __name__ == "__main__":
    tell(run(sys.argv[1], Path(sys.argv[2])))
