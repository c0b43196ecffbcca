"""The group of all commands; imports a command's module when it is called."""

from __future__ import annotations

import importlib
import keyword
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import click

from hyperpod_jlab.cli.failure import CommandLineError
from hyperpod_jlab.cli.invocation import json_option
from hyperpod_jlab.core.errors import nearest_hint

CONTEXT: dict[str, Any] = {"max_content_width": 110}


class Entry(NamedTuple):
    """A command: its name, its module in this package, and one line of help."""

    name: str
    module: str
    help: str


class Section(NamedTuple):
    """Commands under one heading of the help."""

    title: str
    entries: tuple[Entry, ...]


class HpjCommand(click.Command):
    """A command that takes ``--json`` and shows examples.

    Args:
        examples: Lines for the end of the help.
        has_json: Whether the help lists ``--json``; without it, the command refuses it.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), has_json: bool = True, **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", CONTEXT)
        super().__init__(*args, **kwargs)
        self.examples = examples
        json_option(self, hidden=not has_json)

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Not from the context: click keeps the first option that it makes, also for contexts without settings."""
        del ctx
        return ["-h", "--help"]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; a value after an option that takes none is an error that says so."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            flags = {
                name
                for parameter in self.params
                if isinstance(parameter, click.Option) and parameter.is_flag
                for name in parameter.opts
            }
            for before, after in pairwise(given):
                if type(error) is click.UsageError and before in flags and f"({after})" in str(error):
                    raise CommandLineError(
                        f"{before} takes no value, so '{after[:60]}' is one word too many",
                        hint=f"see: {ctx.command_path} --help",
                    ) from None
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples verbatim."""
        write_examples(self.examples, formatter)
        super().format_epilog(ctx, formatter)


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write examples so that they can be copied."""
    if examples:
        with formatter.section("Examples"):
            for line in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class LazyGroup(click.Group):
    """A group whose commands are imported when called.

    Args:
        sections: The commands, as the help shows them.
        examples: Lines for the end of the help.
    """

    def __init__(
        self, *args: Any, sections: Sequence[Section] = (), examples: Sequence[str] = (), **kwargs: Any
    ) -> None:
        kwargs.setdefault("context_settings", CONTEXT)
        super().__init__(*args, **kwargs)
        self.sections = sections
        self.examples = examples
        self._entries = {entry.name: entry for section in sections for entry in section.entries}

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Not from the context: click keeps the first option that it makes, also for contexts without settings."""
        del ctx
        return ["-h", "--help"]

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        entry = self._entries.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"hyperpod_jlab.{entry.module}")
        command: click.Command = getattr(module, _attribute(cmd_name))
        command.short_help = entry.help
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete command names, without importing the commands."""
        from click.shell_completion import CompletionItem

        items = [
            CompletionItem(entry.name, help=entry.help)
            for entry in self._entries.values()
            if entry.name.startswith(incomplete)
        ]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the closest one."""
        name = args[0]
        if name not in self._entries and not ctx.resilient_parsing:
            raise CommandLineError(
                f"unknown command '{name[:60]}'", hint=nearest_hint(name, self._entries), detail={"command": name[:60]}
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by sections, with their stored help lines."""
        del ctx
        width = max(map(len, self._entries))
        for section in self.sections:
            with formatter.section(section.title):
                formatter.write_dl([(f"{entry.name:<{width}}", entry.help) for entry in section.entries])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(self.examples, formatter)
        super().format_epilog(ctx, formatter)


def _attribute(name: str) -> str:
    """The name of a command's function in its module."""
    name = name.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name
