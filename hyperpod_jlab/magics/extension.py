"""The magics themselves, as IPython knows them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from hyperpod_jlab import api
from hyperpod_jlab.cli.failure import CommandLineError
from hyperpod_jlab.cli.invocation import Invocation, wants_json
from hyperpod_jlab.cli.root import cli
from hyperpod_jlab.magics.aside import run_command
from hyperpod_jlab.magics.cell import CellInvocation, run_cell
from hyperpod_jlab.magics.failure import magic_error
from hyperpod_jlab.magics.kernel import MAGIC, kernel_cell
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.services.hyperpod import Hyperpod

LINE_MAGIC = "%hyperpod"


@magics_class
class HyperpodMagics(Magics):
    """``%hyperpod`` and ``%%hyperpod``."""

    @line_cell_magic
    def hyperpod(self, line: str, cell: str | None = None) -> None:
        """Run the cell on a cluster, or do what ``hpj`` does.

        ``%%hyperpod --nodes 2`` on a cell's first line sends the cell; ``%%hyperpod --help`` shows the options. ``%hyperpod`` alone lists
        the runs; ``%hyperpod logs RUN``, ``%hyperpod cancel RUN`` and the others are the commands of ``hpj``.
        """
        if cell is None:
            _run(cli, LINE_MAGIC, _words(line) or ["runs"], Invocation())
            return
        shell = self.shell
        if shell is None:
            raise RuntimeError("there is no IPython")

        def announce(run_id: str, name: str | None) -> None:
            # By the configuration as it is now: the commands read it anew each time.
            run = api.Run(Hyperpod(), run_id)
            if name is not None:
                shell.user_ns[name] = run
            if not call.as_json:
                display(run)  # type: ignore[no-untyped-call]

        call = CellInvocation(cell=kernel_cell(shell, line, cell), announce=announce)
        _run(run_cell, MAGIC, _words(line), call)


def _run(command: click.Command, name: str, words: Sequence[str], call: Invocation) -> None:
    call.as_json = wants_json(words)
    try:
        if command is cli and words[0].startswith("-"):
            _refuse_cell_options(words[0])
        run_command(command, name, words, call)
    except BaseException as error:  # noqa: BLE001 - the one place where every error gets its words
        raise magic_error(error, as_json=call.as_json) from None


def _refuse_cell_options(word: str) -> None:
    """Say what is wrong with ``%hyperpod --nodes 2``."""
    names = {name for parameter in run_cell.params for name in parameter.opts}
    own = {name for parameter in cli.params for name in parameter.opts}
    if word.partition("=")[0] in names - own:
        raise CommandLineError(
            f"{word[:60]} is an option for running a cell",
            hint="write %%hyperpod, with two %, on the first line of the cell",
        )


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise magic_error(_unclosed(error), as_json=False) from None


def _unclosed(error: ValueError) -> HyperpodError:
    return CommandLineError(
        f"the line cannot be read: {str(error).lower()}",
        hint="put a \\ before a quotation mark that stands for itself",
    )
