"""Types of arguments that several commands take, with their completion in the shell.

Completion runs at every press of the Tab key, so it must neither fail nor print: what goes wrong means no suggestions.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, NotFoundError
from hyperpod_jlab.core.quantities import parse_duration, parse_ranges
from hyperpod_jlab.core.run_id import split_run_id
from hyperpod_jlab.core.validation import DOMAIN_ID, FILE_SYSTEM_ID, LABEL, REGION
from hyperpod_jlab.runs.facade import Hyperpod
from hyperpod_jlab.runs.service import Wanted
from hyperpod_jlab.storage.mounts import check_present
from hyperpod_jlab.storage.partition import Partition

if TYPE_CHECKING:
    TextParam = click.ParamType[Any]  # newer versions of click know what a type makes of a text
else:
    TextParam = click.ParamType

_OFFERED = 50

_PATIENCE = 3.0
"""Seconds that a cluster has for a completion."""


class RunParam(TextParam):
    """A run: its id, the beginning of it, or ``last``."""

    name = "run"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The newest runs."""
        del ctx, param
        try:
            return list(_newest_runs(incomplete))
        except (HyperpodError, OSError):  # see the module's docstring
            return []


class ClusterParam(TextParam):
    """A cluster of the configuration."""

    name = "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The configured clusters."""
        from hyperpod_jlab.clusters.configuration import load_settings

        del ctx, param
        try:
            clusters = load_settings().clusters
        except (HyperpodError, OSError):  # see the module's docstring
            return []
        return [
            CompletionItem(name, help=cluster.orchestrator)
            for name, cluster in clusters.items()
            if name.startswith(incomplete)
        ]


class WordsParam(TextParam):
    """Text for which some words are offered; whether it is valid is said by whoever takes it."""

    def __init__(self, words: Iterable[str], name: str) -> None:
        self.words = tuple(words)
        self.name = name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The words that begin so."""
        del ctx, param
        return [CompletionItem(word) for word in self.words if word.startswith(incomplete)]


class ChoiceParam(TextParam):
    """Text for which a cluster knows the names that this user may give.

    Args:
        field: The spec's field.
    """

    name = "text"

    def __init__(self, field: str) -> None:
        self.field = field

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin so; none from a cluster that is slow."""
        import asyncio

        del param
        try:
            names = asyncio.run(_choices(ctx.params.get("cluster"))).get(self.field, [])
        except (HyperpodError, OSError, TimeoutError):  # see the module's docstring
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class AgeParam(TextParam):
    """A duration such as ``5m`` or ``30d``, as seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse the duration."""
        del ctx
        try:
            return float(parse_duration(str(value)))
        except ValueError as error:
            raise invalid_option(param, str(error)) from None


class SinceParam(AgeParam):
    """A duration before now, or a time in ISO 8601, as Unix seconds."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse the duration or the time."""
        from datetime import datetime

        try:
            # A time without a zone is the user's own.
            return datetime.fromisoformat(str(value)).astimezone().timestamp()
        except (ValueError, OverflowError):
            return time.time() - super().convert(value, param, ctx)


