"""The setup lines, and what a node must have."""

import sys
import venv

import pytest

from .conftest import alive, until


def test_the_ranks_start_in_the_environment_that_the_lines_leave(bundle):
    lines = 'export A=1 B="two words"\nC=3\nPATH=/opt/x:$PATH\nexport D=$K\nunset GONE\ncd /tmp\n'
    bundle.shell('echo "$A $B [$C] $D [$GONE] ${PATH%%:*} $PWD"', setup=lines, variables={"K": "v", "GONE": "still"})
    assert bundle.run().returncode == 0
    expected = f"1 two words [] v [] /opt/x {bundle.folder}/work\n"
    assert bundle.rank_log().decode() == expected


def test_the_lines_run_once_a_node_and_speak_in_its_log(bundle):
    bundle.shell("true", setup="echo once >>count; echo hello; echo there >&2", processes_per_node=3)
    assert bundle.run().returncode == 0
    assert (bundle.folder / "work" / "count").read_text() == "once\n"
    assert "\nhello\nthere\n" in bundle.node_log()


def test_the_lines_see_no_words_of_ours(bundle):
    (bundle.folder / "work" / "activate").write_text('echo "words: $# $*"\n')
    bundle.shell("env", setup="source ./activate")
    assert bundle.run().returncode == 0
    assert "words: 0 \n" in bundle.node_log()
    assert b"__hyperpod" not in bundle.rank_log()
    assert b"HYPERPOD_PARENT" not in bundle.rank_log()


@pytest.mark.parametrize("lines", ["export A=1; exit 0", "trap 'true' EXIT; export A=1", "set -u\nexport A=1"])
def test_lines_that_end_in_their_own_way(bundle, lines):
    bundle.shell("echo $A", setup=lines)
    assert bundle.run().returncode == 0
    assert bundle.rank_log() == b"1\n"


@pytest.mark.parametrize(
    ("lines", "code"), [("true\nfalse\necho never", 1), ("exit 9", 9), ("kill -9 $$", 137), ("if", 2)]
)
def test_lines_that_fail(bundle, lines, code):
    bundle.shell("echo never", setup=lines)
    assert bundle.run().returncode == code
    record = bundle.node()
    assert record["exit_code"] == code
    assert record["error"]["code"] == "setup_failed"
    assert record["error"]["detail"] == {"exit_code": code, "log": "logs/attempt-1/node-0.log"}
    assert record["ranks"] == []
    assert "never" not in bundle.node_log()
    assert not bundle.rank_log()


def test_an_error_in_the_lines_names_its_line(bundle):
    bundle.shell("true", setup="true\nno-such-program")
    assert bundle.run().returncode == 127
    assert "node-0.setup.sh: line 2: no-such-program: command not found" in bundle.node_log()


def test_what_the_lines_leave_running_stays_until_the_ranks_have_ended(bundle):
    bundle.shell("kill -0 $HELPER && echo $HELPER", setup="sleep 600 & export HELPER=$!")
    assert bundle.run().returncode == 0
    assert not alive(int(bundle.rank_log()))


def test_the_interpreter_is_found_after_the_lines(bundle):
    folder = bundle.folder / "work" / "bin"
    folder.mkdir()
    (folder / "mypython").symlink_to(sys.executable)
    bundle.script("print('hello')", python="mypython", setup='export PATH="$PWD/bin:$PATH"')
    assert bundle.run().returncode == 0
    assert bundle.rank_log() == b"hello\n"


def test_torchrun_without_torch_says_so(bundle, tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    bundle.script("pass", launcher="torchrun", python=str(tmp_path / "bare" / "bin" / "python"))
    assert bundle.run().returncode == 86
    error = bundle.node()["error"]
    assert error["code"] == "torch_missing"
    assert "--launcher python" in error["hint"]
    assert str(tmp_path / "bare") in error["message"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cwd": "gone"}, "cwd_missing"),
        ({"cwd": "/no/such/folder"}, "cwd_missing"),
        ({"python": "/no/such/python"}, "python_missing"),
        ({"python": "no-such-python"}, "python_missing"),
        ({"command": ["no-such-program"]}, "command_missing"),
        ({"command": [{"bundle": "work"}]}, "command_missing"),
        ({"python": "/bin/false", "launcher": "torchrun"}, "python_failed"),
    ],
)
def test_what_is_missing_is_named(bundle, changes, code):
    bundle.plan("true", **changes)
    assert bundle.run().returncode == 86
    record = bundle.node()
    assert (record["exit_code"], record["error"]["code"]) == (86, code)
    assert bundle.status("failed.json")["exit_code"] == 86
    assert record["error"]["message"] in bundle.node_log()


def test_a_program_that_cannot_be_executed(bundle):
    (bundle.folder / "work" / "broken").write_text("#!/no/such/interpreter\n")
    (bundle.folder / "work" / "broken").chmod(0o755)
    bundle.plan("./broken")
    assert bundle.run().returncode == 127
    assert "rank 0: ./broken cannot be run: No such file" in bundle.node_log()
    assert bundle.rank_log() == b""


def test_a_step_that_takes_long_is_in_the_record_until_the_ranks_start(bundle):
    bundle.shell("until [ -e end ]; do sleep 0.05; done", setup="until [ -e go ]; do sleep 0.05; done")
    launcher = bundle.start()
    until(lambda: (bundle.node() or {}).get("step"), "the step")
    assert bundle.node()["step"] == "running the setup lines"
    (bundle.folder / "work" / "go").touch()
    until(lambda: bundle.node()["ranks"], "the ranks")
    assert bundle.node()["step"] is None
    (bundle.folder / "work" / "end").touch()
    assert launcher.wait(20) == 0
