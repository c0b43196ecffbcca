"""What is read out of users' scripts and of squeue's words, and how they are sent: no cluster is needed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.launch import GuardPolicy
from hyperpod_jlab.engines.protocol import NativeFacts, NativeFile, Rendered, RenderInput
from hyperpod_jlab.engines.slurm.job_files import JobFiles, PatternValues, output_paths
from hyperpod_jlab.engines.slurm.native import (
    directives,
    native_findings,
    parse_array_option,
    parse_min_nodes,
    render_native,
)
from hyperpod_jlab.engines.slurm.script_jobs import parse_exit
from hyperpod_jlab.storage.partition import PathMap

DIRECTIVES = [
    (b"#!/bin/sh\n#SBATCH --nodes=2\n", {"nodes": "2"}),
    (b"#!/bin/sh\n#SBATCH --nodes 2 -p dev\n", {"nodes": "2", "partition": "dev"}),
    (b"#!/bin/sh\n#SBATCH -N2 -Jmine\n", {"nodes": "2", "job-name": "mine"}),
    (b"#!/bin/sh\n#SBATCH -J 'a b' # and why\n", {"job-name": "a b"}),
    (b'#!/bin/sh\n#SBATCH --comment="a # b"\n', {"comment": "a # b"}),
    (b"#!/bin/sh\n#SBATCH --exclusive\n#SBATCH --requeue -N1\n", {"exclusive": "", "requeue": "", "nodes": "1"}),
    (b"#!/bin/sh\n#SBATCH -N1\n#SBATCH -N3\n", {"nodes": "3"}),
    (b"#!/bin/sh\r\n\r\n# words\r\n#SBATCH -N3\r\n", {"nodes": "3"}),
    (b"#!/bin/sh\necho\n#SBATCH -N3\n", {}),
    (b"#!/bin/sh\n##SBATCH -N3\n#SBATCHX -N3\n #SBATCH -N3\n", {}),
    (b"#!/bin/sh\n#SBATCH -J 'never ends\n", {"job-name": "'never"}),
    (b"#!/bin/sh\n#SBATCH -J caf\xe9\n", {"job-name": "caf\udce9"}),
    (b"", {}),
]  # fmt: skip


@pytest.mark.parametrize(("script", "found"), DIRECTIVES)
def test_lines_of_a_script(script: bytes, found: dict[str, str]) -> None:
    assert directives(script) == found


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("0-3", "0-3"),
        ("1,3,5", "1,3,5"),
        ("0-9:3", "0,3,6,9"),
        ("0-15:4%2", "0,4,8,12%2"),
        ("1-2,7-9:2", "1-2,7,9"),
        ("", None),
    ],
)
def test_arrays(given: str, ours: str | None) -> None:
    assert parse_array_option(given) == ours


@pytest.mark.parametrize("given", ["x", "3-1", "1-", "-1", "0-9:0", "$(id)", "0-999999999"])
def test_what_is_no_array(given: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_array_option(given)


@pytest.mark.parametrize(
    ("given", "nodes"), [("2", 2), ("2-4", 2), ("1k", 1024), ("", 1), ("x", 1), ("0", 1), ("2,4", 2)]
)
def test_fewest_nodes(given: str, nodes: int) -> None:
    assert parse_min_nodes(given) == nodes


@pytest.mark.parametrize(
    ("text", "found"),
    [("7:0", (7, 0)), ("0:11", (0, 11)), ("1792", (7, 0)), ("11", (0, 11)), ("0", (0, 0)), ("", (0, 0))],
)  # fmt: skip
def test_exit_codes_of_squeue(text: str, found: tuple[int, int]) -> None:
    assert parse_exit(text) == found


TASK = PatternValues("21", "17", 3, "node1.example.com")
ALONE = PatternValues("18", "18", None, "node1")


@pytest.mark.parametrize(
    ("pattern", "place", "path"),
    [
        ("/w/%x-%j-%u.log", ALONE, "/w/my job-18-alice.log"),
        ("/w/%A_%a-%j", TASK, "/w/17_3-21"),
        ("/w/%4a-%5j-%20j", TASK, "/w/0003-00021-0000000021"),
        ("/w/%s-%t-%n-%J-%N", TASK, "/w/batch-0-0-21-node1"),
        ("/w/%%-%q-%", ALONE, "/w/%-%q-%"),
        ("/w/%b", TASK, "/w/3"),
        ("/w/a\\b%j", ALONE, "/w/ab%j"),
        ("out-%j", ALONE, "/w/out-18"),
        ("/w/../x//%j", ALONE, "/x/18"),
        ("/w/slurm-21.out", TASK, "/w/slurm-17_3.out"),
        ("/w/slurm-17.out", TASK, "/w/slurm-17_3.out"),
        ("/w/slurm-18.out", ALONE, "/w/slurm-18.out"),
        ("(null)", ALONE, None),
        ("", ALONE, None),
    ],
)
def test_where_a_job_writes(pattern: str, place: PatternValues, path: str | None) -> None:
    files = JobFiles(pattern, "(null)", "/w", "my job", "alice")
    assert output_paths(files, place) == (path, None)


def test_stderr_counts_only_when_it_goes_elsewhere() -> None:
    assert output_paths(JobFiles("/w/a", "/w/./a", "/w", "x", "u"), ALONE) == ("/w/a", None)
    assert output_paths(JobFiles("/w/a", "/w/b", "/w", "x", "u"), ALONE) == ("/w/a", "/w/b")


def rendered(
    text: str = "", after: tuple[str, ...] = (), path: str = "a.sbatch", first: str = "#!/bin/sh\n", **spec: Any
) -> Rendered:
    given = RenderInput(
        "run-1",
        "a name",
        parse(JobSpec, {"source": {"kind": "native", "path": "a.sbatch"}, **spec}),
        ".hyperpod/runs/07/run-1",
        PathMap.create_map("/home/alice/fsx", "/fsx/alice"),
        None,
        GuardPolicy(0, "5ea1"),
        after=after,
    )
    file = NativeFile(f"code/{path}", (first + text).encode(), "work/sub")
    return render_native(given, file)


def options_of(found: Rendered) -> list[str]:
    return list(json.loads(found.text)["options"])


def test_nothing_but_the_id_and_the_folder_is_added() -> None:
    assert options_of(rendered("#SBATCH -N4 -p p5 -J train --array=0-3")) == [
        "--comment=hyperpod:run-1",
        "--chdir=/fsx/alice/.hyperpod/runs/07/run-1/work/sub",
    ]


def test_what_the_script_says_is_told() -> None:
    found = rendered("#SBATCH -N4 -p p5 -J train --array=0-3%2")
    assert found.facts == NativeFacts("train", "p5", 4, "0-3%2", 0)


@pytest.mark.parametrize(
    ("lines", "gpus", "limit"),
    [
        ("--gres=gpu:h100:8,nvme:1 -t 90", 8, 5400),
        ("--gres=gpu --time=1-12", 1, 129_600),
        ("--gpus-per-node=h100:4,a100:2 -t 2:30:00", 6, 9000),
        ("-G 9", 3, None),
        ("--gres=gpus_of_mine:8", 0, None),
        ("--gpus-per-task=1 -t UNLIMITED", None, None),
    ],
)
def test_the_gpus_of_a_node_and_the_time_limit_are_told(lines: str, gpus: int | None, limit: int | None) -> None:
    facts = rendered(f"#SBATCH -N4 {lines}").facts
    assert facts is not None
    assert (facts.gpus_per_node, facts.time_limit) == (gpus, limit)


def test_what_is_asked_for_here_are_options() -> None:
    found = rendered(
        "#SBATCH -N4 -p p5",
        after=("12", "34"),
        name="mine",
        queue="dev",
        account="a",
        qos="q",
        priority="7",
        time_limit="90m",
        array="1-2",
        resources={"nodes": 2, "memory": "1G", "gpus_per_node": 8},
        slurm={"flags": {"exclusive": True, "requeue": False, "constraint": "a&b"}},
        environment={"variables": {"A": "1 $(x)"}},
    )
    assert found.facts == NativeFacts(None, "dev", 2, "1-2", 8, 5400)
    assert options_of(found)[2:] == [
        "--job-name=mine",
        "--nodes=2",
        "--mem=1024M",
        "--gres=gpu:8",
        "--partition=dev",
        "--account=a",
        "--qos=q",
        "--priority=7",
        "--time=0-01:30:00",
        "--dependency=afterok:12,afterok:34",
        "--kill-on-invalid-dep=yes",
        "--array=1-2",
        "--export=ALL,A=1 $(x)",
        "--exclusive",
        "--no-requeue",
        "--constraint=a&b",
    ]


@pytest.mark.parametrize("flag", ["output", "chdir", "comment", "wrap", "uid", "nonsense", "x;id"])
def test_flags_that_are_refused(flag: str) -> None:
    with pytest.raises(InvalidInputError):
        rendered(slurm={"flags": {flag: "x"}})


def test_a_comment_with_a_control_character_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="control character"):
        rendered('#SBATCH --comment="a\x07b"')


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("launcher", {"launcher": "torchrun"}),
    ("resources.processes_per_node", {"resources": {"processes_per_node": 4}}),
    ("resources.cpus", {"resources": {"cpus": 4}}),
    ("environment.python", {"environment": {"python": "/usr/bin/python3"}}),
    ("environment.image", {"environment": {"image": "a/b:c"}}),
    ("environment.setup", {"environment": {"setup": "module load x"}}),
    ("environment.secrets", {"environment": {"secrets": {"TOKEN": "ref"}}}),
    ("max_restarts", {"max_restarts": 2}),
    ("auto_resume", {"auto_resume": True}),
    ("environment.variables", {"environment": {"variables": {"A": "1,B=2"}}}),
    ("environment.variables", {"environment": {"variables": {"A": "1\n2"}}}),
]


@pytest.mark.parametrize(("field", "given"), REFUSED)
def test_what_has_no_place_in_a_script(field: str, given: dict[str, Any]) -> None:
    source = {"kind": "native", "path": "a.sbatch"}
    found = native_findings(parse(JobSpec, {"source": source, **given}))
    assert [(finding.level, finding.field) for finding in found] == [("error", field)]


@pytest.mark.parametrize("name", ["job.yaml", "job.yml", "job.py", "job"])
def test_other_schedulers_files(name: str) -> None:
    with pytest.raises(InvalidInputError, match="is not an sbatch script"):
        rendered(path=name)


def test_a_file_without_an_interpreter() -> None:
    with pytest.raises(InvalidInputError, match="does not start with #!"):
        rendered(first="#SBATCH -N1\n")


def test_several_jobs_in_one() -> None:
    with pytest.raises(InvalidInputError, match="heterogeneous"):
        rendered("#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N2\n")


def test_an_export_line_and_variables() -> None:
    with pytest.raises(InvalidInputError, match="--export line"):
        rendered("#SBATCH --export=NONE\n", environment={"variables": {"A": "1"}})


IDS = [("12", "12"), ("12_3", "12"), ("12_[1-3,7%2]", "12")]