class NumbersParam(TextParam):
    """Numbers such as ``0,2-3``."""

    name = "0,2-3"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Parse the numbers."""
        del ctx
        try:
            return parse_ranges(str(value))
        except ValueError as error:
            raise invalid_option(param, str(error)) from None


def invalid_option(
    param: click.Parameter | None, message: str, hint: str | None = None
) -> InvalidInputError:
    """The error for a value that an option does not take."""
    if param is None:
        return InvalidInputError(message, code="usage", hint=hint)
    name = max(param.opts, key=len)
    return InvalidInputError(
        f"{name}: {message}", code="usage", hint=hint, detail={"option": name, "field": param.name}
    )


async def _choices(cluster: str | None) -> dict[str, list[str]]:
    import asyncio

    from hyperpod_jlab.clusters.configuration import find_partition, load_settings
    from hyperpod_jlab.engines.registry import Engines

    settings = load_settings()
    engine = Engines(settings, find_partition(settings)).get(cluster)
    if engine.choices is None:
        return {}
    try:
        return await asyncio.wait_for(engine.choices.choices(), _PATIENCE)
    finally:
        await engine.close()


def _newest_runs(incomplete: str) -> Iterable[CompletionItem]:
    """Runs from the index alone: no cluster is asked."""
    from hyperpod_jlab.clusters.configuration import find_partition, load_settings
    from hyperpod_jlab.storage.index import Row, RunIndex, Session

    def read(session: Session) -> tuple[list[Row], list[str]]:
        session.refresh()
        return session.newest(limit=_OFFERED), session.unknown()

    known, unknown = RunIndex(find_partition(load_settings())).use(read)
    yield from (CompletionItem(run_id) for run_id in unknown if run_id.startswith(incomplete))
    for row in known:
        if row.run_id.startswith(incomplete):
            yield CompletionItem(row.run_id, help=f"{row.view['name']}, {row.view['state']}")
    if "last".startswith(incomplete):
        yield CompletionItem("last", help="the newest run")


RUN = RunParam()
CLUSTER = ClusterParam()


# --------------------------------------------------------------------------------------------------
# Options that name something at AWS: what cannot be a name is told before AWS is asked.

_NAMES = {
    "domain": (DOMAIN_ID, "the id of a domain of Studio", "such as d-abc123"),
    "file_system": (FILE_SYSTEM_ID, "the id of a file system", "such as fs-0123456789abcdef0"),
    "cluster": (LABEL, "the name of a cluster", "'hpj clusters --hyperpod' lists them"),
    "region": (REGION, "an AWS region", "such as us-west-2"),
}
"""Patterns by the options' names, what they are of, and examples."""


def aws_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse what cannot be meant: a callback of an option.

    Raises:
        InvalidInputError: It is no such name.
    """
    del context
    field = str(parameter.name)
    pattern, words, hint = _NAMES[field]
    if value is not None and re.fullmatch(pattern, value, re.ASCII) is None:
        option = f"--{field.replace('_', '-')}"
        said = f"'{value[:60]}' is not {words}" if value else f"{words} is missing"
        raise InvalidInputError(f"{option}: {said}", hint=hint, detail={"field": field})
    return value


# --------------------------------------------------------------------------------------------------
# Which run the user means: its id, the beginning or the last part of it, or ``last``.

LAST = "last"
_SHOWN = 5


async def find_run(hyperpod: Hyperpod, text: str, *, whole: bool = False) -> str:
    """The id of the run that is meant.

    Args:
        hyperpod: The services.
        text: What the user typed.
        whole: Take only a whole id (or ``last``): for commands that change a run.

    Raises:
        InvalidInputError: It is no run id, or means several runs.
        NotFoundError: There is no such run.
        StorageError: The partition is not mounted, and was before.
    """
    parent, index = split_run_id(text)
    if await asyncio.to_thread(hyperpod.partition.holds, parent):
        return text
    if text == LAST:
        return await _newest(hyperpod)
    found = [] if whole else await asyncio.to_thread(_like, hyperpod.partition, parent)
    if len(found) == 1:
        return found[0] if index is None else f"{found[0]}.{index}"
    if found:
        names = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        raise InvalidInputError(
            f"'{parent}' may be any of {len(found)} runs", code="ambiguous_run", hint=names
        )
    await asyncio.to_thread(check_present, hyperpod.partition.root)
    raise NotFoundError(f"there is no run {text}", code="no_such_run", hint="see: hpj runs")


async def _newest(hyperpod: Hyperpod) -> str:
    listing = await hyperpod.runs.list(Wanted(limit=1))
    if not listing.runs:
        raise NotFoundError(
            "there is no run yet", code="no_such_run", hint="see: hpj submit --help"
        )
    return listing.runs[0].run_id


def _like(partition: Partition, text: str) -> list[str]:
    """Run ids that begin with the text, or whose part behind the last hyphen it is."""
    for places in (partition.own_places, partition.other_places()):
        names = (name for place in places for name in place.run_ids())
        fits = {name for name in names if name.startswith(text) or name.endswith(f"-{text}")}
        if fits:  # another user's run makes no id of one's own ambiguous
            return sorted(fits, reverse=True)
    return []
