"""The fine-tuning on the embedded cluster: a killed node, a damaged checkpoint, another number of ranks, and the scores at the end."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from tests.examples.conftest import ROOT
from tests.examples.finetune_toy import (
    EVERY,
    EXAMPLE,
    FIRST_CHECKPOINT,
    STEPS,
    TRAINING,
    check_continued,
    losses,
    prepare,
    steps,
)

pytestmark = pytest.mark.torch


@pytest.mark.timeout(600)
def test_a_training_survives_a_node_and_a_damaged_checkpoint_and_its_model_is_better(hpj, environment):
    partition = Path(environment["XDG_DATA_HOME"]) / "hyperpod-jlab" / "partition"
    folder = partition / "finetune"
    prepare(folder)
    size = ("--nodes=2", "--max-restarts=1")
    script = EXAMPLE / "train.py"
    run_id = hpj("submit", script, *size, "--", *TRAINING).stdout.strip()
    [bundle] = partition.glob(f".hyperpod/runs/*/{run_id}")
    logs = [bundle / f"logs/attempt-{number}/node-0.rank-0.log" for number in (1, 2)]
    until(lambda: logs[0].exists() and FIRST_CHECKPOINT in logs[0].read_text())
    node = json.loads((bundle / "status/attempt-1/node-1.json").read_text())
    os.kill(node["pid"], signal.SIGKILL)
    done = hpj("logs", "-f", run_id, timeout=300)
    assert done.returncode == 0
    first, second = (log.read_text() for log in logs)
    check_continued(first, second)

    newest = folder / "checkpoints" / f"step-{STEPS:08d}"
    torn = newest / "__1_0.distcp"
    os.truncate(torn, torn.stat().st_size - 1)
    told = steps(folder, f"train.main([folder, *{TRAINING}])", "merge.main([folder])", EVALUATE)
    assert f"checkpoint {newest.name} is damaged (__1_0.distcp has changed)" in told
    assert f"continuing after step {STEPS - EVERY}" in told
    again = losses(told)
    assert list(again) == list(range(STEPS - EVERY + 1, STEPS + 1))
    for step, loss in again.items():  # one rank now, two before
        assert loss == pytest.approx(losses(second)[step], abs=1e-3)
    scores = json.loads((folder / "report.json").read_text())["scores"]
    assert scores["tuned"]["rougeL"] > scores["base"]["rougeL"] + 0.2
    assert f"| tuned | {scores['tuned']['rouge1']:.3f} |" in told


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_demo_loses_a_node_and_shows_a_better_model(environment):
    demo = subprocess.run(
        [sys.executable, "scripts/demo.py", "--finetune"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert demo.returncode == 0, demo.stdout
    assert "--- attempt 2 started: a node failed ---" in demo.stdout
    assert "0|continuing after step 60" in demo.stdout
    assert "Traceback" not in demo.stdout
    [base, tuned] = re.findall(r"^\| (?:base|tuned) .* (\S+) \|$", demo.stdout, re.MULTILINE)
    assert float(tuned) > 0.9 > float(base) + 0.3


EVALUATE = "evaluate.main([folder, '--max-new-tokens=32'])"


def test_checkpoints_of_other_settings_are_refused(tmp_path, module):
    changed, folder = module("checkpoints").changed, tmp_path / "checkpoints"
    settings = {"the base model": "a", "the data": "b", "--rank": 8, "--seed": 0}
    assert changed(folder, settings) == []
    assert changed(folder, settings) == []
    again = {**settings, "the base model": "c", "--rank": 16}
    assert changed(folder, again) == ["the base model", "--rank 16 (it was 8)"]


def test_a_model_of_the_same_shape_is_another_one(tmp_path, module):
    fingerprint = module("places").fingerprint
    (tmp_path / "config.json").write_text("{}")
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(bytes(1 << 21))
    first = fingerprint(tmp_path)
    assert fingerprint(tmp_path) == first
    weights.write_bytes(bytes(1 << 20) + b"1" * (1 << 20))
    assert fingerprint(tmp_path) != first


def test_another_model_is_not_put_over_a_base_model(tmp_path, module):
    base = tmp_path / "base"
    base.mkdir()
    words = [f"--folder={tmp_path}", "--hub=a/b"]
    with pytest.raises(FileExistsError, match="has a model from elsewhere, not a/b@main"):
        module("get_model").main(words)
    (base / "get_model.txt").write_text("toy@160")
    with pytest.raises(FileExistsError, match=r"has toy@160, not a/b@main. Choose another"):
        module("get_model").main(words)
    (base / "get_model.txt").write_text("a/b@main")
    module("get_model").main(words)  # it is there: no network is used


def test_a_step_names_the_one_that_is_missing(tmp_path, module):
    merge, folder = module("merge").main, [f"--folder={tmp_path}"]
    with pytest.raises(FileNotFoundError, match=r"base/config.json is missing. Run get_model.py"):
        merge(folder)
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").touch()
    with pytest.raises(FileNotFoundError, match=r"adapter_config.json is missing. Run train.py"):
        merge(folder)


USER = {"role": "user", "content": "?"}
ASSISTANT = {"role": "assistant", "content": "!"}


def test_an_index_of_other_chats_is_gone_before_the_first_write(tmp_path, module, monkeypatch):
    transformers = import_module("transformers")

    def kill(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", kill)
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").touch()
    (tmp_path / "data").mkdir()
    index = tmp_path / "data" / "index.json"
    index.write_text("{}")
    words = [f"--folder={tmp_path}", "--toy-chats=8"]
    with pytest.raises(ValueError, match="none is left to train on"):
        module("prepare_data").main([*words, "--held-out=8"])
    assert index.exists()
    with pytest.raises(KeyboardInterrupt):
        module("prepare_data").main([*words, "--held-out=1"])
    assert not index.exists()


def test_each_chat_counts_once(tmp_path, module):
    file = tmp_path / "chats.jsonl"
    chats = [json.dumps({"messages": [USER, ASSISTANT, USER, ASSISTANT][:count]}) for count in (2, 4)]
    file.write_text("\n".join([*chats, "", chats[0]]))
    assert module("prepare_data").chats_of(file) == chats


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ('{"messages": [', "this is not JSON"),
        ("[]", "a chat is {"),
        (json.dumps({"messages": []}), "this one has 0 messages"),
        (json.dumps({"messages": [ASSISTANT]}), "this one has 1 messages"),
        (json.dumps({"messages": [USER, USER]}), "must be the assistant's, and is the user's"),
        (json.dumps({"messages": [{"role": "user"}, ASSISTANT]}), "needs a role and a content"),
        (json.dumps({"messages": [USER, {**ASSISTANT, "content": ""}]}), "has no text"),
    ],
)
def test_a_wrong_chat_is_named_by_its_line(tmp_path, module, line, wrong):
    file = tmp_path / "chats.jsonl"
    file.write_text(json.dumps({"messages": [USER, ASSISTANT]}) + f"\n{line}\n")
    with pytest.raises(ValueError, match=f"chats.jsonl, line 2: .*{re.escape(wrong)}"):
        module("prepare_data").chats_of(file)


def test_the_newest_whole_checkpoint_counts(tmp_path, module, capsys):
    example = module("checkpoints")
    for step in (1, 2, 3):
        folder = tmp_path / f"step-{step:08d}"
        folder.mkdir()
        (folder / "a").write_bytes(b"tensor")
        facts = {"a": example.facts_of(folder / "a")}
        (folder / "whole.json").write_text(json.dumps(facts))
    (tmp_path / "writing").mkdir()
    path = tmp_path / "step-00000003"
    assert example.newest_whole(tmp_path) == path
    (path / "a").write_bytes(b"tensoR")
    assert example.newest_whole(tmp_path).name == "step-00000002"
    assert "step-00000003 is damaged (a has changed)" in capsys.readouterr().out
    (tmp_path / "step-00000002" / "whole.json").write_text('{"a": [')
    assert example.newest_whole(tmp_path).name == "step-00000001"
    (tmp_path / "step-00000001" / "a").unlink()
    assert example.newest_whole(tmp_path) is None
    assert example.newest_whole(tmp_path / "none") is None


@pytest.fixture
def module(monkeypatch):
    """Imports a module of the example by its name."""
    monkeypatch.syspath_prepend(EXAMPLE)
    before = set(sys.modules)
    yield import_module
    for name in {path.stem for path in EXAMPLE.glob("*.py")} & (sys.modules.keys() - before):
        del sys.modules[name]


@pytest.mark.parametrize(
    ("answer", "reference", "scores"),
    [
        ("the cat sat on the mat", "the cat sat on the mat", (1, 1, 1)),
        ("", "the cat", (0, 0, 0)),
        ("police killed the gunman", "police kill the gunman", (0.75, 1 / 3, 0.75)),
        ("the gunman kill police", "police kill the gunman", (1, 1 / 3, 0.5)),
        ("the the the", "the cat; The dog!", (4 / 7, 0, 4 / 7)),
    ],
)
def test_rouge(module, answer, reference, scores):
    found = module("rouge").rouge(answer, reference)
    assert tuple(found.values()) == pytest.approx(scores)


def until(there):
    """Wait for a condition."""
    end = time.monotonic() + 300
    while not there():
        assert time.monotonic() < end
        time.sleep(0.05)
