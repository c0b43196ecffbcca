"""``hpj completion`` and ``hpj demo``. `root` builds the list of all commands."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click
from click.shell_completion import get_completion_class

import hyperpod_jlab
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.parameters import SuggestedTextParam
from hyperpod_jlab.cli.sending import SubmitMode, send
from hyperpod_jlab.cli.spec_options import parse_spec
from hyperpod_jlab.clusters.configuration import current_folder
from hyperpod_jlab.core.config import LOCAL
from hyperpod_jlab.core.errors import InternalError, InvalidInputError, nearest_hint
from hyperpod_jlab.core.run_id import new_run_id
from hyperpod_jlab.run.submit import Request

SHELLS = ("bash", "zsh", "fish")

_HELP = """\
Print a script that completes commands, options, runs, clusters and states in your shell.

\b
bash: echo 'eval "$(hpj completion bash)"' >> ~/.bashrc      (bash 4.4 or newer)
zsh:  echo 'eval "$(hpj completion zsh)"' >> ~/.zshrc
fish: hpj completion fish > ~/.config/fish/completions/hpj.fish
"""


@click.command(cls=HpjCommand, help=_HELP)
@click.argument("shell", type=SuggestedTextParam(SHELLS, "shell"), metavar="|".join(SHELLS))
def completion(shell: str) -> None:
    """Print the script."""
    if shell not in SHELLS:
        raise InvalidInputError(
            f"completion is not available for the shell '{shell[:60]}'", code="usage", hint=nearest_hint(shell, SHELLS)
        )
    kind = get_completion_class(shell)
    if kind is None:
        raise InternalError(f"this version of click has no completion for {shell}")
    root = click.get_current_context().find_root().command
    from hyperpod_jlab.cli.root import COMPLETE, PROGRAM

    print(kind(root, {}, PROGRAM, COMPLETE).source())


# --------------------------------------------------------------------------------------------------
# ``hpj demo``: run a small example on this machine.

_EXAMPLE = Path(hyperpod_jlab.__file__).parents[1] / "examples" / "hello.ipynb"

_COMMAND = 'for step in 1 2 3; do echo "step $step on node $NODE_RANK of $WORLD_SIZE"; sleep 0.3; done'


@click.command(
    cls=HpjCommand,
    help="Run a small example on two nodes of the cluster 'local', which is this machine, and print its logs. "
    "'hpj runs' lists it afterwards, like any other run.",
    examples=("hpj demo", "hpj demo --dry-run"),
)
@click.option("--dry-run", is_flag=True, help="Print what would run. Run nothing.")
def demo(dry_run: bool) -> None:
    """Run the example."""
    source = {"kind": "command", "command": _COMMAND}
    command = f"hpj submit -c {shlex.quote(_COMMAND)} --nodes 2 --follow"
    data: dict[str, object] = {"name": "demo", "resources": {"nodes": 2}}
    if _EXAMPLE.is_file():  # in a checkout; an installed package has no notebooks
        source = {"kind": "notebook", "path": str(_EXAMPLE)}
        data["launcher"] = "python"
        command = f"hpj submit {_EXAMPLE} --nodes 2 --launcher python --follow"
    spec = parse_spec({**data, "source": source, "files": {"project": False}}, ())
    print(f"the same as: {command}", file=sys.stderr)
    request = Request(spec, cluster=LOCAL, run_id=new_run_id(), base=current_folder())
    send(request, SubmitMode(dry_run=dry_run, follow=True))
