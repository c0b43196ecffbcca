"""What an admin may be wrong about, and states in which AWS may be: each is told with what to do, the rest is done, and destroy takes all back."""

from __future__ import annotations

import copy

import pytest

from hyperpod_jlab.admin.fsx import apply as applying
from testbed.aws.network import NetworkInterface
from testbed.aws.state import LustreFileSystem, Profile, attached, lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, OTHER, STUDIO
from tests.admin.executor_kills import EFS, seen
from tests.aws.conftest import REGION

WHERE = ("--domain", DOMAIN, "--file-system", FILE_SYSTEM)
SECOND = "fs-0fedcba9876543210"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """SageMaker is quick here, so it is looked at often."""
    monkeypatch.setattr(applying, "POLL_S", 0.02)


class Admin:
    """An admin with the whole file system mounted at hand."""

    def __init__(self, account, hpj, disk):
        self._account, self._hpj, self.disk = account, hpj, disk
        self._at = ("--mounted-at", str(disk))

    def do(self, what, mode=None, *more, where=WHERE):
        words = [] if mode is None else ["--partition-mode", mode, *self._at]
        words += ["--yes"] if what in {"apply", "destroy"} else []
        return self._hpj("admin", what, *where, *words, *more)

    def steps(self, mode, *more):
        """The plan's steps by target."""
        told = self.do("plan", mode, *more, "--json").ok().json
        return {one["target"]: one for one in told["steps"]}

    def is_as(self, before):
        """Whether all of AWS is as it was."""
        return seen(self._account, self.disk)[:-1] == before[:-1]


@pytest.fixture
def admin(account, hpj, disk):
    return Admin(account, hpj, disk)


def spoiled_vpc(account):
    account.file_systems[REGION][0].vpc = "vpc-0fedcba9876543210"


def spoiled_subnet(account):
    account.file_systems[REGION][0].subnets = ["subnet-0fedcba9876543210"]


def spoiled_state(account):
    account.file_systems[REGION][0].lifecycle = "MISCONFIGURED"


def spoiled_group(account):
    del account.networks[REGION].groups[STUDIO]
    for one in account.networks[REGION].interfaces.values():
        one.groups = [OTHER]


def spoiled_domain(account):
    account.domains[DOMAIN].status = "Delete_Failed"


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (spoiled_vpc, "other_vpc"),
        (spoiled_subnet, "other_subnet"),
        (spoiled_state, "file_system_not_available"),
        (spoiled_group, "no_security_group"),
        (spoiled_domain, "domain_not_in_service"),
    ],
)
def test_what_can_never_be_is_refused_whole(account, admin, spoil, code):
    spoil(account)
    before = seen(account, admin.disk)
    for what in ("plan", "apply", "status"):
        done = admin.do(what, "shared", "--json")
        assert (done.code, done.error["code"]) == (2, code)
        assert done.error["hint"]
    assert seen(account, admin.disk) == before


def test_a_file_system_that_is_not_lustre(account, endpoint, admin):
    def openzfs(answer):
        for one in answer["FileSystems"]:
            one["FileSystemType"] = "OPENZFS"

    endpoint.faults.later["fsx:DescribeFileSystems"] = openzfs
    done = admin.do("apply", "shared", "--json")
    assert (done.code, done.error["code"]) == (2, "not_lustre")
    assert "OPENZFS" in done.error["message"]


def test_two_of_our_file_systems_in_one_domain(account, admin):
    """Each has marks of its own: one is taken back, and the other stays."""
    account.file_systems[REGION].append(LustreFileSystem(SECOND, "abcdefgh", interfaces=["eni-0000000000000000a"]))
    account.networks[REGION].add(NetworkInterface("eni-0000000000000000a", [OTHER], "10.0.0.9"))
    account.profiles[DOMAIN, "carol"].file_systems = [copy.deepcopy(EFS)]
    untouched = seen(account, admin.disk)
    second = ("--domain", DOMAIN, "--file-system", SECOND)
    admin.do("apply", "per-user").ok()
    with_first = seen(account, admin.disk)
    table = admin.disk.with_name("fsx-mounts")
    first = table.read_text()
    table.write_text(first.replace("x5kjbbmv", "abcdefgh"))
    admin.do("apply", "per-user", where=second).ok()
    table.write_text(first)
    assert account.profiles[DOMAIN, "carol"].file_systems == [
        EFS,
        lustre_at(FILE_SYSTEM, "/carol"),
        lustre_at(SECOND, "/carol"),
    ]
    admin.do("status", "per-user").ok()
    admin.do("destroy", where=second).ok()
    assert seen(account, admin.disk)[:-1] == with_first[:-1]
    admin.do("destroy").ok()
    assert admin.is_as(untouched)


