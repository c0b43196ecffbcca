"""Ending a process of ``hpj`` with SIGKILL at one of its changes of AWS, and what there is then."""

from __future__ import annotations

import copy
import stat
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

from testbed.aws.endpoint import Endpoint
from testbed.aws.faults import ConnectionCutError, When
from testbed.aws.state import Account, Profile
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, domain_account
from tests.aws.conftest import REGION
from tests.cli.conftest import Home

WHERE = ("--domain", DOMAIN, "--file-system", FILE_SYSTEM)
CHANGING = frozenset(
    {
        "ec2:CreateTags",
        "ec2:DeleteTags",
        "ec2:ModifyNetworkInterfaceAttribute",
        "sagemaker:AddTags",
        "sagemaker:DeleteTags",
        "sagemaker:UpdateDomain",
        "sagemaker:UpdateSpace",
        "sagemaker:UpdateUserProfile",
    }
)
EFS = {"EFSFileSystemConfig": {"FileSystemId": "fs-0efefefefefefefef"}}


def account_of_others() -> Account:
    """The domain of the tests, in which somebody else has set something too, and SageMaker is quick."""
    account = domain_account()
    account.update_time = timedelta(seconds=0.02)
    account.profiles[DOMAIN, "carol"].file_systems = [copy.deepcopy(EFS)]
    account.profiles[DOMAIN, "dave"] = Profile(uid=20007)
    account.domains[DOMAIN].tags["team"] = "vision"
    return account


def words_of(wanted: str, disk: Path) -> tuple[str, ...]:
    """What an admin types to have a mode, or ``nothing``."""
    if wanted == "nothing":
        return ("admin", "destroy", *WHERE, "--yes")
    mode = ("--partition-mode", wanted, "--mounted-at", str(disk))
    return ("admin", "apply", *WHERE, *mode, "--yes")


def seen(account: Account, disk: Path) -> Any:
    """All that applying may change."""
    folders = {
        one.name: (one.stat().st_uid, one.stat().st_gid, stat.S_IMODE(one.stat().st_mode)) for one in disk.iterdir()
    }
    things = (account.domains, account.profiles, account.spaces, account.networks[REGION].interfaces)
    return copy.deepcopy((*things, folders))


def partitions(account: Account) -> dict[str, str | None]:
    """What an application of each profile mounts of the file system: by its own list, or, without one, by the domain's."""
    default = account.domains[DOMAIN].file_systems
    found: dict[str, str | None] = {}
    for (_, name), profile in account.profiles.items():
        listed = [one.get("FSxLustreFileSystemConfig") for one in profile.file_systems or default]
        paths = [one["FileSystemPath"] for one in listed if one]
        found[name] = paths[0] if paths else None
    return found


class Killer:
    """Kills a process at one of its changes.

    Args:
        endpoint: The AWS that it asks.
        home: Whose process it is.
    """

    def __init__(self, endpoint: Endpoint, home: Home) -> None:
        self._endpoint = endpoint
        self._home = home

    def run(self, words: tuple[str, ...], number: int, when: When) -> bool:
        """Run ``hpj`` and kill it before or after its change of that number is done; whether it had so many."""
        count = 0
        started: subprocess.Popen[bytes] | None = None

        def interrupt(action: str, at: When) -> None:
            nonlocal count
            if action not in CHANGING or at != when:
                return
            count += 1
            if count >= number:
                assert started is not None
                started.kill()
                raise ConnectionCutError

        self._endpoint.faults.interrupt = interrupt
        try:
            quiet = subprocess.DEVNULL
            started = self._home.start(*words, stdin=quiet, stdout=quiet, stderr=quiet)
            code = started.wait(60)
        finally:
            self._endpoint.faults.interrupt = None
        assert (code == 0) == (count < number), (code, count, number)
        return code != 0
