"""What stands in a request already, before anybody is asked."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.preflight import check_secret_values, launcher_findings, time_findings, variable_findings


@pytest.mark.parametrize(
    ("spec", "codes"),
    [
        ({"resources": {"processes_per_node": 2}}, ["one_process"]),
        ({"resources": {"processes_per_node": 2}, "launcher": "python"}, []),
        ({"resources": {"processes_per_node": 1}}, []),
        ({"resources": {"gpus_per_node": 8}}, []),
    ],
)
def test_a_command_in_many_processes_is_warned_of(spec: dict[str, Any], codes: list[str]) -> None:
    source = {"kind": "command", "command": "true"}
    found = launcher_findings(parse(JobSpec, {"source": source, **spec}))
    assert [finding.code for finding in found] == codes


@pytest.mark.parametrize(("limit", "minutes"), [(None, None), ("1", 60), (10, 600), ("59s", 3540), ("1m", None)])
def test_seconds_that_may_be_meant_as_minutes_are_warned_of(limit: str | int | None, minutes: int | None) -> None:
    source = {"kind": "command", "command": "true"}
    found = time_findings(parse(JobSpec, {"source": source, "time_limit": limit}))
    assert [fix.set["time_limit"] for finding in found for fix in finding.fixes] == (
        [] if minutes is None else [minutes]
    )


@pytest.mark.parametrize(
    ("value", "reference"),
    [
        ("${TOKEN}", "${TOKEN}"),
        ("$TOKEN", "$TOKEN"),
        ("/opt/bin:$PATH", "$PATH"),
        ("https://me:${PASSWORD}@index.example", "${PASSWORD}"),
        ("$(NAME)", "$(NAME)"),
        ("${HOME:-x}", "${HOME:-x}"),
        ("${PATH%:*}", "${PATH%:*}"),
        ("$HOME/x", "$HOME"),
        ("on $(date +%F)", "$(date +%F)"),
        ("$(date)", "$(date)"),
        ("`date`", "`date`"),
        ("$5", None),
        ("pa$word", None),
        ("$2y$10$abcdef", None),
        ("a $ b", None),
        ("", None),
    ],
)
def test_a_reference_in_a_value_is_warned_of(value: str, reference: str | None) -> None:
    source = {"kind": "command", "command": "true"}
    spec = {"source": source, "environment": {"variables": {"NAME": value}}}
    found = variable_findings(parse(JobSpec, spec))
    assert [finding.code for finding in found] == ["unexpanded_variable"] * bool(reference)
    assert all(f"contains {reference}, " in finding.message for finding in found)


def test_all_references_are_in_one_warning_and_its_hints_fit_them() -> None:
    def finding(**variables: str) -> Finding:
        source = {"kind": "command", "command": "true"}
        spec = {"source": source, "environment": {"variables": variables}}
        (found,) = variable_findings(parse(JobSpec, spec))
        return found

    both = finding(A="$X:${Y}:$X", B="c", C="$(date)")
    assert both.message == (
        "the value of A contains $X and ${Y}; the value of C contains $(date), which are not replaced: the ranks get this text"
    )
    assert "your own variable" in str(both.hint)
    assert "your own variable" not in str(finding(C="$(date)").hint)
    assert "command" not in str(finding(A="$X").hint)


@pytest.mark.parametrize("value", ["half\ud800", "nul\0"])
def test_a_value_that_no_variable_can_have_is_refused_and_not_repeated(value):
    spec = parse(JobSpec, {"source": {"kind": "command", "command": "true"}, "environment": {"secrets": {"KEY": ""}}})
    with pytest.raises(InvalidInputError) as caught:
        check_secret_values(spec, {"KEY": value})
    assert caught.value.code == "bad_secret"
    assert value not in f"{caught.value.message} {caught.value.hint}"
