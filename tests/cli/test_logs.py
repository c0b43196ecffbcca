"""``hpj logs`` over one real run of two nodes with two ranks each, and over one that goes on."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import HPJ, Home, make_home
from .terminal import on_terminal

pytestmark = pytest.mark.local

SCRIPT = """
import os, sys, time
rank = int(os.environ["RANK"])
for number in range(5):
    print(f"rank {rank} line {number}", flush=True)
    time.sleep(0.02)
sys.stdout.buffer.write(b"raw \\xff byte\\n" if rank == 2 else b"end\\n")
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, str]:
    """A home with one run that has ended."""
    home = make_home(tmp_path_factory.mktemp("logs"))
    (home.work / "talk.py").write_text(SCRIPT)
    words = ["--nodes", "2", "--processes-per-node", "2", "--launcher", "python", "--wait"]
    return home, home.process("submit", "talk.py", *words).ok().out.strip()


@pytest.fixture
def logs(done, hpj, monkeypatch):
    """Call ``hpj logs`` on that run."""
    home, run_id = done
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    return lambda *words: hpj("logs", run_id, *words)


def _numbers(out: str) -> dict[str, list[str]]:
    """The lines by rank."""
    found: dict[str, list[str]] = {}
    for line in out.splitlines():
        rank, _, text = line.partition("|")
        found.setdefault(rank, []).append(text)
    return found


def test_each_line_stands_behind_its_rank_and_none_is_lost(logs):
    lines = _numbers(logs().ok().out)
    assert {rank for rank in lines if rank.isdigit()} == {"0", "1", "2", "3"}
    for rank in "0123":
        assert lines[rank][:5] == [f"rank {rank} line {number}" for number in range(5)]
    assert lines["2"][5] == "raw \ufffd byte"


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        (["--rank", "1"], {"1"}),
        (["--rank", "0,2-3"], {"0", "2", "3"}),
        (["--rank", "0", "--rank", "3"], {"0", "3"}),
        (["--node", "1", "--rank", "2-3"], {"2", "3"}),
        (["--node", "local-0", "--rank", "0-3"], {"0", "1"}),
    ],
)
def test_ranks_and_nodes_are_chosen(logs, words, ranks):
    assert _numbers(logs(*words).ok().out).keys() == ranks


def test_tail_since_and_grep(logs):
    assert logs("--rank", "1", "--tail", "2").ok().out == "1|rank 1 line 4\n1|end\n"
    assert logs("--rank", "1", "--tail", "0").ok().out == ""
    assert logs("--grep", "line [24]$", "--rank", "0").ok().out == "0|rank 0 line 2\n0|rank 0 line 4\n"
    assert len(_numbers(logs("--since", "1h", "--rank", "0").ok().out)["0"]) == 6
    assert logs("--since", "2100-01-01T00:00", "--rank", "0").ok().out == ""


def test_json_gives_one_object_a_line_and_each_cursor_goes_on_there(logs):
    objects = [json.loads(line) for line in logs("--json").ok().out.splitlines()]
    assert all({"attempt", "node", "rank", "time", "line", "cursor"} <= found.keys() for found in objects)
    middle = len(objects) // 2
    rest = logs("--json", "--cursor", objects[middle]["cursor"]).ok().out.splitlines()
    texts = [(found["rank"], found["line"]) for found in map(json.loads, rest)]
    assert sorted(map(str, texts)) == sorted(str((o["rank"], o["line"])) for o in objects[middle + 1 :])
    assert logs("--cursor", objects[-1]["cursor"]).ok().out == ""


def test_raw_gives_exact_bytes(done):
    home, run_id = done
    for words in (["--rank", "2"], ["--rank", "2", "-f"]):
        got = subprocess.run(
            [*HPJ, "logs", run_id, "--raw", *words], env=home.process_environment(), capture_output=True, check=True
        ).stdout
        assert got == b"".join(b"rank 2 line %d\n" % n for n in range(5)) + b"raw \xff byte\n"


