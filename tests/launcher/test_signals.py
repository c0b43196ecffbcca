"""Signals, and that nothing is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import NODE_PYTHON, alive, processes_with, until

STUBBORN = "trap '' TERM; echo up; while :; do sleep 600 & wait; done"

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        environment = {} if "clean" in sys.argv else dict(os.environ)
        os.execve(sys.executable, [sys.executable, "-c", IGNORE], environment)
    os._exit(0)
os.wait()
while not os.path.exists("pid"):
    time.sleep(0.01)
print("up", flush=True)
if "stay" in sys.argv:
    time.sleep(600)
""".replace(
    "IGNORE",
    repr(
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "open('.pid', 'w').write(str(os.getpid())); os.rename('.pid', 'pid'); time.sleep(600)"
    ),
)


def stop(launcher, number=signal.SIGTERM):
    """Send a signal; how long the end took."""
    begun = time.monotonic()
    launcher.send_signal(number)
    launcher.communicate(timeout=30)
    return time.monotonic() - begun


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_stop(bundle, name):
    bundle.shell("echo up; sleep 600", processes_per_node=2, stop_grace=20)
    launcher = bundle.start()
    bundle.until_said(b"up", 0)
    bundle.until_said(b"up", 1)
    assert stop(launcher, getattr(signal, name)) < 10
    assert launcher.returncode == 143
    record = bundle.node()
    assert (record["stopped_by"], record["exit_code"], record["signal"]) == (name, 143, 15)
    assert [rank["signal"] for rank in record["ranks"]] == [15, 15]


def test_a_rank_that_ends_well_when_told(bundle):
    bundle.script(
        "import signal, sys, time\n"
        "def end(*_):\n    time.sleep(0.5); print('saved'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(600)",
        stop_grace=20,
    )
    launcher = bundle.start()
    bundle.until_said(b"up")
    stop(launcher)
    assert launcher.returncode == 143  # its work is not done: the run is cancelled, requeued or out of time
    assert bundle.rank_log() == b"up\nsaved\n"
    assert bundle.node()["stopped_by"] == "SIGTERM"


def test_one_that_ignores_sigterm_is_killed_after_the_grace(bundle):
    bundle.shell(STUBBORN, stop_grace=1)
    launcher = bundle.start()
    bundle.until_said(b"up")
    took = stop(launcher)
    assert took >= 1
    assert launcher.returncode == 137
    assert not processes_with(f"HYPERPOD_BUNDLE={bundle.folder}")
    assert "killed: bash" in bundle.node_log()


@pytest.mark.parametrize("words", [["stay"], ["stay", "clean"]])
def test_a_daemon_that_ignores_sigterm_does_not_survive_a_stop(bundle, words):
    bundle.script(DAEMON, *words)
    launcher = bundle.start()
    bundle.until_said(b"up")
    pid = int((bundle.folder / "work" / "pid").read_text())
    stop(launcher)
    assert not alive(pid)


@pytest.mark.parametrize("words", [[], ["clean"]])
def test_a_daemon_does_not_survive_a_normal_end(bundle, words):
    bundle.script(DAEMON, *words)
    assert bundle.run().returncode == 0
    assert not alive(int((bundle.folder / "work" / "pid").read_text()))
    assert "killed: python" in bundle.node_log()


def test_without_a_subreaper_the_marks_find_what_is_left(bundle):
    source = (bundle.folder / "launcher.py").read_text()
    assert source.count("prctl(PR_SET_CHILD_SUBREAPER, 1)") == 1
    source = source.replace("prctl(PR_SET_CHILD_SUBREAPER, 1)", "pass")
    (bundle.folder / "launcher.py").write_text(source)
    bundle.script(DAEMON)
    assert bundle.run().returncode == 0
    assert not alive(int((bundle.folder / "work" / "pid").read_text()))


def test_the_program_under_a_shell_gets_sigterm_when_the_shell_is_gone(bundle):
    bundle.script(
        "import signal, sys, time\n"
        "def end(*_):\n    print('saved', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(600)"
    )
    program = f"{sys.executable} '{bundle.folder}/code/main.py'"
    bundle.shell(f"{program}; echo never", stop_grace=20)
    launcher = bundle.start()
    bundle.until_said(b"up")
    assert stop(launcher) < 10
    assert bundle.rank_log() == b"up\nsaved\n"


def test_helpers_are_the_ranks_business_until_it_ends(bundle):
    bundle.script(
        "import signal, subprocess, sys, time\n"
        "helper = subprocess.Popen(['sleep', '600'])\n"
        "def end(*_):\n"
        "    time.sleep(0.5); print('helper', helper.poll(), flush=True); helper.kill(); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(600)",
        stop_grace=20,
    )
    launcher = bundle.start()
    bundle.until_said(b"up")
    stop(launcher)
    assert bundle.rank_log() == b"up\nhelper None\n"


