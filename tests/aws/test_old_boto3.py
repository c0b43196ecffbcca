"""The boto3 of Studio's images beside an AWS of today: every feature does the same, or says which boto3 it needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hyperpod_jlab.aws.errors import BOTO3_SINCE
from hyperpod_jlab.aws.permissions import FEATURES
from hyperpod_jlab.aws.session import forget_session
from tests.aws.feature_account import space_of
from tests.aws.feature_runs import ON_A_TERMINAL, RUNS, SUBMIT

SCRIPT = Path(__file__).parents[2] / "scripts" / "ensure-boto3.sh"
VERSION = "1.37.3"

PASSING = re.compile(
    r'"\d{4}-\d\d-\d\dT[^"]*"|"(free|files_free|used)": \d+|[\d.]+ [KMGT]i?B'
    r'|"points": \[[^\]]*\]|"(last|mean|lowest|highest)": [\d.]+'
)
"""What is another a second or a minute later: times, the room on a disk, and the values of metrics."""
NEWER = {
    "BatchRebootClusterNodes",
    "BatchReplaceClusterNodes",
    "DescribeClusterEvent",
    "ListClusterEvents",
    "ListMlflowApps",
}
"""What boto3 1.37.3 does not have."""

OF_MODEL = frozenset({"validate", "create-cluster"})
"""Commands that check a file by boto3's model: what an old one does not know it cannot send, and says so."""

UPGRADE = "pip install --upgrade boto3"


@pytest.fixture(scope="module")
def old_boto3() -> Path:
    """The folder of an old boto3."""
    done = subprocess.run([SCRIPT, VERSION], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


@pytest.fixture
def ask(endpoint, no_aws, home, hpj, tmp_path, prometheus):
    """Asks a new account from a space of Studio by a command line; gives the answer and the actions.

    With boto3 from another folder it is a process of its own.
    """
    features = space_of(endpoint, no_aws, tmp_path, home, prometheus.url)

    def asked(words, boto3=None):
        features.begin()
        forget_session()
        line = [*(word.format(**features.names) for word in words), "--json"]
        found = home.process(*line, env={"PYTHONPATH": str(boto3)}) if boto3 else hpj(*line)
        return found, {call.action for call in endpoint.calls}

    return asked


LINES = [
    pytest.param(words, id="-".join(words))
    for words in dict.fromkeys(
        words
        for feature in FEATURES
        if feature.name in RUNS and feature.name not in ON_A_TERMINAL
        for words in RUNS[feature.name]
        # Each run, and each throw-away domain, has a name of its own.
        if words != SUBMIT and "--write" not in words and "--mlflow" not in words
        # A link is made for what a run has told to MLflow.
        if words[:2] != ("mlflow", "link")
    )
]


def test_it_is_the_old_one(old_boto3):
    done = subprocess.run(
        [sys.executable, "-c", "import boto3, botocore; print(boto3.__version__)"],
        env={**os.environ, "PYTHONPATH": str(old_boto3)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == VERSION


@pytest.mark.parametrize("words", LINES)
def test_a_feature_is_the_same_or_says_what_it_needs(ask, old_boto3, words):
    wanted, needed = ask(words)
    found, asked = ask(words, old_boto3)
    said = f"{found.out}{found.err}"
    if OF_MODEL.intersection(words) and UPGRADE in said:
        assert (found.code, asked <= needed) == (2, True)
        return
    newer = {action for action in needed if action.partition(":")[2] in NEWER}
    if newer:
        assert asked == needed - newer
        for action in newer:
            needs = f"boto3 {VERSION} does not know {action}: it needs boto3 >= {BOTO3_SINCE[action]}"
            assert needs in found.out + found.err
        return
    assert asked == needed
    assert (found.code, found.err) == (wanted.code, wanted.err)
    assert PASSING.sub("", found.out) == PASSING.sub("", wanted.out)
