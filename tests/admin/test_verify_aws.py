"""``hpj admin verify-aws``: each fact is found as it is, nothing is changed without a word, and what was made is deleted."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime

import pytest

from hyperpod_jlab.admin.verify import write_checks
from hyperpod_jlab.admin.verify.models import mask_identifiers
from hyperpod_jlab.admin.verify.service import FACTS
from testbed.aws.example import example_account
from testbed.aws.state import Domain, Profile, StudioLifecycleConfig
from tests.admin.conftest import DOMAIN
from tests.admin.verify_account import FALSE, ROLE, WRITE, believed, labels, studio
from tests.aws.conftest import KEY, REGION

__all__ = ["believed", "labels"]

NAMES = {
    how: {fact.name for fact in FACTS if fact.how == how} for how in ("read", "write", "by hand")
}
READING = re.compile(r"\w+:(Describe|List|Get|Lookup|Simulate|Query)\w+")
NAME = "hyperpod-jlab-verify-0a1b2c3d"
"""What a run before might have called what it made."""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """SageMaker is quick here."""
    monkeypatch.setattr(write_checks, "TIMEOUT_S", 0.2)


@pytest.fixture
def verify(hpj):
    """Run it; the verdicts by fact, and the reasons."""

    def run(*words, code=0):
        done = hpj("admin", "verify-aws", *words, "--json")
        assert done.code == code, done.out + done.err
        return {one["fact"]: (one["verdict"], one["reason"]) for one in done.json["facts"]}

    return run


def verdicts(found, *names):
    return {found[name][0] for name in names}


def test_what_can_be_read_is_checked_and_nothing_is_changed(believed, endpoint, verify):
    before = studio(believed)
    found = verify("--domain", DOMAIN)
    assert {call.action for call in endpoint.calls if not READING.fullmatch(call.action)} == set()
    assert list(found) == [fact.name for fact in FACTS]
    assert verdicts(found, *(NAMES["read"] - {"addon-right"})) == {"holds"}
    assert found["addon-right"] == ("not checked", "needs --as-role: a role that you can assume")
    assert verdicts(found, *NAMES["write"], *NAMES["by hand"]) == {"not checked"}
    assert all("check by hand: " in found[name][1] for name in NAMES["by hand"])
    assert "you have iam:PassRole" in found["update-domain-without-pass-role"][1]
    assert studio(believed) == before
    found = verify("--as-role", ROLE, "--only", "addon-right")
    assert found == {"addon-right": ("holds", "the permission on the add-on is enough")}


def test_who_may_not_pass_the_role_on_is_told_that_the_fact_matters(believed, verify):
    deny = {"Effect": "Deny", "Action": "iam:PassRole", "Resource": "*"}
    allow = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [allow, deny]}
    believed.add_caller(KEY, "StudioRole", policy)
    found = verify("--domain", DOMAIN, "--only", "update-domain-without-pass-role")
    assert "this fact decides" in found["update-domain-without-pass-role"][1]


@pytest.mark.parametrize("name", sorted(NAMES["read"] - {"observability-labels"}))
def test_a_fact_that_is_false_is_found_by_reading(believed, verify, name):
    FALSE[name](believed)
    found = verify("--as-role", ROLE, "--only", name, code=1)
    assert found[name][0] == "does not hold"


def test_types_of_the_example_account_are_known_and_one_that_is_not_is_named(endpoint, verify):
    endpoint.account = example_account(REGION)
    found = verify("--only", "ec2-knows-types")
    words = "EC2 knows c5.xlarge, g5.2xlarge, g5.8xlarge, g5.xlarge, p5.48xlarge"
    assert found["ec2-knows-types"] == ("holds", words)
    del endpoint.account.ground.types["g5.xlarge"]
    found = verify("--only", "ec2-knows-types", code=1)
    assert found["ec2-knows-types"] == ("does not hold", "EC2 does not know g5.xlarge")


def test_other_labels_are_found(believed, labels, verify):
    labels["host"] = labels.pop("Hostname")
    found = verify("--only", "observability-labels", code=1)
    assert found["observability-labels"] == ("does not hold", "the labels are gpu, host")


def test_in_a_throw_away_domain_all_is_tried_and_nothing_is_left(believed, endpoint, hpj, home):
    before = studio(believed)
    done = hpj("admin", "verify-aws", *WRITE).ok()
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.+?) \|", done.out, re.MULTILINE))
    assert {rows[name] for name in NAMES["write"] | NAMES["read"]} == {"holds"}
    assert studio(believed) == before
    assert list((home.root / "state").rglob("hyperpod-jlab-verify-*")) == []
    assert "111122223333" not in done.out
    steps = [line for line in done.err.splitlines() if line.startswith("-> ")]
    assert [step.split()[1] for step in steps[:4]] == ["create", "create", "create", "update"]
    assert [step.split()[1] for step in steps[-4:]] == ["empty", "empty", "delete", "delete"]
    # Only what was made is changed: each change names it.
    (made,) = set(re.findall(r"hyperpod-jlab-verify-[0-9a-f]{8}", done.err))
    theirs = {"sts:AssumeRole", "iam:PassRole"}
    for call in endpoint.calls:
        if not READING.fullmatch(call.action) and call.action not in theirs:
            assert made in str(call.given) or DOMAIN not in str(call.given), call


@pytest.mark.parametrize("name", sorted(NAMES["write"]))
def test_a_fact_that_is_false_is_found_by_trying(believed, verify, name):
    before = studio(believed)
    FALSE[name](believed)
    found = verify(*WRITE, "--only", name, code=1)
    assert found[name][0] == "does not hold"
    assert studio(believed) == before


def test_a_role_that_is_passed_on_only_where_it_is_new(believed, verify):
    believed.otherwise.role_is_passed = "new"
    found = verify(*WRITE, "--only", "update-domain-without-pass-role", code=1)
    assert "where the space defaults had no role" in found["update-domain-without-pass-role"][1]


def test_without_a_role_to_assume_what_needs_one_is_not_checked(believed, verify):
    found = verify("--write", "--yes")
    needs = {name for name, (verdict, _) in found.items() if verdict == "not checked"}
    assert needs - NAMES["by hand"] == {
        "update-domain-without-pass-role",
        "file-system-list-is-replaced",
        "rights-before-existence",
        "addon-right",
    }


def test_each_step_is_named_before_it_is_done(believed, endpoint, hpj, monkeypatch, tmp_path):
    said = tmp_path / "stderr"
    words = {
        "CreateStudioLifecycleConfig": "create the lifecycle",
        "CreateDomain": "create the domain",
        "CreateUserProfile": "create the user profile",
        "CreateSpace": "create the space",
        "DeleteSpace": "delete the space",
        "DeleteUserProfile": "delete the user profile",
        "DeleteDomain": "delete the domain",
        "UpdateDomain": "(update|name) .*(temporary domain|space defaults)",
        "UpdateUserProfile": "temporary profile",
        "RevokeSecurityGroupIngress": "empty the security group",
        "DeleteSecurityGroup": "delete the security group",
    }
    unnamed, named = [], set()

    def look(action, when):
        operation = action.partition(":")[2]
        if when == "before" and operation in words:
            last = said.read_text().splitlines()[-1]
            named.add(operation)
            fitting = re.search(words[operation], last) or "which does not exist" in last
            if not (last.startswith("-> ") and (fitting or "without the permission" in last)):
                unnamed.append((operation, last))

    endpoint.faults.interrupt = look
    with said.open("w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        hpj("admin", "verify-aws", *WRITE).ok()
    assert (unnamed, named) == ([], set(words))


def test_nothing_without_a_word(believed, endpoint, hpj):
    done = hpj("admin", "verify-aws", "--write", "--json")
    assert (done.code, done.error["code"]) == (2, "not_confirmed")
    assert "the Studio domain hyperpod-jlab-verify-" in done.err
    assert not [call for call in endpoint.calls if not READING.fullmatch(call.action)]


@pytest.mark.parametrize(
    ("words", "field", "hint"),
    [
        (("--only", "node-targt"), "only", "node-target"),
        (("--as-role", "Tester"), "as_role", "arn:aws:iam::"),
        (("--write", "--yes", "--role", "x"), "role", "arn:aws:iam::"),
        (("--domain", "example"), "domain", "d-abc123"),
    ],
)
def test_bad_words_are_refused(believed, hpj, words, field, hint):
    done = hpj("admin", "verify-aws", *words, "--json")
    assert (done.code, done.error["detail"]["field"]) == (2, field)
    assert hint in done.error["hint"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--write", "--clean-up"), "--clean-up and --write cannot be used together"),
        (("--vpc", "vpc-1"), "--vpc is for the temporary domain"),
        (("--subnet", "subnet-1"), "--subnet is for the temporary domain"),
        (("--write", "--yes", "--only", "node-target"), "needs a temporary domain"),
        (("--write", "--yes", "--vpc", "vpc-1"), "is not the VPC of the domain"),
    ],
)
def test_options_without_use_are_refused_and_nothing_is_made(believed, hpj, words, message):
    before = studio(believed)
    done = hpj("admin", "verify-aws", *words, "--json")
    assert (done.code, studio(believed)) == (2, before)
    assert message in done.error["message"]


@pytest.mark.parametrize("words", [("--cluster", "nosuch"), ("--domain", "d-nosuch")])
def test_what_was_named_and_is_not_there_is_an_error(believed, hpj, words):
    done = hpj("admin", "verify-aws", *words, "--only", "node-target", "--json")
    assert done.code == 3
    assert "nosuch" in done.error["message"]


def test_without_any_domain_the_place_has_to_be_named(believed, hpj, verify):
    believed.domains.clear()
    done = hpj("admin", "verify-aws", "--write", "--yes", "--json")
    assert (done.code, done.error["detail"]["field"]) == (2, "vpc")
    place = ("--vpc", "vpc-0123456789abcdef0", "--subnet", "subnet-0123456789abcdef0")
    role = ("--role", "arn:aws:iam::111122223333:role/StudioRole")
    found = verify(*WRITE, *place, *role)
    assert verdicts(found, *NAMES["write"]) == {"holds"}
    assert believed.domains == {}


@pytest.mark.parametrize(
    "action",
    [
        "sagemaker:CreateStudioLifecycleConfig",
        "iam:PassRole",
        "sagemaker:CreateUserProfile",
    ],
)
def test_what_cannot_be_made_is_said_and_nothing_is_left(believed, endpoint, hpj, action):
    before = studio(believed)
    endpoint.faults.deny(action)
    done = hpj("admin", "verify-aws", "--write", "--yes", "--json")
    assert (done.code, done.error["code"]) == (4, "missing_right")
    reasons = {one["reason"] for one in done.json["facts"] if one["how"] == "write"}
    assert reasons == {
        f"the temporary domain could not be created: you do not have the permission {action}"
    }
    assert studio(believed) == before


def test_a_space_that_cannot_be_made_costs_no_other_fact(believed, endpoint, hpj):
    before = studio(believed)
    endpoint.faults.deny("sagemaker:CreateSpace")
    done = hpj("admin", "verify-aws", *WRITE)
    assert done.code == 4
    assert (
        "some parts could not be created: you do not have the permission sagemaker:CreateSpace"
        in done.out
    )
    assert "| `none-takes-script-out` | holds |" in done.out
    assert studio(believed) == before


def test_a_domain_that_fails_is_deleted_too(believed, hpj):
    before = studio(believed)
    believed.otherwise.domains_fail = True
    done = hpj("admin", "verify-aws", "--write", "--yes", "--json")
    assert (done.code, done.error["code"]) == (2, "not_in_service")
    assert studio(believed) == before


def test_what_cannot_be_deleted_is_said_and_deleted_later(believed, endpoint, hpj, home):
    before = studio(believed)
    endpoint.faults.deny("sagemaker:DeleteSpace")
    done = hpj("admin", "verify-aws", *WRITE)
    assert done.code == 4
    assert "left behind: hyperpod-jlab-verify-" in done.out
    assert "verify-aws --clean-up" in done.out
    done = hpj("admin", "verify-aws", "--only", "node-target").ok()
    assert "left by an earlier run: hyperpod-jlab-verify-" in done.out
    endpoint.faults.denied.clear()
    assert hpj("admin", "verify-aws", "--clean-up", "--yes").ok().out == "1 deleted\n"
    assert studio(believed) == before
    assert hpj("admin", "verify-aws", "--clean-up", "--yes").ok().out == "nothing is left\n"


def add_left(account, *, tag=NAME, created=None):
    """What a run on another machine has left."""
    when = created or account.timeline.now()
    account.domains["d-left"] = Domain(NAME, tags={"hyperpod-jlab-verify": tag}, created=when)
    account.profiles["d-left", NAME] = Profile()
    account.lifecycle_configs[REGION, NAME] = StudioLifecycleConfig(
        "", "JupyterLab", {"hyperpod-jlab-verify": tag}, when
    )


def test_what_another_machine_has_left_is_found_by_its_tag(believed, hpj):
    before = studio(believed)
    add_left(believed, created=datetime(2026, 1, 6, tzinfo=UTC))
    done = hpj("admin", "verify-aws", "--clean-up", "--yes", "--json").ok()
    assert done.json == {"deleted": [NAME]}
    assert studio(believed) == before


def test_what_another_machine_may_be_using_is_left_alone(believed, hpj):
    add_left(believed)
    before = studio(believed)
    done = hpj("admin", "verify-aws", "--clean-up", "--yes").ok()
    assert "is kept, because a run may be using it" in done.err
    assert (
        "not changed: hyperpod-jlab-verify-0a1b2c3d" in hpj("admin", "verify-aws", *WRITE).ok().out
    )
    assert studio(believed) == before


def test_what_only_bears_such_a_name_is_not_touched(believed, hpj):
    add_left(believed, tag="another", created=datetime(2026, 1, 6, tzinfo=UTC))
    before = studio(believed)
    assert hpj("admin", "verify-aws", "--clean-up", "--yes").ok().out == "nothing is left\n"
    assert studio(believed) == before


def test_a_domain_with_something_of_others_in_it_stays(believed, hpj):
    add_left(believed, created=datetime(2026, 1, 6, tzinfo=UTC))
    believed.profiles["d-left", "zoe"] = Profile()
    before = studio(believed)
    done = hpj("admin", "verify-aws", "--clean-up", "--yes", "--json")
    assert (done.code, done.error["code"]) == (2, "not_ours")
    assert "zoe" in done.error["message"]
    assert studio(believed) == before


def test_reports_say_nothing_of_whose_account_it_is():
    text = (
        "User: arn:aws:sts::111122223333:assumed-role/Admin/jane@example.com is not authorized on "
        "arn:aws:eks:us-west-2:111122223333:addon/c/*, key AKIATESTBEDEXAMPLE01, by jane@example.com"
    )
    assert mask_identifiers(text) == (
        "User: arn:aws:sts::<account>:assumed-role/<name> is not authorized on "
        "arn:aws:eks:us-west-2:<account>:addon/c/*, key <key>, by <address>"
    )
