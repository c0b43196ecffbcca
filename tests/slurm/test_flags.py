"""The list of sbatch's options, against sbatch itself."""

from __future__ import annotations

import re

import pytest

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.engines.slurm.render import ALLOWED, EITHER, MAX_VALUE_LENGTH, PROTECTED, SWITCHES, check_flags
from tests.slurm.cluster import SlurmTestbed

SINCE_24 = {"extra", "oom-kill-step", "resv-ports", "segment", "stepmgr", "tres-bind", "tres-per-task"}  # fmt: skip
"""Not in 22.05; in 24.11."""
SINCE_25 = {"consolidate-segments", "spread-segments"}
UNTIL_22 = {"power"}

_EACH = """
for name; do
  with=$(sbatch --test-only "--$name=." </dev/null 2>&1)
  alone=$(sbatch --test-only "--$name" </dev/null 2>&1)
  case "$with$alone" in *"unrecognized option"*|*ambiguous*) echo "$name unknown"; continue ;; esac
  case $with in *"doesn't allow an argument"*) echo "$name switch"; continue ;; esac
  case $alone in *"requires an argument"*) echo "$name value" ;; *) echo "$name either" ;; esac
done
"""


@pytest.fixture(scope="module")
def kinds(slurm_cluster: SlurmTestbed) -> dict[str, str]:
    """What sbatch says of each of the names."""
    text = slurm_cluster.exec("ctl", "bash", "-c", _EACH, "-", *sorted(ALLOWED))
    return dict(line.split() for line in text.splitlines())


def test_every_name_is_one_of_sbatchs(kinds: dict[str, str], slurm_version: str):
    unknown = {name for name, kind in kinds.items() if kind == "unknown"}
    newer = SINCE_25 | (SINCE_24 - {"extra"} if slurm_version == "22.05" else UNTIL_22)
    assert unknown - {"power"} == newer - {"power"}


def test_switches_take_no_value_and_others_do(kinds: dict[str, str]):
    known = {name: kind for name, kind in kinds.items() if kind != "unknown"}
    assert {name for name, kind in known.items() if kind == "switch"} == SWITCHES & set(known)
    assert {name for name, kind in known.items() if kind == "either"} == EITHER & set(known)


def test_no_option_of_the_help_is_forgotten(slurm_cluster: SlurmTestbed):
    text = slurm_cluster.exec("ctl", "sbatch", "--help")
    named = set(re.findall(r"--([a-z][a-z0-9-]+)", text))
    assert len(named) > 80
    assert named - ALLOWED - set(PROTECTED) == set()


def test_a_name_is_allowed_or_protected():
    assert ALLOWED & set(PROTECTED) == set()


def test_what_others_would_misuse_is_protected():
    ours = "wrap uid gid chdir output error export get-user-env comment job-name clusters array"
    assert set(ours.split()) <= set(PROTECTED)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"prolog": "x"}, "sbatch has no option '--prolog'"),
        ({"exclusiv": True}, "did you mean 'exclusive'"),
        ({"wrap": "x"}, "--wrap cannot be set here: the code is source of the spec"),
        ({"hold": "yes"}, "--hold takes no value"),
        ({"begin": True}, "--begin needs a value"),
        ({"begin": " "}, "the value of --begin is empty"),
        ({"begin": "a\nb"}, "control character"),
        ({"begin": "a\0b"}, "control character"),
        ({"begin": "x" * (MAX_VALUE_LENGTH + 1)}, "longer than"),
        ({"mail-user": "a", "mail_user": "b"}, "--mail-user is given twice"),
        ({"exclu": True}, "sbatch has no option '--exclu'"),
        ({"J": "x"}, "sbatch has no option '--J'"),
    ],
)
def test_a_wrong_flag_is_refused_in_words(flags: dict[str, str | bool], words: str):
    with pytest.raises(InvalidInputError) as refused:
        check_flags(flags)
    assert words in str(refused.value)
    assert refused.value.detail["field"].startswith("slurm.flags.")


def test_right_flags_are_by_their_long_names():
    given: dict[str, str | int | bool] = {"--exclusive": True, "mail_user": "a b", "nice": 5, "reboot": False}
    assert check_flags(given) == {"exclusive": True, "mail-user": "a b", "nice": 5, "reboot": False}
