"""A domain of Studio with people in it, and a file system that they are to share, in the testbed's AWS account."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hyperpod_jlab.storage.mounts import VARIABLE
from testbed.aws.network import SUBNET, Network, NetworkInterface, SecurityGroup
from testbed.aws.state import Account, Domain, LustreFileSystem, Profile, Space
from testbed.aws.studio import ROOT_MOUNT, whole_file_system
from testbed.aws.timeline import Timeline
from tests.aws.conftest import KEY, REGION, endpoint, home, hpj, no_aws

__all__ = ["endpoint", "home", "hpj", "no_aws"]

DOMAIN, FILE_SYSTEM = "d-example", "fs-0123456789abcdef0"
STUDIO, OTHER = "sg-0aaaaaaaaaaaaaaaa", "sg-0bbbbbbbbbbbbbbbb"


def domain_account() -> Account:
    """An account with a domain, three profiles, a space of one of them, a shared space, and a file system with two interfaces."""
    account = Account(timeline=Timeline(runs=True), update_time=timedelta(seconds=0.05))
    account.add_caller(KEY)
    account.domains[DOMAIN] = Domain(subnets=[SUBNET])
    for name in ("alice", "bob", "carol"):
        account.profiles[DOMAIN, name] = Profile()
    account.spaces[DOMAIN, "work"] = Space("alice")
    account.spaces[DOMAIN, "team"] = Space("alice", sharing="Shared")
    interfaces = [NetworkInterface(f"eni-0000000000000000{number}", [OTHER], f"10.0.0.{number}") for number in (1, 2)]
    network = Network()
    network.add(
        SecurityGroup(STUDIO, f"security-group-for-inbound-nfs-{DOMAIN}"),
        SecurityGroup(OTHER, "of-the-file-system"),
        *interfaces,
    )
    account.networks[REGION] = network
    account.file_systems[REGION] = [
        LustreFileSystem(FILE_SYSTEM, "x5kjbbmv", interfaces=[one.interface_id for one in interfaces])
    ]
    return account


def mounted(patch, folder):
    """Make a folder at which the whole file system is mounted, going by a table of mounts."""
    folder.mkdir()
    table = folder.with_name(f"{folder.name}-mounts")
    table.write_text(ROOT_MOUNT + whole_file_system(folder))
    patch.setenv(VARIABLE, str(table))
    return folder


@pytest.fixture
def disk(monkeypatch, tmp_path):
    """Where the whole file system is mounted."""
    return mounted(monkeypatch, tmp_path / "fsx")


@pytest.fixture
def account(endpoint):
    endpoint.account = domain_account()
    return endpoint.account
