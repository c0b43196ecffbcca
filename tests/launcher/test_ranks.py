"""What a rank is started with, and what its end becomes."""

import json
import os
import signal
import sys

import pytest

from .conftest import make_bundle, until

PRINT_ENVIRONMENT = """
import json, os
names = "RANK LOCAL_RANK NODE_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT".split()
path = f"{os.environ['RANK']}.json"
open(path, "w").write(json.dumps({name: os.environ[name] for name in names}))
"""


@pytest.mark.parametrize(("launcher", "processes"), [("python", 2), ("none", 1)])
def test_variables_of_two_nodes(bundle, launcher, processes):
    bundle.script(PRINT_ENVIRONMENT, launcher=launcher, nodes=2, processes_per_node=2)
    launchers = [bundle.start(node, 2) for node in range(2)]
    for launcher_process in launchers:
        launcher_process.communicate(timeout=30)
        assert launcher_process.returncode == 0
    for node in range(2):
        for local_rank in range(processes):
            rank = node * processes + local_rank
            found = json.loads((bundle.folder / "work" / f"{rank}.json").read_text())
            assert found == {
                "RANK": str(rank),
                "LOCAL_RANK": str(local_rank),
                "NODE_RANK": str(node),
                "WORLD_SIZE": str(2 * processes),
                "LOCAL_WORLD_SIZE": str(processes),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(bundle.port),
            }
        ranks = bundle.node(node)["ranks"]
        assert [rank["rank"] for rank in ranks] == [node * processes + i for i in range(processes)]


AWKWARD = ["$HOME", "`id`", "a b", "", "'\"", "\\$x\\", "-c", "--", "line\nline\ttab", "Zoë 日本 🙂", "*"]


def test_words_arrive_as_they_are(bundle):
    bundle.script(
        "import json, sys; json.dump(sys.argv[1:], open('argv.json', 'w'))",
        *AWKWARD,
        variables={f"V{number}": word for number, word in enumerate(AWKWARD)},
    )
    assert bundle.run().returncode == 0
    assert json.loads((bundle.folder / "work" / "argv.json").read_text()) == AWKWARD


def test_variables_arrive_as_they_are(bundle):
    bundle.script(
        "import json, os; json.dump(dict(os.environ), open('env.json', 'w'))",
        variables={f"V{number}": word for number, word in enumerate(AWKWARD)},
        setup=":",
    )
    assert bundle.run().returncode == 0
    found = json.loads((bundle.folder / "work" / "env.json").read_text())
    assert [found[f"V{number}"] for number in range(len(AWKWARD))] == AWKWARD


ASCII_ONLY = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"}, ASCII_ONLY])
def test_a_bundle_with_an_awkward_path(tmp_path, locale):
    bundle = make_bundle(tmp_path / 'it\'s a "run" $HOME ; Zoë\n日本')
    bundle.plan(
        *("/bin/bash", "-c", 'pwd; echo "$FOUND" "$1"', "bash", {"bundle": "code/x y.py"}),
        python=None,
        setup="export FOUND=Zoë",
    )
    assert bundle.run(env={"PATH": os.environ["PATH"], **locale}).returncode == 0
    expected = f"{bundle.folder}/work\nZoë {bundle.folder}/code/x y.py\n"
    assert bundle.rank_log().decode() == expected


def test_a_command_of_options_and_scripts_goes_to_python(bundle):
    (bundle.folder / "code" / "main.py").write_text("import sys; print(sys.flags.dev_mode, sys.executable)")
    bundle.plan("-X", "dev", {"bundle": "code/main.py"})
    assert bundle.run().returncode == 0
    assert bundle.rank_log().decode().split() == ["True", sys.executable]
    bundle.as_if_it_failed()
    bundle.plan({"bundle": "code/main.py"})
    assert bundle.run(incarnation="17.1").returncode == 0
    assert bundle.rank_log(attempt=2).decode().split() == ["False", sys.executable]


def test_foreign_variables_do_not_mislead(bundle):
    foreign = {"RANK": "7", "GROUP_RANK": "7", "PET_NNODES": "9", "TORCHELASTIC_RUN_ID": "x"}
    bundle.shell('echo "$RANK-$GROUP_RANK-$PET_NNODES-$TORCHELASTIC_RUN_ID-$KEPT"')
    assert bundle.run(env={**os.environ, **foreign, "KEPT": "yes"}).returncode == 0
    assert bundle.rank_log() == b"0----yes\n"


def test_defaults_that_the_user_may_change(bundle):
    command = 'echo "$PYTHONUNBUFFERED $PYTHONFAULTHANDLER $OMP_NUM_THREADS"'
    bundle.shell(command, cpus=7, processes_per_node=2)
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    assert bundle.run(env=environment).returncode == 0
    assert bundle.rank_log() == b"1 1 3\n"
    bundle.as_if_it_failed()
    bundle.shell(command, cpus=1, processes_per_node=2)
    assert bundle.run(env=environment, incarnation="17.1").returncode == 0
    assert bundle.rank_log(attempt=2) == b"1 1 1\n"
    bundle.as_if_it_failed(2)
    bundle.shell(command, variables={"OMP_NUM_THREADS": "5", "PYTHONFAULTHANDLER": ""})
    assert bundle.run(env=environment, incarnation="17.2").returncode == 0
    assert bundle.rank_log(attempt=3) == b"1  5\n"


