"""docs/unverified.md names code that exists, and marks as *read* the facts that ``hpj doctor --aws`` checks."""

import re
from collections import Counter
from pathlib import Path

from hyperpod_jlab.admin.aws_facts import steps

PAGE = Path(__file__).parents[2] / "docs" / "unverified.md"
ROWS = re.findall(r"^\| `([a-z0-9-]+)`: .*\*(read|by hand)\*: .*\|$", PAGE.read_text(), re.MULTILINE)


def test_each_fact_that_is_read_has_a_check():
    assert {name for name, how in ROWS if how == "read"} == {step.key for step in steps()}
    assert not [name for name, count in Counter(name for name, _ in ROWS).items() if count > 1]


def test_all_rows_are_understood():
    assert len(ROWS) == len(re.findall(r"^\| `", PAGE.read_text(), re.MULTILINE))
