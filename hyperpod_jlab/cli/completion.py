"""``hpj completion``: the script that completes commands, options, runs and clusters in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.parameters import WordsParam
from hyperpod_jlab.core.errors import InternalError, InvalidInputError, nearest_hint

SHELLS = ("bash", "zsh", "fish")

_HELP = """\
Print a script that completes commands, options, runs, clusters and states in your shell.

\b
bash: echo 'eval "$(hpj completion bash)"' >> ~/.bashrc      (bash 4.4 or newer)
zsh:  echo 'eval "$(hpj completion zsh)"' >> ~/.zshrc
fish: hpj completion fish > ~/.config/fish/completions/hpj.fish
"""


@click.command(cls=HpjCommand, help=_HELP)
@click.argument("shell", type=WordsParam(SHELLS, "shell"), metavar="|".join(SHELLS))
def completion(shell: str) -> None:
    """Print the script."""
    if shell not in SHELLS:
        raise InvalidInputError(
            f"there is no completion for the shell '{shell[:60]}'",
            code="usage",
            hint=nearest_hint(shell, SHELLS),
        )
    kind = get_completion_class(shell)
    if kind is None:
        raise InternalError(f"this version of click has no completion for {shell}")
    root = click.get_current_context().find_root().command
    from hyperpod_jlab.cli.root import COMPLETE, PROGRAM

    print(kind(root, {}, PROGRAM, COMPLETE).source())