@pytest.mark.parametrize(
    ("words", "code", "word"),
    [
        (["--rank", "4"], 3, "0-3"),
        (["--node", "2"], 3, "0-1"),
        (["--node", "nobody"], 3, "local-0"),
        (["--attempt", "2"], 3, "1 attempt"),
        (["--grep", "("], 2, "("),
        (["--cursor", "x"], 2, "cursor"),
        (["--raw", "--rank", "0-1"], 2, "--rank"),
        (["--raw", "--tail", "3"], 2, "--tail"),
        (["--attempt", "0"], 2, "--attempt"),
        (["--node", "0", "--rank", "3"], 2, "rank 3 is not on node 0 node 0 has the ranks 0-1"),
        (["--node", "local-1", "--rank", "0-1"], 2, "none of these ranks is on node 1"),
        (["--rank", "0-99999999999"], 2, "--rank: the range 0-99999999999 goes beyond 999999999"),
        (["--rank", "0-999999"], 2, "longer than 100000"),
        (["--cursor", "1~1.00000000~1.0_0-5-"], 2, "belongs to another log"),
    ],
)
def test_what_is_not_there_is_told(logs, words, code, word):
    told = logs(*words, "--json")
    assert told.code == code
    assert word in f"{told.error['message']} {told.error['hint']}"
    assert told.out == ""


def test_colours_come_when_wanted_and_are_the_same_each_time(logs, monkeypatch):
    assert "\x1b" not in logs().ok().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    first, second = logs("--rank", "0-1").ok().out, logs("--rank", "0-1").ok().out
    assert first == second
    assert {line.split("|")[0] for line in first.splitlines()} == {"\x1b[36m0", "\x1b[33m1"}
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in logs().ok().out


def test_a_terminal_gets_colours_and_a_pipe_none(done):
    home, run_id = done
    shown = on_terminal(home, "logs", run_id, "--rank", "0", "--tail", "1")
    assert shown == "\x1b[36m0|\x1b[0mend\r\n"


def test_a_reader_that_stops_reading_ends_it_quietly(done):
    home, run_id = done
    line = f"{shlex.join(HPJ)} logs {run_id} | head -n 1; echo ${{PIPESTATUS[0]}}"
    got = subprocess.run(["/bin/bash", "-c", line], env=home.process_environment(), capture_output=True, text=True)
    assert got.stderr == ""
    assert got.stdout.splitlines()[1] == "0"


def test_the_run_goes_on_when_the_reader_of_a_follow_goes_away(home):
    command = "for i in $(seq 60); do echo $i; sleep 0.05; done"
    words = shlex.join([*HPJ, "submit", "-c", command, "--run-id", "mine", "--follow"])
    got = subprocess.run(
        ["/bin/bash", "-c", f"{words} | head -n 1; echo ${{PIPESTATUS[0]}}"],
        cwd=home.work,
        env=home.process_environment(),
        capture_output=True,
        text=True,
    )
    assert got.stdout == "0|1\n141\n"
    assert got.stderr == "mine\n"
    assert home.process("logs", "-f", "mine").ok().out.count("\n") == 60


def test_ctrl_c_leaves_the_run_and_the_cursor_brings_all_the_rest(home):
    count = "import time\nfor n in range(30):\n    print('line', n, flush=True); time.sleep(0.1)\n"
    (home.work / "count.py").write_text(count)
    run_id = home.process("submit", "count.py").ok().out.strip()
    # communicate() knows nothing of what a buffer has read ahead
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "bufsize": 0}
    first = home.start("logs", "-f", run_id, **pipes)
    assert first.stdout is not None
    got = [first.stdout.readline() for _ in range(8)]
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=30)
    assert first.returncode == 130
    told = err.decode().splitlines()
    assert told[0] == f"interrupted; the run {run_id} continues"
    command = shlex.split(told[1].removeprefix("hint: continue with: "))
    assert command[:4] == ["hpj", "logs", "-f", run_id]
    rest = home.process(*command[1:]).ok().out
    lines = b"".join([*got, out]).decode() + rest
    assert lines.splitlines() == [f"0|line {number}" for number in range(30)]
    assert home.process("show", run_id, "--json").ok().json["state"] == "succeeded"


