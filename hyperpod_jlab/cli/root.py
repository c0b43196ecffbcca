"""The root of all commands: parse, run, and turn whatever goes wrong into a message and an exit code.

Imported at every start, so nothing heavier than click stands here.
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

PROGRAM = "hpj"

COMPLETE = "_HPJ_COMPLETE"
"""The variable with which a shell's completion script calls us."""

_HELP = """\
Run notebooks, scripts and commands on HyperPod clusters, and read them back where you are.

A cluster named 'local' is always there: it runs things on this machine, so all of this can be tried at once.
"""

_EXAMPLES = (
    "hpj submit train.ipynb --cells 2-5 --nodes 2 --follow",
    "hpj submit train.py --cluster ml-slurm --nodes 4 --gpus-per-node 8 -- --lr 0.1",
    "hpj logs -f last",
    "hpj runs --state running",
)

COMMANDS = (
    Section(
        "Run code",
        (
            Entry("submit", "submit", "Send a notebook, script or command to a cluster."),
            Entry("clone", "clone", "Send a run again: same code, options can be changed."),
            Entry("cancel", "actions", "End runs, or take them out of the queue."),
            Entry("hold", "actions", "Keep waiting runs from starting."),
            Entry("release", "actions", "Let held runs start."),
            Entry("requeue", "actions", "End the running attempt and start the next one."),
            Entry("change", "actions", "Change the time limit or queue of runs."),
            Entry("adopt", "adopt", "Take a job that was sent elsewhere into the list of runs."),
        ),
    ),
    Section(
        "Look at runs",
        (
            Entry("runs", "runs", "List runs, newest first."),
            Entry("show", "show", "Show all about one run."),
            Entry("logs", "logs", "Print or follow the logs of a run's ranks."),
            Entry("why", "why", "Tell why a run waits."),
            Entry("forward", "forward", "Open a port of a running run on this machine."),
        ),
    ),
    Section(
        "Look at clusters",
        (
            Entry("clusters", "clusters", "List the configured clusters."),
            Entry("nodes", "clusters", "List the nodes of a cluster."),
            Entry("node", "node", "Reboot, replace, drain or resume nodes."),
            Entry("events", "events", "List the events of a HyperPod cluster."),
            Entry("queues", "clusters", "List the queues of a cluster."),
            Entry("quotas", "quotas", "Show what each team has of a HyperPod cluster on EKS."),
            Entry("jobs", "clusters", "List the jobs of all users of a cluster."),
            Entry(
                "metrics", "metrics", "Show the use of GPUs, EFA and health of a HyperPod cluster."
            ),
            Entry(
                "node-logs", "node_logs", "Print or follow the logs of a HyperPod cluster's node."
            ),
            Entry("terminal", "terminal", "Open a terminal on a HyperPod cluster's node."),
            Entry(
                "ssh-config", "ssh_config", "Print ssh's way to a HyperPod cluster's login nodes."
            ),
        ),
    ),
    Section(
        "Keep house",
        (
            Entry("doctor", "doctor", "Check the installation and say how to mend it."),
            Entry("config", "config", "Add a cluster to the configuration file."),
            Entry("init", "init", "Put tasks for Code Editor into a project."),
            Entry("storage", "storage", "Show the storage partition, here and on each cluster."),
            Entry("clean", "clean", "Remove old runs, and code that no run needs."),
            Entry("demo", "demo", "Run a small example on this machine."),
            Entry("admin", "admin", "Wire up FSx for Lustre and Studio (for administrators)."),
            Entry("completion", "completion", "Print the completion script for your shell."),
        ),
    ),
)


def _show_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    from hyperpod_jlab import __version__

    if context.ensure_object(Invocation).as_json:
        click.echo(f'{{"version": "{__version__}"}}')
    else:
        click.echo(f"{PROGRAM} {__version__}")
    context.exit()


@click.group(PROGRAM, cls=LazyGroup, sections=COMMANDS, help=_HELP, examples=_EXAMPLES)
@click.option(
    "--version", is_flag=True, expose_value=False, callback=_show_version, help="Print the version."
)
@json_option
def cli() -> None:
    """The root of all commands."""


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
    _open_standard_streams()
    words = list(arguments) or ["--help"]
    invocation = Invocation(as_json=wants_json(words))
    raise_interrupts()
    try:
        return close_output(_run(words, invocation), as_json=invocation.as_json)
    except BrokenPipeError:
        return close_output(invocation.closed_pipe)
    except BaseException as error:  # noqa: BLE001 - the one place where every error becomes an exit code
        return report(error, as_json=invocation.as_json or wants_json(words))


def _run(words: list[str], invocation: Invocation) -> int:
    if COMPLETE in os.environ:
        cli.main(args=words, prog_name=PROGRAM, complete_var=COMPLETE)  # it ends the process itself
    try:
        # Not click's own main: that one makes a reader who goes away an error.
        with cli.make_context(PROGRAM, words, obj=invocation) as context:
            cli.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    return 0


def _open_standard_streams() -> None:
    """Make sure that descriptors 0 to 2 are ours, and that no character can stop a message.

    With a closed standard output the next file that is opened would get its number, and be written into.
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
