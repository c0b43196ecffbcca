"""Logs of an array on the command line: its children's lines as one log."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess

import pytest

from .conftest import HPJ, Home, make_home

pytestmark = pytest.mark.local

TALK = """
import os, time
index, rank = os.environ["HYPERPOD_ARRAY_INDEX"], os.environ["RANK"]
for number in range(3):
    print(f"child {index} rank {rank} line {number}", flush=True)
    time.sleep(0.05)
print("no end", end="", flush=True)
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, str, str]:
    """A home with an array that was followed to its end, its id, and what that printed."""
    home = make_home(tmp_path_factory.mktemp("arrays"))
    (home.work / "talk.py").write_text(TALK)
    words = ["--array", "0-2%1", "--processes-per-node", "2", "--launcher", "python"]
    followed = home.process("submit", "talk.py", *words, "--follow").ok()
    return home, followed.err.splitlines()[0], followed.out


@pytest.fixture
def logs(done, hpj, monkeypatch):
    """Call ``hpj logs`` on that array."""
    home, run_id, _ = done
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    return lambda *words: hpj("logs", run_id, *words)


EVERY = sorted(
    f"{index}.{rank}|{text}"
    for index in range(3)
    for rank in range(2)
    for text in [*(f"child {index} rank {rank} line {number}" for number in range(3)), "no end"]
)


def test_a_follow_prints_every_line_of_every_child_behind_child_and_rank(done):
    _, _, out = done
    assert sorted(out.splitlines()) == EVERY
    # They ran one after the other, and a last line without a newline does not wait for the array's end.
    assert [line[0] for line in out.splitlines()] == sorted(line[0] for line in out.splitlines())


def test_the_same_lines_come_afterwards_in_the_order_of_time(logs):
    out = logs().ok().out
    assert sorted(out.splitlines()) == EVERY
    assert [line[0] for line in out.splitlines()] == sorted(line[0] for line in out.splitlines())


def test_what_chooses_lines_of_a_run_chooses_lines_of_an_array(logs):
    assert {line[:3] for line in logs("--rank", "1").ok().out.splitlines()} == {"0.1", "1.1", "2.1"}
    assert logs("--grep", "line 2", "--rank", "0").ok().out == "".join(
        f"{index}.0|child {index} rank 0 line 2\n" for index in range(3)
    )
    assert logs("--tail", "2", "--rank", "1").ok().out == "2.1|child 2 rank 1 line 2\n2.1|no end\n"
    assert len(logs("--since", "1h").ok().out.splitlines()) == len(EVERY)
    assert logs("--since", "2100-01-01T00:00").ok().out == ""
    assert logs("--attempt", "2").ok().out == ""


def test_json_names_the_child_and_each_cursor_goes_on_there(logs):
    objects = [json.loads(line) for line in logs("--json").ok().out.splitlines()]
    assert sorted(f"{one['index']}.{one['rank']}|{one['line']}" for one in objects) == EVERY
    assert {one["attempt"] for one in objects} == {1}
    rest = logs("--json", "--cursor", objects[5]["cursor"]).ok().out.splitlines()
    assert [json.loads(line)["line"] for line in rest] == [one["line"] for one in objects[6:]]


def test_exact_bytes_are_those_of_a_child(logs, done):
    home, run_id, _ = done
    told = logs("--raw", "--json", "--rank", "0")
    assert told.code == 2
    told = logs("--raw")
    assert told.code == 2
    assert f"hpj logs {run_id}.0 --raw" in told.err
    assert home.process("logs", f"{run_id}.2", "--raw").ok().out.endswith("\nno end")


def test_a_rank_that_children_have_not(logs):
    told = logs("--rank", "2")
    assert told.code == 3
    assert "0-1" in told.err


def test_ctrl_c_says_how_to_come_back_and_the_rest_is_there(home):
    script = "import os, time\nfor n in range(15):\n    print(os.environ['HYPERPOD_ARRAY_INDEX'], n, flush=True); time.sleep(0.1)\n"
    (home.work / "count.py").write_text(script)
    first = home.start(
        "submit", "count.py", "--array", "0-3%2", "--follow",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,  # communicate() knows no buffer
    )  # fmt: skip
    assert first.stdout is not None
    got = [first.stdout.readline() for _ in range(8)]
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=30)
    assert first.returncode == 130
    hint = err.decode().splitlines()[-1]
    command = shlex.split(hint.removeprefix("hint: continue with: "))
    rest = home.process(*command[1:]).ok().out
    lines = (b"".join([*got, out]).decode() + rest).splitlines()
    assert sorted(lines) == sorted(f"{i}.0|{i} {n}" for i in range(4) for n in range(15))


def test_a_reader_that_stops_reading_ends_it_quietly(done):
    home, run_id, _ = done
    line = f"{shlex.join(HPJ)} logs {run_id} -f | head -n 1; echo ${{PIPESTATUS[0]}}"
    got = subprocess.run(["/bin/bash", "-c", line], env=home.process_environment(), capture_output=True, text=True)
    assert got.stderr == ""
    assert got.stdout.splitlines()[1] == "0"


def test_an_array_without_lines_says_why(tmp_path):
    home = make_home(tmp_path, slots=1)
    first = home.process("submit", "-c", "sleep 60").ok().out.strip()
    array = home.process("submit", "-c", "true", "--array", "0-2").ok().out.strip()
    told = home.process("logs", array).ok()
    assert told.out == ""
    assert told.err.startswith("no lines; the run is waiting")
    home.process("cancel", first, array).ok()


def test_the_last_child_fails_and_the_array_with_it(home):
    command = 'echo out $HYPERPOD_ARRAY_INDEX; [ "$HYPERPOD_ARRAY_INDEX" != 1 ] || exit 9'
    told = home.process("submit", "-c", command, "--array", "0-1", "--follow")
    assert told.code == 1
    assert sorted(told.out.splitlines()) == ["0.0|out 0", "1.0|out 1"]