def test_ctrl_c_while_nobody_reads_the_pipe_ends_at_once(home):
    run_id = home.process("submit", "-c", "yes | head -c 3000000; sleep 60").ok().out.strip()
    reading, writing = os.pipe()
    process = home.start("logs", "-f", run_id, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    time.sleep(3)  # the pipe is full by now
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert b"continue with" in err
    os.close(reading)
    home.process("cancel", run_id).ok()


def test_a_waiting_run_without_lines_says_so(tmp_path):
    home = make_home(tmp_path, slots=1)
    first = home.process("submit", "-c", "sleep 60").ok().out.strip()
    second = home.process("submit", "-c", "true").ok().out.strip()
    told = home.process("logs", second).ok()
    assert told.out == ""
    assert told.err.startswith("no lines; the run is waiting")
    home.process("cancel", first, second).ok()


def test_long_and_unfinished_lines_come_out_whole_in_a_pipe(home):
    script = (
        "import sys, time\nprint('x' * 100_000)\nfor part in ('a', 'b', 'c'):\n"
        "    sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.7)\nprint()\nsys.stdout.write('no end')\n"
    )
    (home.work / "slow.py").write_text(script)
    out = home.process("submit", "slow.py", "--follow").ok().out
    assert out == f"0|{'x' * 100_000}\n0|abc\n0|no end\n"


def test_many_lines_are_written_fast(home):
    count = 400_000
    run_id = home.process("submit", "-c", f"seq {count}", "--wait").ok().out.strip()
    begin = time.perf_counter()
    out = home.process("logs", run_id).ok().out
    passed = time.perf_counter() - begin
    assert out.count("\n") == count
    assert out.endswith(f"0|{count}\n")
    assert passed < 10


def test_a_progress_bar_is_redrawn_on_a_terminal_and_shown_once_in_a_pipe(home):
    bar = "import sys, time\nfor n in range(4):\n    print(f'\\r{n}/3', end='', flush=True); time.sleep(0.5)\nprint()\n"
    (home.work / "bar.py").write_text(bar)
    shown = on_terminal(home, "submit", "bar.py", "--follow")
    assert "\r\x1b[K" in shown
    assert "3/3" in shown
    assert home.process("logs", "last").ok().out == "0|3/3\n"


def test_files_of_the_test_are_in_its_home(done):
    home, run_id = done
    assert Path(home.process("show", run_id, "--json").ok().json["bundle"]).is_relative_to(home.root)


TORN = """
import os, sys
attempt, rank = os.environ["HYPERPOD_ATTEMPT"], os.environ["RANK"]
sys.stdout.buffer.write(f"begin {attempt}.{rank}\\n".encode())
sys.stdout.buffer.write(f"torn {attempt}.{rank} ".encode() + b"\\xc3")
sys.stdout.flush()
sys.exit(attempt == "1" and rank == "0")
"""


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, str, str, str]:
    """A home with a run that was followed over a restart, its id, and what that printed to stdout and stderr."""
    home = make_home(tmp_path_factory.mktemp("restarted"))
    (home.work / "torn.py").write_text(TORN)
    words = ["--processes-per-node", "2", "--launcher", "python", "--max-restarts", "1"]
    followed = home.process("submit", "torn.py", *words, "--follow").ok()
    run_id = followed.err.splitlines()[0]
    return home, run_id, followed.out, followed.err


def test_what_an_attempt_ends_with_comes_before_the_next_attempt(restarted):
    home, run_id, followed, _ = restarted
    for out in (followed, home.process("logs", run_id).ok().out):
        lines = [line for line in out.splitlines() if line.startswith(("0|", "1|"))]
        first = [line for line in lines if " 1." in line]
        assert "0|torn 1.0 \ufffd" in first
        assert lines[: len(first)] == first
        assert sorted(lines[len(first) :]) == [
            f"{rank}|{text}" for rank in (0, 1) for text in (f"begin 2.{rank}", f"torn 2.{rank} \ufffd")
        ]  # fmt: skip


