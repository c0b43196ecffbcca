"""``--help`` of every command."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from hyperpod_jlab.cli.root import cli
from tests.golden.frozen import Golden


def commands(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """A command and all below it, as the words that name them."""
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, (*words, name))


@pytest.mark.parametrize("words", list(commands(cli, ())), ids=lambda words: "-".join(words) or "hpj")
def test_help(golden: Golden, words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, [*words, "--help"], prog_name="hpj", terminal_width=100)
    assert done.exit_code == 0
    golden.check(f"help/{'-'.join(('hpj', *words))}", done.output)