def test_a_cluster_that_mounts_several(account, hpj):
    cluster = account.add_cluster("ml-cluster", REGION, orchestrator={"Slurm": {}})
    storage = [
        {"FsxLustreConfig": {"DnsName": f"{name}.fsx.{REGION}.amazonaws.com", "MountName": "abc"}}
        for name in (FILE_SYSTEM, SECOND)
    ]
    for number, one in enumerate(storage):
        cluster.add_group(f"g{number}", "ml.p5.48xlarge", 1, storage=[one])
    words = ("--domain", DOMAIN, "--cluster", "ml-cluster", "--partition-mode", "shared")
    done = hpj("admin", "plan", *words, "--json")
    assert (done.code, done.error["detail"]["field"]) == (2, "file_system")
    assert FILE_SYSTEM in done.error["message"]
    assert SECOND in done.error["message"]


@pytest.mark.parametrize("status", ["Failed", "Update_Failed", "Deleting", "Delete_Failed"])
def test_a_profile_that_cannot_be_changed_leaves_the_others(account, admin, status):
    account.profiles[DOMAIN, "bob"].status = status
    before = seen(account, admin.disk)
    found = admin.steps("per-user")["profile bob"]
    assert found["state"] == "blocked"
    assert status in found["reason"]
    done = admin.do("apply", "per-user")
    assert done.code == 1
    assert f"not done: profile bob: its status is {status}" in done.err
    assert account.profiles[DOMAIN, "alice"].file_systems == [lustre_at(FILE_SYSTEM, "/alice")]
    assert account.profiles[DOMAIN, "bob"].file_systems == []
    assert admin.do("status", "per-user").code == 1
    admin.do("destroy").ok()
    assert admin.is_as(before)


@pytest.mark.parametrize("status", ["Pending", "Updating"])
def test_a_profile_that_sagemaker_is_at_work_on_is_waited_for(account, endpoint, admin, status):
    profile = account.profiles[DOMAIN, "bob"]
    profile.status = status
    left = 12

    def settle(action, when):
        nonlocal left
        left -= action == "sagemaker:DescribeUserProfile" and when == "after"
        if left == 0:
            profile.status = "InService"

    endpoint.faults.interrupt = settle
    assert admin.steps("per-user")["profile bob"]["state"] == "waits"
    admin.do("apply", "per-user").ok()
    assert profile.file_systems == [lustre_at(FILE_SYSTEM, "/bob")]


def test_an_update_that_fails_at_sagemaker(account, admin):
    account.update_ends["bob"] = "Update_Failed"
    done = admin.do("apply", "per-user", "--json")
    assert (done.code, done.error["code"]) == (2, "not_in_service")
    assert "Update_Failed" in done.error["message"]
    assert done.error["hint"] == "the testbed lets it fail"
    results = {one["target"]: one["ok"] for one in done.json["results"]}
    assert (results["profile bob"], results["profile alice"]) == (False, True)


def full_of(count):
    return [{"EFSFileSystemConfig": {"FileSystemId": f"fs-{n:017x}"}} for n in range(count)]


def test_limits_of_ten_and_five(account, admin):
    account.profiles[DOMAIN, "bob"].file_systems = full_of(10)
    account.profiles[DOMAIN, "carol"].file_systems = full_of(9)
    account.spaces[DOMAIN, "work"].file_systems = [attached(f"fs-{n:017x}") for n in range(5)]
    for one in account.networks[REGION].interfaces.values():
        one.groups = [OTHER] * 5
    before = seen(account, admin.disk)
    steps = admin.steps("per-user")
    blocked = {target for target, one in steps.items() if one["state"] == "blocked"}
    interfaces = {f"network interface {name}" for name in account.networks[REGION].interfaces}
    assert blocked == {"profile bob", "space work", *interfaces}
    assert "10 are allowed" in steps["profile bob"]["reason"]
    assert "5 are allowed" in steps["space work"]["reason"]
    assert admin.do("apply", "per-user").code == 1
    assert len(account.profiles[DOMAIN, "carol"].file_systems) == 10
    assert account.profiles[DOMAIN, "bob"].file_systems == full_of(10)
    admin.do("destroy").ok()
    assert admin.is_as(before)


def test_a_list_that_others_fill_in_between(account, endpoint, admin):
    """The plan had room for it; nothing of theirs is thrown out."""

    def fill(action, when):
        if action == "sagemaker:AddTags" and when == "after":
            account.profiles[DOMAIN, "bob"].file_systems = full_of(10)

    endpoint.faults.interrupt = fill
    done = admin.do("apply", "per-user", "--profile", "bob", "--json")
    assert (done.code, done.error["code"]) == (2, "too_many_file_systems")
    assert account.profiles[DOMAIN, "bob"].file_systems == full_of(10)


