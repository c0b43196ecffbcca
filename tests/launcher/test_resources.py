"""Samples of what ranks and nodes use."""

import json
import os
import stat

import pytest

from hyperpod_jlab.launcher.resources import ResourceLog, parse_gpus

WAIT_FOR_SAMPLES = """
import os, pathlib, time
held = bytearray(64 << 20) if os.environ["RANK"] == "1" else b""
file = next(pathlib.Path(os.environ["HYPERPOD_BUNDLE"]).glob("logs/attempt-1/node-0.activity.json"))
samples = file.with_name("node-0.resources.jsonl")
enough = int(os.environ["SAMPLES"])
while not samples.exists() or samples.read_text().count("\\n") < enough:
    time.sleep(0.05)
"""


def lines_of(bundle):
    path = bundle.folder / "logs" / "attempt-1" / "node-0.resources.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_rank_is_sampled_with_its_memory(bundle):
    variables = {"SAMPLES": "4"}
    bundle.script(WAIT_FOR_SAMPLES, processes_per_node=2, variables=variables)
    assert bundle.run().returncode == 0
    head, *samples = lines_of(bundle)
    assert head["format"] == 1
    assert head["cpus"] >= head["cpus_allowed"] >= 1
    assert head["memory"] > 1 << 28
    assert head["gpus"] == []
    memory = {rank: used for rank, _, used in samples[-1]["ranks"]}
    assert memory[1] > memory[0] + (60 << 20)
    assert samples[0]["cpu"] is None
    assert samples[-1]["cpu"] >= 0
    assert [sample["time"] for sample in samples] == sorted(sample["time"] for sample in samples)


def test_gpus_are_asked_for_without_counting_as_the_job(bundle, tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '0, GPU-1, NVIDIA H100 80GB HBM3, 97, 71234, 81559'\n")
    program.chmod(stat.S_IRWXU)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    bundle.script(WAIT_FOR_SAMPLES, variables={"SAMPLES": "2"})
    assert bundle.run(env=environment).returncode == 0
    head, sample = lines_of(bundle)[:2]
    assert head["gpus"] == [{"index": 0, "name": "NVIDIA H100 80GB HBM3", "memory": 81559 << 20}]
    assert sample["gpus"] == [[0, 97.0, 71234 << 20]]


@pytest.mark.parametrize("text", ["exit 9", "echo 'NVIDIA-SMI has failed'; exit 9", "kill -9 $$"])
def test_a_broken_nvidia_smi_is_not_asked_again(bundle, tmp_path, text):
    program = tmp_path / "nvidia-smi"
    asked = tmp_path / "asked"
    program.write_text(f"#!/bin/sh\necho >> {asked}\n{text}\n")
    program.chmod(stat.S_IRWXU)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    bundle.script(WAIT_FOR_SAMPLES, variables={"SAMPLES": "3"})
    assert bundle.run(env=environment).returncode == 0
    assert asked.read_text() == "\n"
    assert all(sample["gpus"] == [] for sample in lines_of(bundle)[1:])


def test_a_hanging_nvidia_smi_holds_nothing_up(bundle, tmp_path):
    program = tmp_path / "nvidia-smi"
    asked = tmp_path / "asked"
    program.write_text(f"#!/bin/sh\necho > {asked}\nexec sleep 1000\n")
    program.chmod(stat.S_IRWXU)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    bundle.script(f"import pathlib, time\nwhile not pathlib.Path({str(asked)!r}).exists(): time.sleep(0.01)")
    assert bundle.run(env=environment).returncode == 0
    assert "killed" not in (bundle.folder / "logs" / "attempt-1" / "node-0.log").read_text()


ROWS = """
0, GPU-aaaa-1, NVIDIA H100, 3, 1024, 81559
1, GPU-bbbb-2, NVIDIA H100, [N/A], 2048, 81559
a warning of the driver
2, GPU-cccc-3, NVIDIA H100, 5
"""


@pytest.mark.parametrize(
    ("visible", "numbers"),
    [(None, [0, 1]), ("", [0, 1]), ("1", [1]), ("GPU-aaaa", [0]), ("7", [0, 1]), ("0, 1", [0, 1])],
)
def test_gpus_of_the_job(visible, numbers):
    assert [gpu.number for gpu in parse_gpus(ROWS, visible)] == numbers


def test_what_a_gpu_does_not_say_is_unknown():
    gpu = parse_gpus(ROWS, "1")[0]
    assert (gpu.utilization, gpu.memory) == (None, 2048 << 20)


def test_a_week_has_some_two_thousand_lines():
    interval, seconds, count = ResourceLog.INTERVAL_S, 0.0, 0
    while seconds < 7 * 86400:
        seconds += interval
        count += 1
        if count % ResourceLog.SAMPLES_PER_INTERVAL == 0:
            interval *= 2
    assert count < 2200


LOG = """
import os, pathlib, subprocess, sys, time
folder = pathlib.Path("logs of mine")
folder.mkdir()
child = subprocess.Popen([sys.executable, "-c",
    "import time; f = open('logs of mine/events.out.tfevents.1.host', 'w'); time.sleep(600)"])
samples = next(pathlib.Path(os.environ["HYPERPOD_BUNDLE"]).glob("logs/attempt-1")) / "node-0.resources.jsonl"
while "logs of mine" not in (samples.read_text() if samples.exists() else ""):
    time.sleep(0.05)
child.kill()
"""


def test_log_folders_of_the_ranks_are_seen(bundle, tmp_path):
    bundle.script(f"import os\nos.chdir({str(tmp_path)!r})\n{LOG}")
    assert bundle.run().returncode == 0
    told = [line for line in lines_of(bundle)[1:] if "log_folders" in line]
    assert told[-1]["log_folders"] == [str(tmp_path / "logs of mine")]
    # Most samples do not look: it costs as much as all the rest.
    assert len(told) < len(lines_of(bundle)) - 1 or len(told) <= 2