def test_a_rank_starts_like_from_a_clean_shell(bundle):
    bundle.script(
        "import os, signal, sys\n"
        "print(os.readlink('/proc/self/fd/0'), sorted(os.listdir('/proc/self/fd'))[:-1])\n"
        "print(os.getsid(0) == os.getpid())\n"
        "os.execvp('bash', ['bash', '-c', 'umask; grep SigIgn /proc/self/status'])\n"
    )
    os_umask = os.umask(0o027)
    try:
        assert bundle.run().returncode == 0
    finally:
        os.umask(os_umask)
    lines = bundle.rank_log().decode().splitlines()
    assert lines[0] == "/dev/null ['0', '1', '2']"
    assert lines[1] == "True"
    assert lines[2] == "0027"


def test_a_shell_command_gets_sigpipe(bundle):
    bundle.shell("yes | head -n 1; echo ${PIPESTATUS[0]}")
    assert bundle.run().returncode == 0
    assert bundle.rank_log() == b"y\n141\n"


@pytest.mark.parametrize(("command", "code", "number"), [("exit 3", 3, None), ("kill -9 $$", 137, 9)])
def test_the_end_of_a_rank_is_the_nodes(bundle, command, code, number):
    bundle.shell(command, launcher="none")
    assert bundle.run().returncode == code
    record = bundle.node()
    assert (record["exit_code"], record["signal"]) == (code, number)
    rank = record["ranks"][0]
    assert (rank["exit_code"], rank["signal"]) == (code, number)
    assert record["started_at"] <= rank["started_at"] <= rank["ended_at"] <= record["ended_at"]
    assert record["stopped_by"] is None
    assert record["error"] is None
    assert bundle.status("failed.json")["exit_code"] == code


def test_one_that_fails_ends_the_others(bundle):
    bundle.shell("if [ $RANK = 1 ]; then sleep 0.2; exit 4; fi; sleep 600", processes_per_node=3)
    assert bundle.run().returncode == 4
    ranks = bundle.node()["ranks"]
    assert [rank["exit_code"] for rank in ranks] == [143, 4, 143]
    assert bundle.node()["exit_code"] == 4


def test_one_that_is_done_leaves_the_others_alone(bundle):
    bundle.shell("[ $RANK = 0 ] || { sleep 0.7; echo done; }", processes_per_node=2)
    assert bundle.run().returncode == 0
    assert bundle.rank_log(1) == b"done\n"


def test_a_killed_rank(bundle):
    bundle.shell("echo up; sleep 600", processes_per_node=2)
    launcher = bundle.start()
    pids = until(bundle.rank_pids)
    bundle.until_said(b"up", 0)
    os.kill(pids[0], signal.SIGKILL)
    launcher.communicate(timeout=30)
    assert launcher.returncode == 137
    assert bundle.node()["signal"] == 9
    assert bundle.node()["ranks"][0]["exit_code"] == 137


def test_a_failing_node_brings_the_others_down(bundle):
    bundle.shell("echo up; if [ $NODE_RANK = 1 ]; then exit 5; fi; sleep 600", nodes=3)
    launchers = [bundle.start(node, 3) for node in range(3)]
    for launcher in launchers:
        launcher.communicate(timeout=30)
    assert [launcher.returncode for launcher in launchers] == [143, 5, 143]
    assert [bundle.node(node)["stopped_by"] for node in range(3)] == ["peer", None, "peer"]
    assert bundle.status("failed.json")["node_rank"] == 1


def test_a_node_that_cannot_start_brings_the_others_down(bundle):
    bundle.shell("sleep 600", nodes=2, setup="test $NODE_RANK = 0")
    launchers = [bundle.start(node, 2) for node in range(2)]
    for launcher in launchers:
        launcher.communicate(timeout=30)
    assert [launcher.returncode for launcher in launchers] == [143, 1]
    assert bundle.node(1)["error"]["code"] == "setup_failed"


def test_a_node_that_is_done_leaves_the_others_alone(bundle):
    bundle.shell("[ $NODE_RANK = 0 ] || { sleep 1.7; echo done; }", nodes=2)
    launchers = [bundle.start(node, 2) for node in range(2)]
    for launcher in launchers:
        launcher.communicate(timeout=30)
    assert [launcher.returncode for launcher in launchers] == [0, 0]
    assert bundle.rank_log(node=1) == b"done\n"
    assert bundle.node(0)["ended_at"] < bundle.node(1)["ended_at"] - 1


def test_a_later_attempt_ends_an_earlier_one(bundle):
    bundle.shell("echo up; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600")
    old = bundle.start()
    bundle.until_said(b"up")
    assert bundle.run(incarnation="17.1").returncode == 0
    old.communicate(timeout=30)
    assert old.returncode == 143
    assert bundle.node(attempt=1)["stopped_by"] == "superseded"


def test_memory_and_cpu_time_of_ended_ranks_are_told(bundle):
    bundle.script(
        "import time\nx = bytearray(150 * 2**20)\nwhile time.process_time() < 0.5: pass",
        launcher="python",
        processes_per_node=2,
    )
    assert bundle.run().returncode == 0
    record = bundle.node()
    assert 150 * 2**20 <= record["max_memory"] <= 200 * 2**20
    assert 1.0 <= record["cpu_seconds"] <= 5.0
