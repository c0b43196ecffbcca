"""Commands with words for the user's own program behind ``--``."""

from __future__ import annotations

import click

from hyperpod_jlab.cli.group import HpjCommand

_KEY = "hyperpod_jlab.program_words"


class ProgramCommand(HpjCommand):
    """A command that keeps what stands behind ``--`` for the user's program, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Cut the program's words off before the options are parsed."""
        if "--" in args:
            place = args.index("--")
            ctx.meta[_KEY] = args[place + 1 :]
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Show the program's words in the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGS...]"]


def program_words() -> list[str] | None:
    """The words behind ``--``; None when there is no ``--``."""
    found: list[str] | None = click.get_current_context().meta.get(_KEY)
    return found
