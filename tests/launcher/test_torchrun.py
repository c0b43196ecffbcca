"""torchrun's agents, for real."""

import os
import signal
import time

from .conftest import alive, processes_with, until

TRAIN = """
import os, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([float(os.environ["RANK"])])
dist.all_reduce(total)
print(f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}", "sum", total.item(), flush=True)
assert os.environ["NODE_RANK"] == os.environ["GROUP_RANK"]
dist.barrier()
dist.destroy_process_group()
time.sleep(0.3)
"""

ALONE = """
import os, sys, time
print("up", flush=True)
if os.environ["RANK"] == os.environ.get("WHO"):
    exec(os.environ["WHAT"])
time.sleep(600)
"""


FAIL_WHEN_TOLD = """
while not os.path.exists("go"):
    time.sleep(0.05)
raise ValueError("boom")
"""


def wait_for_all(launchers):
    for launcher in launchers:
        launcher.communicate(timeout=100)
    return [launcher.returncode for launcher in launchers]


def test_two_nodes_of_two_processes(bundle):
    bundle.script(TRAIN, launcher="torchrun", nodes=2, processes_per_node=2)
    assert wait_for_all([bundle.start(node, 2) for node in range(2)]) == [0, 0], bundle.node_log()
    for node in range(2):
        record = bundle.node(node)
        assert record["exit_code"] == 0
        for local_rank, rank in enumerate(record["ranks"]):
            number = 2 * node + local_rank
            log = bundle.rank_log(local_rank, node)
            assert log.splitlines() == [b"rank %d of 4 sum 6.0" % number]
            assert (rank["rank"], rank["exit_code"]) == (number, 0)
            assert rank["pid"] != record["pid"]
            assert record["started_at"] < rank["started_at"] < rank["ended_at"] < record["ended_at"]
    assert not list((bundle.folder / "status" / "attempt-1").glob(".*"))


def test_a_rank_that_fails_ends_all_nodes(bundle):
    what = {"WHO": "1", "WHAT": FAIL_WHEN_TOLD}
    bundle.script(ALONE, launcher="torchrun", nodes=2, processes_per_node=2, variables=what)
    launchers = [bundle.start(node, 2) for node in range(2)]
    for node in range(2):
        for local_rank in range(2):
            bundle.until_said(b"up", local_rank, node)
    (bundle.folder / "work" / "go").touch()
    assert wait_for_all(launchers) == [1, 143]
    ranks = bundle.node(0)["ranks"]
    assert [(rank["exit_code"], rank["signal"]) for rank in ranks] == [(143, 15), (1, None)]
    assert bundle.node(1)["stopped_by"] == "peer"
    assert bundle.status("failed.json")["node_rank"] == 0
    error = bundle.status("rank-1.error.json")
    assert (error["type"], error["message"]) == ("ValueError", "boom")
    assert bundle.status("rank-0.error.json") is None
    assert "ChildFailedError" in bundle.node_log()
    assert not processes_with(f"HYPERPOD_BUNDLE={bundle.folder}")


def test_a_killed_rank(bundle):
    bundle.script(ALONE, launcher="torchrun", processes_per_node=2)
    launcher = bundle.start()
    pids = until(bundle.rank_pids)
    bundle.until_said(b"up", 0)
    bundle.until_said(b"up", 1)
    os.kill(pids[1], signal.SIGKILL)
    assert wait_for_all([launcher]) == [137]
    record = bundle.node()
    assert (record["exit_code"], record["signal"]) == (137, 9)
    assert record["ranks"][1]["exit_code"] == 137


def test_a_rank_that_ignores_sigterm_cannot_hold_up_the_end(bundle):
    bundle.script(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\n"
        "time.sleep(600 if os.environ['RANK'] == '0' else 1); sys.exit(3)",
        launcher="torchrun",
        processes_per_node=2,
        stop_grace=1,
    )
    launcher = bundle.start()
    bundle.until_said(b"up", 0)
    bundle.until_said(b"up", 1)
    begun = time.monotonic()
    wait_for_all([launcher])
    assert time.monotonic() - begun < 15  # torchrun's own patience is 30 s
    assert launcher.returncode != 0
    assert not processes_with(f"HYPERPOD_BUNDLE={bundle.folder}")


def test_a_warning_signal_goes_to_the_ranks_and_a_stop_to_all(bundle):
    bundle.script(
        "import os, signal, sys, time\n"
        "def end(*_):\n    print('saved', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "if os.environ['RANK'] == '0':\n"
        "    signal.signal(signal.SIGUSR2, lambda *_: print('caught', flush=True))\n"
        "print('up', flush=True)\n"
        "while True: time.sleep(0.1)",
        launcher="torchrun",
        processes_per_node=2,
        stop_grace=20,
    )
    launcher = bundle.start()
    until(bundle.rank_pids)
    bundle.until_said(b"up", 0)
    bundle.until_said(b"up", 1)
    launcher.send_signal(signal.SIGUSR2)
    bundle.until_said(b"caught", 0)
    until(lambda: "passed to rank 0 (" in bundle.node_log())
    assert launcher.poll() is None
    launcher.send_signal(signal.SIGTERM)
    assert wait_for_all([launcher]) == [143]
    assert bundle.rank_log(0) == b"up\ncaught\nsaved\n"
    assert bundle.rank_log(1) == b"up\nsaved\n"
    assert bundle.node()["stopped_by"] == "SIGTERM"


def test_ranks_die_with_their_agent_and_the_agent_with_its_launcher(bundle):
    bundle.script(ALONE, launcher="torchrun", processes_per_node=2)
    launcher = bundle.start()
    pids = until(bundle.rank_pids)
    launcher.kill()
    until(lambda: not any(alive(pid) for pid in pids))
    until(lambda: not processes_with(f"HYPERPOD_BUNDLE={bundle.folder}"))


def test_an_agent_that_cannot_start_the_ranks(bundle):
    variables = {"PYTHONPATH": str(bundle.folder / "work")}
    bundle.script("pass", launcher="torchrun", nodes=2, processes_per_node=2, variables=variables)
    (bundle.folder / "work" / "torch").mkdir()
    (bundle.folder / "work" / "torch" / "__init__.py").write_text("raise ImportError('no libcuda')")
    launcher = bundle.start(0, 2)
    assert wait_for_all([launcher]) == [1]
    error = bundle.node()["error"]
    assert error["code"] == "torchrun_failed"
    assert error["message"] == "torchrun did not start the ranks: ImportError: no libcuda"
