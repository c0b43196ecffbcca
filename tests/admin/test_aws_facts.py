"""``hpj doctor --aws``: each fact is found as it is, and nothing is changed."""

from __future__ import annotations

import copy
import re

import pytest

from hyperpod_jlab.admin.aws_facts import steps
from testbed.aws.example import example_account
from tests.admin.facts_account import FALSE, believed, labels
from tests.aws.conftest import REGION

__all__ = ["believed", "labels"]

KEYS = [step.key for step in steps()]
READING = re.compile(r"\w+:(Describe|List|Get|Lookup|Query)\w+")


@pytest.fixture
def facts(hpj):
    """The levels and the evidence of the facts, by key."""

    def run(*words):
        found = hpj("doctor", "--aws", "--json", *words).json["checks"]
        return {one["key"]: (one["level"], one["evidence"]) for one in found if one["key"] in KEYS}

    return run


def test_all_facts_are_checked_and_nothing_is_changed(believed, endpoint, facts):
    before = copy.deepcopy((believed.domains, believed.profiles, believed.networks[REGION].groups))
    found = facts()
    assert {call.action for call in endpoint.calls if not READING.fullmatch(call.action)} == set()
    assert list(found) == KEYS
    assert {level for level, _ in found.values()} == {"ok"}, found
    after = (believed.domains, believed.profiles, believed.networks[REGION].groups)
    assert before == after


def test_without_the_option_no_fact_is_checked(believed, hpj):
    found = hpj("doctor", "--json").json["checks"]
    assert not {one["key"] for one in found} & set(KEYS)


@pytest.mark.parametrize("name", sorted(FALSE))
def test_a_fact_that_is_false_fails_and_says_what_it_means(believed, hpj, name):
    FALSE[name](believed)
    done = hpj("doctor", "--aws", "--json")
    (check,) = [one for one in done.json["checks"] if one["key"] == name]
    assert (done.code, check["level"], check["who"]) == (2, "fail", "admin")
    assert check["fix"]


def test_other_labels_are_found(believed, labels, facts):
    labels["host"] = labels.pop("Hostname")
    assert facts()["observability-labels"] == ("fail", "the labels are gpu, host")


def test_types_of_the_example_account_are_known_and_one_that_is_not_is_named(endpoint, facts):
    endpoint.account = example_account(REGION)
    words = "EC2 knows c5.xlarge, g5.2xlarge, g5.8xlarge, g5.xlarge, p5.48xlarge"
    assert facts()["ec2-knows-types"] == ("ok", words)
    del endpoint.account.ground.types["g5.xlarge"]
    assert facts()["ec2-knows-types"] == ("fail", "EC2 does not know g5.xlarge")


def test_what_one_may_not_ask_is_not_checked(believed, endpoint, facts):
    endpoint.faults.deny("sagemaker:ListClusters")
    found = facts()
    assert found["node-target"][0] == "unknown"
    assert "sagemaker:ListClusters" in found["node-target"][1]
    assert found["create-space-event"][0] == "ok"


def test_an_account_without_clusters_has_nothing_to_check(believed, facts):
    believed.clusters.clear()
    believed.trail = []
    assert {level for level, _ in facts().values()} == {"unknown"}