def test_other_nodes_and_runs_on_the_machine_are_left_alone(bundle, tmp_path):
    bundle.shell(STUBBORN, nodes=2, stop_grace=0.3)
    launchers = [bundle.start(node, 2) for node in range(2)]
    bundle.until_said(b"up", node=0)
    bundle.until_said(b"up", node=1)
    # One node of one attempt alone: the other would learn of its failure, so it must not look.
    os.kill(launchers[0].pid, signal.SIGSTOP)
    pid = until(lambda: bundle.rank_pids(0))[0]
    stop(launchers[1])
    assert alive(pid)
    os.kill(launchers[0].pid, signal.SIGCONT)
    launchers[0].communicate(timeout=30)
    assert not processes_with(f"HYPERPOD_BUNDLE={bundle.folder}")


def test_a_child_that_was_there_before_is_left_alone(bundle):
    bundle.shell("true")
    command = 'sleep 600 & echo $! >pid; exec "$0" "$@"'
    launcher = bundle.start(python="/bin/bash", stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    launcher.communicate()
    words = [NODE_PYTHON, *map(str, launcher.args[1:])]
    done = subprocess.run(
        ["/bin/bash", "-c", command, *words], cwd=bundle.folder, stdout=subprocess.DEVNULL, timeout=30
    )
    assert done.returncode == 0
    pid = int((bundle.folder / "pid").read_text())
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_ranks_do_not_survive_the_launchers_sudden_death(bundle):
    bundle.shell("echo up; exec sleep 600", processes_per_node=2)
    launcher = bundle.start()
    bundle.until_said(b"up", 1)
    pids = until(bundle.rank_pids)
    launcher.kill()
    until(lambda: not any(alive(pid) for pid in pids), "the ranks' end")


CATCH = "trap 'echo caught' USR1; echo up; while :; do sleep 0.05; done"


def start_one_that_catches_and_one_that_does_not(bundle, policy):
    bundle.shell(
        f"if [ $RANK = 0 ]; then {CATCH}; fi; echo up; exec sleep 600", processes_per_node=2, forward_signals=policy
    )
    launcher = bundle.start()
    bundle.until_said(b"up", 0)
    bundle.until_said(b"up", 1)
    sleeper = until(bundle.rank_pids)[1]
    until(lambda: Path(f"/proc/{sleeper}/cmdline").read_bytes().startswith(b"sleep"))
    launcher.send_signal(signal.SIGUSR1)
    until(lambda: "SIGUSR1" in bundle.node_log())
    return launcher


def test_a_warning_signal_goes_to_those_who_catch_it(bundle):
    launcher = start_one_that_catches_and_one_that_does_not(bundle, "caught")
    assert "passed to rank 0 (" in bundle.node_log()
    bundle.until_said(b"caught")
    assert launcher.poll() is None


def test_a_warning_signal_goes_to_nobody(bundle):
    launcher = start_one_that_catches_and_one_that_does_not(bundle, "never")
    assert "not passed to a rank (never)" in bundle.node_log()
    stop(launcher)
    assert b"caught" not in bundle.rank_log()


def test_a_warning_signal_goes_to_all(bundle):
    launcher = start_one_that_catches_and_one_that_does_not(bundle, "always")
    assert "passed to rank 0, 1 (" in bundle.node_log()
    launcher.communicate(timeout=30)
    assert launcher.returncode == 128 + signal.SIGUSR1
    assert bundle.node()["ranks"][1]["signal"] == signal.SIGUSR1


def test_a_warning_signal_reaches_the_program_under_a_shell_once(bundle):
    (bundle.folder / "code" / "main.py").write_text(
        "import os, signal, time\n"
        "signal.signal(signal.SIGUSR2, lambda *_: print('caught', os.getpid() == me, flush=True))\n"
        "me = os.getpid()\n"
        "os.fork()\n"
        "print('up', flush=True)\n"
        "while True: time.sleep(0.05)\n"
    )
    bundle.shell(f"{sys.executable} '{bundle.folder}/code/main.py'; echo never")
    launcher = bundle.start()
    bundle.until_said(b"up\nup\n")
    launcher.send_signal(signal.SIGUSR2)
    bundle.until_said(b"caught")
    stop(launcher)
    assert bundle.rank_log() == b"up\nup\ncaught True\n"


def test_a_second_signal_changes_nothing(bundle):
    bundle.shell(STUBBORN, stop_grace=1)
    launcher = bundle.start()
    bundle.until_said(b"up")
    launcher.send_signal(signal.SIGTERM)
    until(lambda: "stopping" in bundle.node_log())
    launcher.send_signal(signal.SIGINT)
    launcher.communicate(timeout=30)
    assert launcher.returncode == 137
    assert bundle.node()["stopped_by"] == "SIGTERM"


def test_nohup_is_respected(bundle):
    bundle.shell("echo up; sleep 1; echo done")
    launcher = bundle.start(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    bundle.until_said(b"up")
    launcher.send_signal(signal.SIGHUP)
    launcher.communicate(timeout=30)
    assert launcher.returncode == 0


def test_a_stop_during_the_setup_lines(bundle):
    bundle.shell("echo never", setup="sleep 600")
    launcher = bundle.start()
    until(lambda: processes_with(f"HYPERPOD_BUNDLE={bundle.folder}"))
    assert stop(launcher) < 10
    assert launcher.returncode == 143
    record = bundle.node()
    assert (record["stopped_by"], record["signal"], record["ranks"]) == ("SIGTERM", 15, [])
    assert not processes_with(f"HYPERPOD_BUNDLE={bundle.folder}")
