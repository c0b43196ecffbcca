"""Starting: help and version are quick, and every command explains itself."""

from __future__ import annotations

import resource
import subprocess
import sys

import click
import pytest

from hyperpod_jlab.cli.root import cli
from hyperpod_jlab.contributions import commands

NAMES = [command.name for command in commands()]
HEAVY = ("pydantic", "asyncio", "rich", "sqlite3", "hyperpod_jlab.engines", "boto3")


def test_root_help_lists_every_command_and_loads_nothing_heavy(home):
    code = (
        "import sys; from hyperpod_jlab.cli.main import main; main(['--help']); "
        f"print('loaded:', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=home.process_environment())
    assert "loaded: []" in done.stdout
    assert all(f"  {name} " in done.stdout for name in NAMES)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_compute_little_more_than_the_import_of_click(home, option):
    def cost(*words):
        """Seconds of computing."""
        costs = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([sys.executable, *words], capture_output=True, check=False)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert done.returncode == 0
            costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(costs)

    assert cost("-m", "hyperpod_jlab.cli.main", option) < 3 * cost("-c", "import click")


def test_no_arguments_at_all_show_the_help(hpj):
    assert hpj().ok().out.startswith("Usage: hpj")


@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_option_has_a_help_text(name):
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.help
    options = [found for found in command.params if isinstance(found, click.Option)]
    assert [option.opts for option in options if not option.help] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_command_shows_its_help(hpj, name):
    shown = hpj(name, "--help").ok().out
    assert shown.startswith(f"Usage: hpj {name}")
    if not isinstance(cli.get_command(click.Context(cli), name), click.Group):
        # One draws in a terminal.
        assert ("--json" in shown) == (name != "watch")


def test_version_comes_as_text_and_as_json(hpj):
    assert hpj("--version").ok().out.startswith("hpj ")
    assert hpj("--version", "--json").ok().json["version"]
    assert hpj("--json", "--version").ok().json["version"]
