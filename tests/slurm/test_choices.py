"""Names that a user may give, offered where they are typed, and further flags of sbatch on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm.cluster import SlurmTestbed

HPJ = Path(sys.executable).with_name("hpj")


@pytest.fixture
def environment(slurm_cluster: SlurmTestbed, tmp_path: Path) -> dict[str, str]:
    """A user whose default cluster is the testbed's."""
    partition = slurm_cluster.partition / "choices"
    partition.mkdir(exist_ok=True)
    config = tmp_path / "config.toml"
    lines = [
        'default_cluster = "ml"',
        "[storage]",
        f"path = {json.dumps(str(partition))}",
        "[clusters.ml]",
        'orchestrator = "slurm"',
        f"slurm_conf = {json.dumps(slurm_cluster.environment['SLURM_CONF'])}",
        f"commands = {json.dumps(str(slurm_cluster.folder / 'bin'))}",
        f"storage = {json.dumps(str(slurm_cluster.partition_on_nodes / 'choices'))}",
        f"python = {json.dumps(slurm_cluster.python_on_nodes)}",
    ]
    config.write_text("\n".join(lines))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    return kept | {"HYPERPOD_CONFIG": str(config)}


def _hpj(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(HPJ), *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(environment["HYPERPOD_CONFIG"]).parent,
    )


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["submit", "--queue", ""], ["dev", "batch"]),
        (["submit", "--cluster", "ml", "--queue", "b"], ["batch"]),
        (["submit", "--cluster", "local", "--queue", ""], []),
        (["submit", "--account", ""], ["root"]),
        (["submit", "--qos", "n"], ["normal"]),
    ],
)
def test_the_shell_is_offered_names(environment: dict[str, str], words: list[str], offered: list[str]):
    asked = {"_HPJ_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(["hpj", *words]), "COMP_CWORD": str(len(words))}
    done = _hpj(environment | asked)
    assert done.stderr == ""
    lines = done.stdout.split()
    assert [line.partition(",")[2] for line in lines] == offered


def test_flags_on_the_command_line_are_in_the_script(environment: dict[str, str]):
    flags = ["--slurm", "exclusive", "--slurm", "nice=5", "--slurm", "requeue=false"]
    done = _hpj(environment, "submit", "--dry-run", "--json", *flags, "-c", "true")
    script = json.loads(done.stdout)["rendered"]
    assert "#SBATCH --exclusive\n#SBATCH --nice=5\n#SBATCH --no-requeue\n" in str(
        script if isinstance(script, str) else script["text"]
    )


def test_a_flag_that_is_ours_is_refused(environment: dict[str, str]):
    done = _hpj(environment, "submit", "--slurm", "wrap=true", "-c", "true")
    assert done.returncode == 2
    assert "--wrap cannot be set here: the code is source of the spec" in done.stderr