def test_security_groups_that_others_add_in_between_stay(account, endpoint, admin):
    third = "sg-0cccccccccccccccc"
    account.networks[REGION].groups[third] = copy.copy(account.networks[REGION].groups[OTHER])
    interface = next(iter(account.networks[REGION].interfaces.values()))

    def add(action, when):
        if action == "ec2:CreateTags" and when == "after" and third not in interface.groups:
            interface.groups = [*interface.groups, third]

    endpoint.faults.interrupt = add
    admin.do("apply", "shared").ok()
    assert interface.groups == [OTHER, third, STUDIO]
    admin.do("destroy").ok()
    assert interface.groups == [OTHER, third]


def test_a_profile_that_is_deleted_in_mid_apply(account, endpoint, admin):
    def delete(action, when):
        if action == "sagemaker:AddTags" and when == "after":
            account.profiles.pop((DOMAIN, "bob"), None)

    endpoint.faults.interrupt = delete
    done = admin.do("apply", "per-user", "--json")
    assert done.code == 3
    results = {one["target"]: one for one in done.json["results"]}
    assert results["profile bob"]["error"]["code"] == "not_found"
    assert results["profile alice"]["ok"]
    admin.do("apply", "per-user").ok()
    admin.do("status", "per-user").ok()


RIGHTS = [
    ("sagemaker:UpdateUserProfile", "bob", "user-profile/d-example/bob"),
    ("sagemaker:UpdateDomain", DOMAIN, "domain/d-example"),
    ("sagemaker:UpdateSpace", "work", "space/d-example/work"),
    ("ec2:ModifyNetworkInterfaceAttribute", "eni-00000000000000001", "eni-00000000000000001"),
]


@pytest.mark.parametrize(("action", "name", "arn"), RIGHTS)
def test_a_right_that_is_missing_is_named_with_what_it_is_missing_on(account, endpoint, admin, action, name, arn):
    account.domains[DOMAIN].file_systems = [lustre_at(FILE_SYSTEM, "/old")]
    endpoint.faults.deny(action, name)
    done = admin.do("apply", "per-user", "--take-over", "--json")
    assert (done.code, done.error["code"]) == (4, "missing_right")
    assert action in done.error["message"]
    assert f"{arn} for your role" in done.error["hint"]
    endpoint.faults.denied.clear()
    admin.do("apply", "per-user", "--take-over").ok()
    admin.do("status", "per-user").ok()


def test_names_that_differ_only_in_case(account, admin):
    account.profiles[DOMAIN, "Alice"] = Profile()
    done = admin.do("apply", "per-user").ok()
    assert "alice" in done.err
    assert "Alice" in done.err
    assert {one.name for one in admin.disk.iterdir()} >= {"alice", "Alice"}
    # It is said, and is no drift.
    admin.do("status", "per-user").ok()


def test_there_and_back_while_spaces_run(account, admin):
    before = seen(account, admin.disk)
    space = account.spaces[DOMAIN, "work"]
    admin.do("apply", "shared").ok()
    space.apps = ["JupyterLab"]
    told = admin.do("plan", "per-user").ok().out
    assert "Restart these: space work (JupyterLab)" in told
    for mode in ("per-user", "shared", "per-user"):
        admin.do("apply", mode).ok()
        assert space.file_systems == [attached(FILE_SYSTEM)]
    # It has to be stopped to be changed itself, and is told so; nothing else waits for it.
    done = admin.do("destroy")
    assert (done.code, "not done: space work: it runs JupyterLab" in done.err) == (1, True)
    assert account.profiles[DOMAIN, "alice"].file_systems == []
    space.apps = []
    admin.do("destroy").ok()
    assert admin.is_as(before)


def test_one_profile_keeps_its_mode_when_the_domains_changes(account, admin):
    before = seen(account, admin.disk)
    admin.do("apply", "shared").ok()
    admin.do("apply", "per-user", "--profile", "alice").ok()
    admin.do("apply", "shared", "--profile", "bob").ok()
    for mode, carol in (("per-user", ["/carol"]), ("shared", [])):
        told = admin.do("plan", mode).ok().out
        assert "These keep their own mode: alice, bob." in told
        admin.do("apply", mode).ok()
        paths = {
            name: [one["FSxLustreFileSystemConfig"]["FileSystemPath"] for one in profile.file_systems]
            for (_, name), profile in account.profiles.items()
        }
        assert paths == {"alice": ["/alice"], "bob": ["/shared"], "carol": carol}
        admin.do("status", mode).ok()
    admin.do("destroy", None, "--profile", "alice").ok()
    admin.do("apply", "shared").ok()
    assert account.profiles[DOMAIN, "alice"].file_systems == []
    assert account.spaces[DOMAIN, "work"].file_systems == [attached(FILE_SYSTEM)]
    admin.do("destroy").ok()
    assert admin.is_as(before)
