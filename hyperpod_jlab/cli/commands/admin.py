"""``hpj admin``: what administrators do. Most of it is not there yet, and says so."""

from __future__ import annotations

import click

from hyperpod_jlab.cli.group import Entry, LazyGroup, Section
from hyperpod_jlab.model.errors import UnsupportedError

_HELP = """\
What administrators do: rights at AWS.

To wire up FSx for Lustre with SageMaker Studio is not in this version.
"""

_COMMANDS = (
    Section(
        "Rights",
        (Entry("policy", "policy", "Print the IAM policy that the features need."),),
    ),
)


class _AdminGroup(LazyGroup):
    """The group; what is planned for it is unsupported, not unknown."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say that it is not there yet."""
        if args[0] not in self.list_commands(ctx) and not ctx.resilient_parsing:
            raise UnsupportedError(
                f"this version has no 'hpj admin {args[0][:60]}'",
                hint="see: hpj admin --help. To share a file system, mount it in Studio's settings; 'hpj storage' shows what this machine sees",
            )
        return super().resolve_command(ctx, args)


@click.group(
    cls=_AdminGroup, sections=_COMMANDS, help=_HELP, examples=("hpj admin policy > policy.json",)
)
def admin() -> None:
    """What administrators do."""
