"""Scripts, commands and native files are taken as they are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.spec import JobSpec
from tests.capture.bundles import Laboratory


def spec(kind: str, **fields) -> JobSpec:
    names = ("path", "command", "module", "qualname")
    source = {name: fields.pop(name) for name in names if name in fields}
    return JobSpec.model_validate({"source": {"kind": kind, **source}, **fields})


AWKWARD = b"# -*- coding: latin-1 -*-\r\nimport sys, helper\r\nprint(sys.argv[1:], '\xe9', '$HOME `x` \\\\n EOF', helper.V)\r\n"


def test_a_script_runs_with_its_exact_bytes_and_arguments(lab: Laboratory):
    (lab.base / "train.py").write_bytes(AWKWARD)
    (lab.base / "helper.py").write_text("V = 1")
    captured = lab.capture(spec("script", path="train.py", args=["--lr", "a $b `c`", ""]))
    assert captured.name == "train"
    assert captured.command == ({"python": True}, "-u", {"bundle": "work/train.py"}, "--lr", "a $b `c`", "")
    assert [file.path for file in captured.project] == ["helper.py"]
    bundle = lab.bundle(captured)
    assert (bundle.folder / "work" / "train.py").read_bytes() == AWKWARD
    assert bundle.run().out == "['--lr', 'a $b `c`', ''] \u00e9 $HOME `x` \\n EOF 1\n"


def test_a_script_keeps_its_place_below_the_root(lab: Laboratory):
    (lab.base / "src").mkdir()
    (lab.base / "src" / "train.py").write_text("import os\nprint(os.path.exists('data.txt'))")
    (lab.base / "data.txt").write_text("x")
    captured = lab.capture(spec("script", path="src/train.py", files={"root": "."}))
    assert captured.command[2] == {"bundle": "work/src/train.py"}
    assert lab.bundle(captured).run().out == "True\n"


def test_a_script_outside_of_the_root_goes_to_the_top(lab: Laboratory, tmp_path: Path):
    (tmp_path / "other.py").write_text("print('ran')")
    captured = lab.capture(spec("script", path="../other.py", files={"root": "."}))
    assert "outside_root" in {finding.code for finding in captured.findings}
    assert lab.bundle(captured).run().out == "ran\n"


@pytest.mark.parametrize("path", ["none.py", ".", "..", "a/..", "/", "~nosuchuser/x.py", "x" * 300, "nb.ipynb"])
def test_what_is_no_script_is_refused(lab: Laboratory, path: str):
    (lab.base / "nb.ipynb").write_text("{}")
    with pytest.raises(InvalidInputError) as caught:
        lab.capture(spec("script", path=path))
    assert caught.value.detail["field"] == "source.path"


def test_a_command_stays_one_argument(lab: Laboratory):
    text = "echo \"$0|$1|$2|\" '$HOME' `echo x` \\\\n # end\ncat <<'EOF'\n$HOME\nEOF\n"
    captured = lab.capture(spec("command", command=text, args=["a b", "$c"]))
    assert captured.command == ("/bin/bash", "-c", text, "hpj", "a b", "$c")
    assert captured.name == "echo"
    assert captured.files == ()
    assert lab.bundle(captured).run().out == "hpj|a b|$c| $HOME x \\n\n$HOME\n"


@pytest.mark.parametrize(
    ("text", "name"), [("A=1 /usr/bin/python x.py", "python"), ("# c\nls", "ls"), ("'", "run"), ("\u4e16", "run")]
)
def test_a_commands_name(lab: Laboratory, text: str, name: str):
    assert lab.capture(spec("command", command=text)).name == name


def test_a_command_takes_the_project_of_the_current_folder_along(lab: Laboratory):
    (lab.base / "a.py").write_text("print('a')")
    captured = lab.capture(spec("command", command=f"{sys.executable} a.py"))
    assert lab.bundle(captured).run().out == "a\n"


def test_a_native_file_goes_as_it_was_written(lab: Laboratory):
    data = b"#!/bin/bash\r\n#SBATCH -N 2\n\xff$HOME\n"
    (lab.base / "job.sbatch").write_bytes(data)
    captured = lab.capture(spec("native", path="job.sbatch"))
    (file,) = captured.files
    assert (file.path, file.data) == ("code/job.sbatch", data)
    assert captured.command == ()
    assert captured.parts[0].language == "bash"
    with pytest.raises(InvalidInputError, match=r"file .* not found"):
        lab.capture(spec("native", path="none.yaml"))


def test_a_native_file_runs_where_its_sender_is(lab: Laboratory):
    jobs = lab.base / "jobs"
    jobs.mkdir()
    (jobs / "job.sbatch").write_text("#!/bin/bash\n")
    (lab.base / "data.txt").write_text("x")
    captured = lab.capture(spec("native", path="jobs/job.sbatch"))
    assert captured.cwd == "work"  # its own folder is the project
    assert [file.path for file in captured.project] == ["job.sbatch"]
    captured = lab.capture(spec("native", path="jobs/job.sbatch", files={"root": "."}))
    assert captured.cwd == "work"
    assert [file.path for file in captured.project] == ["data.txt", "jobs/job.sbatch"]
    captured = lab.capture(spec("native", path="jobs/job.sbatch", files={"root": ".."}))
    assert captured.cwd == f"work/{lab.base.name}"
    files = {"root": "..", "project": False}
    captured = lab.capture(spec("native", path="jobs/job.sbatch", files=files))
    assert captured.cwd == "work"  # no other folder would be there


def test_variables_that_look_like_secrets_are_warned_of_for_every_source(lab: Laboratory):
    captured = lab.capture(spec("command", command="ls", environment={"variables": {"HF_TOKEN": "x", "LR": "1"}}))
    (warning,) = [one for one in captured.findings if one.code == "secret_in_variable"]
    assert (warning.level, warning.hint) == ("warning", "use --secret HF_TOKEN instead")


def test_the_specs_name_wins(lab: Laboratory):
    assert lab.capture(spec("command", command="ls", name="my run")).name == "my run"
