"""What stands in a request already, before anybody is asked."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.model.validation import parse
from hyperpod_jlab.services.checking import launcher_findings


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
