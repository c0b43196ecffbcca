"""The sbatch script: the same input gives the same bytes, kept in golden files (``python -m tests.slurm.test_render`` writes them anew)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.launch import GuardPolicy
from hyperpod_jlab.engines.protocol import RenderInput
from hyperpod_jlab.engines.slurm.render import render
from hyperpod_jlab.storage.partition import PathMap

GOLDEN = Path(__file__).parent / "golden"

BUNDLE = ".hyperpod/runs/07/20261121-abcd"

_CASES: dict[str, dict[str, Any]] = {
    "plain": {"spec": {}},
    "limits": {
        "spec": {
            "queue": "p5",
            "account": "research",
            "qos": "high",
            "priority": "100",
            "time_limit": "1d2h3m4s",
            "resources": {"nodes": 4, "gpus_per_node": 8, "cpus": 96, "memory": "1.5T"},
        }
    },
    "array": {"spec": {"array": "0-99%4", "max_restarts": 2}, "time_limit": 3600},
    "after": {"spec": {}, "after": ("12", "34")},
    "typed_gpus": {"spec": {"resources": {"accelerators": {"type": "h100", "count": 4}}}},
    "neuron": {"spec": {"resources": {"accelerators": {"kind": "neuron", "count": 16}}}},
    "mig": {"spec": {"resources": {"accelerators": {"type": "1g.10gb", "count": 2}}}},
    "image": {"spec": {"environment": {"image": "nvcr.io#nvidia/pytorch:24.10-py3", "python": "/x/python"}}},
    "no_auto_resume": {"spec": {"auto_resume": False}},
    "short_limit": {"spec": {"time_limit": 90}},
    "flags": {
        "spec": {
            "slurm": {
                "flags": {
                    "exclusive": True,
                    "--mail-user": "a b@example.org; touch x",
                    "nice": 100,
                    "reboot": False,
                    "requeue": False,
                    "gres": "shard:2",
                    "wckey": "a\\b\"c'd $(id) `id` %j",
                }
            },
            "resources": {"gpus_per_node": 1},
        }
    },
    "odd_paths": {
        "spec": {"environment": {"python": None}},
        "there": "/fsx/we\"ird 'p' %j $(id) `id` ü",
        "python": '/opt/it\'s "a" $python/bin/python3',
    },
}


def _text(case: dict[str, Any]) -> str:
    spec = {"source": {"kind": "command", "command": "true"}, **case["spec"]}
    given = RenderInput(
        run_id="20261121-abcd",
        name="train 1",
        spec=JobSpec.model_validate(spec),
        bundle=BUNDLE,
        paths=PathMap.create_map("/home/alice/fsx", case.get("there", "/fsx/alice")),
        python=case.get("python", "/fsx/alice/venv/bin/python"),
        guard_policy=GuardPolicy(200001, "5ea1" * 16),
        time_limit=case.get("time_limit"),
        after=case.get("after", ()),
    )
    with patch(f"{render.__module__}.guard_source", lambda: "(the guard)\n"):
        return render(given).text


@pytest.mark.parametrize("name", _CASES)
def test_the_script_is_the_golden_one(name: str):
    assert _text(_CASES[name]) == (GOLDEN / f"{name}.sh").read_text()


def test_every_golden_file_has_a_case():
    assert {file.stem for file in GOLDEN.glob("*.sh")} == set(_CASES)


def test_shellcheck_has_nothing_to_say():
    program = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:/usr/bin")
    assert program is not None
    files = sorted(str(file) for file in GOLDEN.glob("*.sh"))
    done = subprocess.run([program, *files], capture_output=True, text=True, timeout=60)
    assert done.stdout == ""


@pytest.mark.parametrize("name", _CASES)
def test_bash_reads_the_script(name: str):
    file = str(GOLDEN / f"{name}.sh")
    done = subprocess.run(["bash", "-n", file], capture_output=True, text=True, timeout=30)
    assert done.stderr == ""


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "a\x00b", "a\x7fb", "a\tb"])
def test_a_control_character_in_a_path_is_refused(bad: str):
    with pytest.raises(InvalidInputError, match="control character"):
        _text({"spec": {}, "there": f"/fsx/{bad}"})


def test_a_backslash_in_the_partitions_path_is_refused():
    with pytest.raises(InvalidInputError, match="backslash"):
        _text({"spec": {}, "there": "/fsx/a\\b"})


def test_cpus_give_way_to_cpus_per_gpu():
    text = _text({"spec": {"slurm": {"flags": {"cpus-per-gpu": 4}}}})
    assert "--cpus-per-task" not in text.split("set -u")[0]


def test_a_false_no_requeue_still_requeues():
    text = _text({"spec": {"slurm": {"flags": {"no-requeue": False}}}})
    assert "#SBATCH --requeue\n" in text


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for _name, _case in _CASES.items():
        (GOLDEN / f"{_name}.sh").write_text(_text(_case))
