"""A command as one line for any login shell, and login nodes by name."""

from __future__ import annotations

import subprocess

import pytest

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.engines.slurm.connection import LoginAddress, Remote, repeatable
from hyperpod_jlab.engines.slurm.ssh import Ssh
from tests.slurm.ssh_fixtures import ODD


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("waits", [False, True])
def test_odd_words_pass_any_login_shell(shell, waits):
    remote = Remote(["printf", "%s|", *ODD], waits_for_input=waits)
    done = subprocess.run([shell, "-c", remote.line], input=remote.input(b""), capture_output=True)
    assert remote.output(done.stdout, done.stderr).out == "".join(f"{word}|" for word in ODD)


def test_a_login_shell_sees_nothing_that_any_shell_would_read_otherwise():
    """tcsh reads ! and newlines between single quotes, fish a backslash before a quote or another one."""
    line = Remote(["squeue", "--name", *ODD]).line
    assert not set(line) & set("!\n\t")
    assert "\\'" not in line
    assert "\\\\" not in line


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
        ("a.b@login-1.x:2222", "login-1.x", "a.b", 2222),
        ("alice@corp@host", "host", "alice@corp", None),
        ("[::1]:22", "::1", "me", 22),
        ("u@[fe80::1%eth0]", "fe80::1%eth0", "u", None),
    ],
)
def test_addresses(text, host, user, port):
    address = LoginAddress.parse(text, "me")
    assert (address.host, address.user, address.port) == (host, user, port)


@pytest.mark.parametrize(
    "text",
    ["", "-oProxyCommand=x", "a@-oX", "-a@b", "a b", "a;b", "a:0", "a:70000", "a:x", "[-x]", "$(x)", "a\n", "%h"],
)  # fmt: skip
def test_what_is_no_login_node(text):
    with pytest.raises(InvalidInputError) as caught:
        LoginAddress.parse(text)
    assert caught.value.code == "invalid_login_node"


def test_no_login_node_at_all():
    with pytest.raises(InvalidInputError) as caught:
        Ssh([])
    assert caught.value.code == "no_login_nodes"