def test_marks_go_to_stderr_in_a_pipe_and_to_a_terminal_among_the_lines(restarted):
    home, run_id, followed, told = restarted
    mark = "--- attempt 2 started: exit code 1 ---"
    again = home.process("logs", run_id, "--rank", "0").ok()
    assert mark not in followed + again.out
    assert mark in told.splitlines()
    assert again.err == f"{mark}\n"
    assert on_terminal(home, "logs", run_id, "--rank", "0").count(mark) == 1


def test_marks_are_no_lines_that_are_asked_for(restarted):
    home, run_id, _, _ = restarted
    found = home.process("logs", run_id, "--grep", "begin", "--rank", "0").ok()
    assert (found.out, found.err) == ("0|begin 1.0\n0|begin 2.0\n", "")
    assert "attempt" not in on_terminal(home, "logs", run_id, "--grep", "begin", "--rank", "0")
    found = home.process("logs", run_id, "--grep", "begin", "--rank", "0", "--json").ok()
    assert [json.loads(line)["line"] for line in found.out.splitlines()] == ["begin 1.0", "begin 2.0"]


def test_a_cursor_of_another_run_is_refused(done, restarted, logs):
    home, run_id, _, _ = restarted
    cursor = json.loads(home.process("logs", run_id, "--json").ok().out.splitlines()[0])["cursor"]
    told = logs("--cursor", cursor)
    assert told.code == 2
    assert f"belongs to another log, not to {done[1]}" in told.err
    # One of an older version, which does not name its run, is taken as before.
    version, first, rest = cursor.split("~", 2)
    old = "~".join((version, first.partition(".")[0], rest))
    assert logs("--cursor", old).code == 0


HOSTILE = (
    "print('x \\x1b]52;c;ZWNobyBwd25lZA==\\x07\\x1b]8;;http://evil\\x1b\\\\click\\x1b]8;;\\x1b\\\\ \\x1b[6n\\x1b[?1049h end')\n"
    "print('\\x1b[31mred\\x1b[0m \\x9b2J \\u202ekcab \\x08tab\\there')\n"
    "print('\\x1b[32mleft open')\n"
    "print('plain')\n"
    "raise RuntimeError('boom \\x1b]52;c;AAAA\\x07\\x1b[6n')\n"
)


def test_on_a_terminal_a_run_has_colours_and_no_other_power(tmp_path):
    home = make_home(tmp_path)
    (home.work / "hostile.py").write_text(HOSTILE, "utf-8")
    words = ("--no-project-files", "--run-id", "hostile")
    followed = on_terminal(home, "submit", "hostile.py", *words, "--follow")
    assert "boom" in followed
    logs = on_terminal(home, "logs", "hostile", "--rank", "0")
    shown = on_terminal(home, "show", "hostile")
    dry = on_terminal(home, "clone", "hostile", "--dry-run")
    for text in (followed, logs, shown, dry, on_terminal(home, "runs", "--json")):
        left = re.sub(r"\x1b\[[0-9:;]*m", "", text).replace("\r\x1b[K", "")
        assert not set(left) & set("\x1b\x07\x08\x9b\u202e"), left
    assert "x click  end\r\n" in logs
    assert "\x1b[31mred\x1b[0m \\x9b2J \\u202ekcab tab\there" in logs
    assert "\x1b[32mleft open\x1b[0m\r\n" in logs
    assert "RuntimeError: boom" in shown


def test_in_a_pipe_and_with_raw_nothing_of_a_run_is_changed(tmp_path):
    home = make_home(tmp_path)
    (home.work / "hostile.py").write_text(HOSTILE, "utf-8")
    home.process("submit", "hostile.py", "--no-project-files", "--run-id", "hostile", "--wait")
    piped = home.process("logs", "hostile", "--rank", "0").ok().out
    assert "0|x \x1b]52;c;ZWNobyBwd25lZA==\x07\x1b]8;;http://evil\x1b\\click" in piped
    assert "\x9b2J \u202ekcab \x08tab\there\n" in piped
    assert "\x1b]52;c;ZWNobyBwd25lZA==\x07" in on_terminal(home, "logs", "hostile", "--raw")
