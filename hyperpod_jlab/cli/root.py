"""The root of all commands: parse, run, and convert errors into a message and an exit code.

Imported at every start, so it only imports modules as light as click.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from hyperpod_jlab.cli.failure import close_output, report
from hyperpod_jlab.cli.group import Entry, LazyGroup, Section
from hyperpod_jlab.cli.interrupts import raise_interrupts
from hyperpod_jlab.cli.invocation import Invocation, json_option, wants_json
from hyperpod_jlab.contributions import commands

PROGRAM = "hpj"

COMPLETE = "_HPJ_COMPLETE"
"""The variable with which a shell's completion script calls us."""

_HELP = """\
Run notebooks, scripts and commands on HyperPod clusters, and read their logs and results here.

The cluster 'local' is always available. It runs code on this machine, so you can try every command without a cluster.
"""

_EXAMPLES = (
    "hpj submit train.ipynb --cells 2-5 --nodes 2 --follow",
    "hpj submit train.py --cluster ml-slurm --nodes 4 --gpus-per-node 8 -- --lr 0.1",
    "hpj logs -f last",
    "hpj runs --state running",
)

_SECTIONS = ("Run code", "Runs", "Clusters", "Maintenance")


def _sections() -> list[Section]:
    """The commands of all packages by sections."""
    entries: dict[str, list[Entry]] = {title: [] for title in _SECTIONS}
    for command in commands():
        module = command.module.removeprefix("hyperpod_jlab.")
        entries[command.section].append(Entry(command.name, module, command.help))
    return [Section(title, tuple(section_entries)) for title, section_entries in entries.items()]


def _show_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    from hyperpod_jlab import __version__

    if context.ensure_object(Invocation).as_json:
        click.echo(f'{{"version": "{__version__}"}}')
    else:
        click.echo(f"{PROGRAM} {__version__}")
    context.exit()


@click.group(PROGRAM, cls=LazyGroup, sections=_sections(), help=_HELP, examples=_EXAMPLES)
@click.option("--version", is_flag=True, expose_value=False, callback=_show_version, help="Print the version.")
@json_option
def cli() -> None:
    """The root of all commands."""


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
    _open_standard_streams()
    command_line = list(arguments) or ["--help"]
    invocation = Invocation(as_json=wants_json(command_line))
    raise_interrupts()
    try:
        return close_output(_run(command_line, invocation), as_json=invocation.as_json)
    except BrokenPipeError:
        return close_output(invocation.closed_pipe)
    except BaseException as error:  # noqa: BLE001 - the one place where every error becomes an exit code
        return report(error, as_json=invocation.as_json or wants_json(command_line))


def _run(command_line: list[str], invocation: Invocation) -> int:
    if COMPLETE in os.environ:
        cli.main(args=command_line, prog_name=PROGRAM, complete_var=COMPLETE)  # it ends the process itself
    try:
        # Not click's own main: it treats a closed pipe as an error.
        with cli.make_context(PROGRAM, command_line, obj=invocation) as context:
            cli.invoke(context)
    except click.exceptions.NoArgsIsHelpError as error:
        if invocation.as_json or error.ctx is None:
            raise
        click.echo(error.ctx.get_help())
    except click.exceptions.Exit as ended:
        return ended.exit_code
    return 0


def _open_standard_streams() -> None:
    """Ensure that descriptors 0 to 2 are open, and that any character can be printed.

    With a closed standard output the next opened file would get its descriptor, and our output.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - stays open to the end
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
