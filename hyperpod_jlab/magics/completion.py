"""Completion behind ``%hyperpod`` and ``%%hyperpod``: what a shell would offer behind ``hpj``.

It runs at every press of the Tab key, so it must neither fail nor print.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, ShellComplete

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

_LINE = "%hyperpod"
_CELL = "%%hyperpod"


def complete_in(shell: InteractiveShell) -> None:
    """Offer our words in this shell, once; IPython before 8.6 has no place for it."""
    matchers = getattr(shell.Completer, "custom_matchers", None)
    if matchers is not None and _matcher not in matchers:
        _matcher.matcher_api_version = 2  # type: ignore[attr-defined]
        _matcher.matcher_identifier = "hyperpod_jlab"  # type: ignore[attr-defined]
        _matcher.matcher_priority = 100  # type: ignore[attr-defined]
        matchers.append(_matcher)


def _matcher(context: CompletionContext) -> SimpleMatcherResult:
    from IPython.core.completer import SimpleCompletion

    line = context.text_until_cursor.lstrip()
    items = offered(line)
    fragment = _last_word(line)
    # What stands before a delimiter of IPython's, as in --launcher=to, is not part of the fragment.
    cut = len(fragment) - len(context.token) if fragment.endswith(context.token) else 0
    completions = [
        SimpleCompletion(text=item.value[cut:] if _holds(item, fragment[:cut]) else item.value)
        for item in items
    ]
    return {
        "completions": completions,
        "suppress": bool(completions),
        "ordered": True,
        "matched_fragment": context.token,
    }


def offered(line: str) -> list[CompletionItem]:
    """What may stand at the end of a line."""
    for magic in (_CELL, _LINE):
        if line.startswith(f"{magic} "):
            words = _split(line[len(magic) :])
            if words is None:
                return []
            return _completions(_command(magic), magic, words[:-1], words[-1])
    return []


def _command(magic: str) -> click.Command:
    if magic == _CELL:
        from hyperpod_jlab.magics.cell import run_cell

        return run_cell
    from hyperpod_jlab.cli.root import cli

    return cli


def _completions(
    command: click.Command, name: str, words: list[str], incomplete: str
) -> list[CompletionItem]:
    if "--" in words:
        return []
    try:
        found: Iterable[CompletionItem] = ShellComplete(
            command, {}, name, "_HYPERPOD_COMPLETE"
        ).get_completions(words, incomplete)
        # A file's place is completed by IPython itself.
        return [item for item in found if item.type == "plain"]
    except Exception:  # noqa: BLE001 - see the module's docstring
        return []


def _split(text: str) -> list[str] | None:
    """The words up to the cursor, the last one being the incomplete one; None within quotation marks."""
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    return words if words and not text[-1].isspace() else [*words, ""]


def _last_word(line: str) -> str:
    return line.rpartition(" ")[2]


def _holds(item: CompletionItem, start: str) -> bool:
    return bool(start) and str(item.value).startswith(start)
