"""Completion in the shell."""

from __future__ import annotations

import subprocess

import pytest

from .conftest import HPJ


@pytest.fixture
def complete(home):
    """The words that the shell is offered."""

    def call(*words: str) -> list[str]:
        env = {"_HPJ_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(["hpj", *words]), "COMP_CWORD": str(len(words))}
        done = home.process(env=env).ok()
        assert done.err == ""
        return [line.partition(",")[2] for line in done.out.splitlines() if line]

    return call


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["su"], ["submit"]),
        (["submit", "--lau"], ["--launcher"]),
        (["submit", "--launcher", "t"], ["torchrun"]),
        (["submit", "--cluster", ""], ["local"]),
        (["runs", "--state", "su"], ["submitting", "succeeded"]),
        (["completion", "z"], ["zsh"]),
    ],
)
def test_commands_options_and_words_are_offered(complete, words, offered):
    assert complete(*words) == offered


def test_runs_are_offered_newest_first(complete, hpj):
    for name in ("one", "two"):
        hpj("submit", "-c", "true", "--run-id", name, "--wait").ok()
    hpj("runs").ok()
    assert complete("show", "") == ["two", "one", "last"]
    assert complete("logs", "o") == ["one"]


def test_a_broken_configuration_means_no_offers_and_no_noise(complete, home):
    home.config.write_text("[")
    assert complete("show", "") == []
    assert complete("submit", "--cluster", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell_names_our_variable(hpj, shell):
    assert "_HPJ_COMPLETE" in hpj("completion", shell).ok().out


def test_bash_takes_its_script(home):
    line = f"source <({' '.join(HPJ)} completion bash) && complete -p hpj"
    done = subprocess.run(["bash", "-c", line], env=home.process_environment(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_hpj_completion hpj" in done.stdout
