"""A space of Studio, simulated: its metadata, its environment, and a partition of an FSx for Lustre file system that is mounted in it.

The mount is told by a table of mounts, for nobody has Lustre at hand: the folder is an ordinary one, at the place and under the name that
Studio would give it. The cluster's machines see the same folder at another path (`SimulatedStudio.bind`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from testbed.aws.example import FILE_SYSTEM, MOUNT_NAME
from testbed.aws.state import Account, Space, attached

MOUNTS = Path("mnt", "custom-file-systems", "fsx_lustre")
"""Where Studio mounts file systems, from the root."""

_SERVER = "10.0.1.2@tcp"
ROOT_MOUNT = "22 1 259:1 / / rw - ext4 /dev/root rw\n"
"""The rest of a table of mounts, where it does not matter."""


def whole_file_system(point: Path) -> str:
    """The line of a table of mounts by which the whole of the example's file system is mounted somewhere, as an admin has it."""
    return f"31 22 0:41 / {point} rw - lustre {_SERVER}:/{MOUNT_NAME} rw\n"


@dataclass(frozen=True)
class SimulatedStudio:
    """A space. `write` makes its files.

    Attributes:
        folder: Where they lie.
        region: The region.
        domain: The domain's id.
        space: The space's name.
        user_profile: The user profile; metadata of spaces often do not say it, so None leaves it out.
        owner: Whose space it is, as AWS knows it.
        partition: The storage partition: the folder of the file system that is mounted.
        app_type: The application.
        root: Below what the mount point lies; default: `folder`. With ``/`` it is Studio's own, which then need not be there.
    """

    folder: Path
    region: str
    domain: str = "d-example"
    space: str = "work"
    user_profile: str | None = None
    owner: str = "alice"
    partition: str = "/alice"
    app_type: str = "JupyterLab"
    root: Path | None = None

    @property
    def mount_point(self) -> Path:
        """Where the partition is in the space."""
        return (self.root or self.folder) / MOUNTS / FILE_SYSTEM

    @property
    def metadata(self) -> Path:
        """The file that Studio lays into the space."""
        return self.folder / "resource-metadata.json"

    @property
    def mount_table(self) -> Path:
        """The table of mounts."""
        return self.folder / "mountinfo"

    @property
    def bind(self) -> str:
        """For ``slurm-testbed.sh start --mount``: the partition where the cluster has it."""
        return f"{self.mount_point}:/fsx{self.partition}"

    @property
    def environment(self) -> dict[str, str]:
        """What makes a process one of the space, and what of Studio's variables we read."""
        return {
            "RESOURCE_METADATA_FILE": str(self.metadata),
            "HYPERPOD_MOUNT_TABLE": str(self.mount_table),
            "AWS_REGION": self.region,
        }

    def write(self, account: Account, *, others: str = ROOT_MOUNT) -> None:
        """Make the files, and the space in the account.

        Args:
            account: Where SageMaker knows the space from.
            others: The lines of the table of mounts that come before the partition's.
        """
        account.spaces[self.domain, self.space] = Space(self.owner, file_systems=[attached(FILE_SYSTEM)])
        where = f"{account.partition}:sagemaker:{self.region}:{account.account_id}"
        told = {
            "AppType": self.app_type,
            "DomainId": self.domain,
            "UserProfileName": self.user_profile,
            "SpaceName": self.space,
            "ExecutionRoleArn": f"arn:{account.partition}:iam::{account.account_id}:role/StudioRole",
            "ResourceArn": f"arn:{where}:app/{self.domain}/{self.space}/{self.app_type}/default",
            "ResourceName": "default",
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({name: value for name, value in told.items() if value is not None})
        self.metadata.write_text(text)
        self.mount("rw", others=others)

    def mount(self, how: str | None, *, others: str = ROOT_MOUNT) -> None:
        """Mount the partition anew.

        Args:
            how: Mount options, such as ``rw`` or ``ro,noatime``; None: not at all.
            others: The lines that come before the partition's.
        """
        line = f"30 22 0:40 / {self.mount_point} {how} - lustre {_SERVER}:/{MOUNT_NAME}{self.partition} rw\n"
        self.mount_table.write_text(others + (line if how else ""))
