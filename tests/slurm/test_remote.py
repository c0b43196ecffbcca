"""A command as a login node's shell reads it, and login nodes by name."""

from __future__ import annotations

import subprocess

import pytest

from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.engines.slurm.ssh import LoginNode, Ssh, command_script, repeatable
from tests.slurm.ssh_fixtures import ODD

CONFIG = SlurmCluster(orchestrator="slurm", transport="ssh", login_nodes=["login"], user="me")


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("stdin", [b"", "".join(ODD).encode() + b"\xff\n\n"], ids=["nothing", "odd"])
def test_odd_words_and_input_arrive_as_they_are(shell, stdin):
    script = command_script(["sh", "-c", "printf '%s|' \"$@\"; cat", *ODD], stdin, "mark", CONFIG)
    done = subprocess.run([shell], input=script, capture_output=True)
    words = "".join(f"{word}|" for word in ODD[1:])
    assert done.stdout == b"\nmark\n" + words.encode() + stdin


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("squeue --me", True),
        ("/opt/slurm/bin/sinfo", True),
        ("scontrol show job 1", True),
        ("scontrol -o show job 1", True),
        ("sacctmgr -nP show assoc", True),
        ("sbatch --test-only", True),
        ("scancel 7", True),
        ("scancel --signal=USR1 7", False),
        ("sbatch --parsable", False),
        ("scontrol requeue 7", False),
        ("scontrol", False),
        ("sacctmgr add user x", False),
        ("unknown", False),
    ],
)
def test_what_may_be_run_twice(words, answer):
    assert repeatable(words.split()) is answer


@pytest.mark.parametrize(
    ("text", "host", "user", "port"),
    [
        ("login", "login", "me", None),
        ("a.b@login-1.x:2222", "login-1.x", "a.b", "2222"),
        ("alice@corp@host", "host", "alice@corp", None),
        ("[::1]:22", "::1", "me", "22"),
        ("u@[fe80::1%eth0]", "fe80::1%eth0", "u", None),
    ],
)
def test_addresses(text, host, user, port):
    words = [*(["-l", user] if user else []), *(["-p", port] if port else []), host]
    assert LoginNode(text, CONFIG).command_line == f"ssh {' '.join(words)}"


@pytest.mark.parametrize(
    "text",
    ["", "-oProxyCommand=x", "a@-oX", "-a@b", "a b", "a;b", "a:0", "a:70000", "a:x", "[-x]", "$(x)", "a\n", "%h"],
)  # fmt: skip
def test_what_is_no_login_node(text):
    with pytest.raises(InvalidInputError) as caught:
        LoginNode(text, CONFIG)
    assert caught.value.code == "invalid_login_node"


def test_no_login_node_at_all():
    with pytest.raises(InvalidInputError) as caught:
        Ssh(SlurmCluster(orchestrator="slurm", transport="ssh"))
    assert caught.value.code == "no_login_nodes"
