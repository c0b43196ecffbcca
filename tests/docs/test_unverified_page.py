"""docs/unverified.md is what the code says, and each fact has the check that it says."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from hyperpod_jlab.admin.verify.checks import READ_CHECKS
from hyperpod_jlab.admin.verify.service import FACTS
from hyperpod_jlab.admin.verify.write_checks import WRITE_CHECKS

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date():
    command = [sys.executable, "scripts/make_unverified.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_code_that_depends_on_a_fact_is_there():
    missing = [(fact.name, one) for fact in FACTS for one in fact.code if not (ROOT / one).exists()]
    assert missing == []


def test_each_fact_has_the_check_that_it_says():
    assert not [name for name, count in Counter(fact.name for fact in FACTS).items() if count > 1]
    for how, checks in (("read", READ_CHECKS), ("write", WRITE_CHECKS)):
        assert {fact.name for fact in FACTS if fact.how == how} == set(checks)
    assert FACTS[0].name == "update-domain-without-pass-role"
