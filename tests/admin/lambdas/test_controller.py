"""Folders by a session on Slurm's controller, made by the package's functions: a new profile has its own at once, and nothing else stands still without the controller."""

from __future__ import annotations

import stat

import pytest

from testbed.aws.node_channel import NodeChannel
from testbed.aws.state import Profile, Space, attached, lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.admin.lambdas.conftest import properties
from tests.admin.lambdas.test_new_profile import EFS, again, batch, event, space_event
from tests.admin.lambdas.test_rights import grant
from tests.admin.test_node_errand import CLUSTER, MOUNT, cluster

__all__ = ["cluster"]

GIVEN = {"mode": "per-user", "ClusterName": CLUSTER, "Folders": "cluster", "ClusterUser": "1000"}


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "fsx"
    folder.mkdir()
    return folder


@pytest.fixture
def node(account, cluster, root):
    words = ["unshare", "--mount", "sh", "-c", MOUNT, "sh", str(root)]
    with NodeChannel(account, words) as made:
        yield made


@pytest.fixture
def environment(function):
    function.environment |= {
        "HPJ_DOMAIN_ID": DOMAIN,
        "HPJ_FILE_SYSTEM_ID": FILE_SYSTEM,
        "HPJ_PARTITION_MODE": "per-user",
        "HPJ_FOLDERS": "cluster",
        "HPJ_CLUSTER_NAME": CLUSTER,
        "HPJ_CLUSTER_USER": "1000",
    }
    return function


def test_folders_are_made_by_the_stack(account, endpoint, stack, environment, node, root):
    grant(account, "custom_resource")
    answer = stack.create(**properties(**GIVEN))
    assert answer["Status"] == "SUCCESS", stack.invoked[-1].log
    assert {one.name for one in root.iterdir()} == {"alice", "bob", "carol"}
    assert account.profiles[DOMAIN, "alice"].file_systems == [lustre_at(FILE_SYSTEM, "/alice")]

    # A new one at once, with a space of its own, under exactly the function's policy.
    account.profiles[DOMAIN, "dora"] = Profile(uid=10001, gid=1001)
    account.spaces[DOMAIN, "dora-work"] = Space("dora")
    grant(account, "new_profile")
    node.loses, node.turned = 1, True
    invoked = environment.invoke("new_profile", batch(event("dora"), space_event("dora-work")))
    assert again(invoked) == set(), invoked.log
    found = (root / "dora").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode) & 0o707) == (10001, 1001, 0o700)
    assert account.profiles[DOMAIN, "dora"].file_systems == [lustre_at(FILE_SYSTEM, "/dora")]
    assert account.spaces[DOMAIN, "dora-work"].file_systems == [attached(FILE_SYSTEM)]

    # Once more is no change, and no folder that somebody else has is taken.
    (root / "ed").mkdir()
    (root / "ed" / "data").touch()
    account.profiles[DOMAIN, "ed"] = Profile()
    assert again(environment.invoke("new_profile", batch(event("dora"), event("ed")))) == set()
    assert account.profiles[DOMAIN, "ed"].file_systems == []
    assert (root / "ed").stat().st_uid == 0


def test_without_the_controller_all_else_goes_on_and_it_is_said(account, stack, environment, node):
    node.breaks = 1000
    answer = stack.create(**properties(**GIVEN))
    assert answer["Status"] == "SUCCESS"
    assert "folders cannot be checked" in answer["Data"]["Summary"]
    account.profiles[DOMAIN, "dora"] = Profile(file_systems=[EFS])
    assert again(environment.invoke("new_profile", batch(event("dora")))) == {"message-0"}
    assert account.profiles[DOMAIN, "dora"].file_systems == [EFS]
    error = environment.invoke("reconcile", {}).error
    assert error["errorType"] == "RefusedError"
    assert "folders cannot be checked" in error["errorMessage"]
    # The controller is back.
    node.breaks = 0
    assert again(environment.invoke("new_profile", batch(event("dora")))) == set()
    wanted = [EFS, lustre_at(FILE_SYSTEM, "/dora")]
    assert account.profiles[DOMAIN, "dora"].file_systems == wanted
    assert environment.invoke("reconcile", {}).error is None


def test_a_timer_on_the_cluster_is_left_to_make_them(account, endpoint, stack, node):
    answer = stack.create(**properties(**{**GIVEN, "Folders": "timer"}))
    assert answer["Status"] == "SUCCESS"
    assert not [one for one in endpoint.calls if one.action.startswith("ssm:")]
