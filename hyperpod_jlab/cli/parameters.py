"""Argument types that several commands share, with their shell completion.

Completion runs on every press of the Tab key, so it must neither fail nor print: on errors there are no suggestions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.core.quantities import MAX_SECONDS, parse_duration, parse_ranges

if TYPE_CHECKING:
    from hyperpod_jlab.storage.index import Row, Session

    TextParam = click.ParamType[Any]  # newer versions of click are generic in a type's result
else:
    TextParam = click.ParamType

_MAX_COMPLETIONS = 50

_TIMEOUT = 3.0
"""Timeout of a cluster for a completion, in seconds."""


class RunParam(TextParam):
    """A run: its id, the beginning of it, or ``last``."""

    name = "run"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The newest runs."""
        del ctx, param
        try:
            return list(_newest_runs(incomplete))
        except (HyperpodError, OSError):  # see the module's docstring
            return []


class ClusterParam(TextParam):
    """A cluster of the configuration."""

    name = "name"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
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


class SuggestedTextParam(TextParam):
    """Text with suggestions; the command validates it."""

    def __init__(self, suggestions: Iterable[str], name: str) -> None:
        self.words = tuple(suggestions)
        self.name = name

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The words that begin so."""
        del ctx, param
        return [CompletionItem(suggestion) for suggestion in self.words if suggestion.startswith(incomplete)]


class ChoiceParam(TextParam):
    """Text with a cluster's choices for this user.

    Args:
        field: The spec's field.
    """

    name = "text"

    def __init__(self, field: str) -> None:
        self.field = field

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The matching names; none from a slow cluster."""
        del param
        try:
            import asyncio

            names = asyncio.run(_choices(ctx.params.get("cluster"))).get(self.field, [])
        except (HyperpodError, OSError, TimeoutError):  # see the module's docstring
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class AgeParam(TextParam):
    """A duration such as ``5m`` or ``30d``, as seconds."""

    name = "time"
    longest = MAX_SECONDS
    hint: str | None = None

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the duration."""
        del ctx
        try:
            return float(parse_duration(str(value), self.longest))
        except ValueError as error:
            raise invalid_option(param, str(error), self.hint) from None


class SinceParam(AgeParam):
    """A duration before now, or a time in ISO 8601, as Unix seconds."""

    hint = "use a duration such as 2h, or a time such as 2026-11-01T10:00"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the duration or the time."""
        from datetime import datetime

        try:
            # A time without a zone is in the user's own.
            return datetime.fromisoformat(str(value)).astimezone().timestamp()
        except (ValueError, OverflowError):
            return time.time() - super().convert(value, param, ctx)


class DayParam(AgeParam):
    """A day or a time in ISO 8601, in UTC if it has no zone, or a duration before now, as Unix seconds."""

    hint = "use a day such as 2026-11-01 (YYYY-MM-DD), or a duration such as 7d"

    def __init__(self, longest: int) -> None:
        self.longest = longest

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the day, the time or the duration."""
        from datetime import UTC, datetime

        text = str(value)
        try:
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            if text.strip().isdecimal():
                raise invalid_option(param, f"'{text[:40]}' has no unit", self.hint) from None
            return time.time() - super().convert(value, param, ctx)


class NumbersParam(TextParam):
    """Numbers such as ``0,2-3``."""

    name = "0,2-3"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Parse the numbers."""
        del ctx
        try:
            return parse_ranges(str(value))
        except ValueError as error:
            raise invalid_option(param, str(error)) from None


def invalid_option(param: click.Parameter | None, message: str, hint: str | None = None) -> InvalidInputError:
    """The error for an invalid value of an option."""
    if param is None:
        return InvalidInputError(message, code="usage", hint=hint)
    name = max(param.opts, key=len)
    return InvalidInputError(
        f"{name}: {message}", code="usage", hint=hint, detail={"option": name, "field": param.name}
    )


async def _choices(cluster: str | None) -> dict[str, list[str]]:

    from hyperpod_jlab.clusters.configuration import find_partition, load_settings
    from hyperpod_jlab.engines.registry import Engines

    settings = load_settings()
    engine = Engines(settings, find_partition(settings)).get(cluster)
    if engine.choices is None:
        return {}
    try:
        import asyncio

        return await asyncio.wait_for(engine.choices.choices(), _TIMEOUT)
    finally:
        await engine.close()


def _newest_runs(incomplete: str) -> Iterable[CompletionItem]:
    """Runs from the index alone, without requests to clusters."""
    from hyperpod_jlab.clusters.configuration import find_partition, load_settings
    from hyperpod_jlab.storage.index import RunIndex

    def read(session: Session) -> tuple[list[Row], list[str]]:
        session.refresh()
        return session.newest(limit=_MAX_COMPLETIONS), session.list_unread()

    indexed, unknown = RunIndex(find_partition(load_settings())).use(read)
    yield from (CompletionItem(run_id) for run_id in unknown if run_id.startswith(incomplete))
    for row in indexed:
        if row.run_id.startswith(incomplete):
            yield CompletionItem(row.run_id, help=f"{row.view['name']}, {row.view['state']}")
    if "last".startswith(incomplete):
        yield CompletionItem("last", help="the newest run")


RUN = RunParam()
CLUSTER = ClusterParam()

_CLUSTER_HELP = "Cluster: its name in the configuration, or the name or ARN of a HyperPod cluster. Default: the configured default cluster."


def cluster_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add ``--cluster`` to a command, for any cluster, configured or not."""
    return click.option("--cluster", type=CLUSTER, help=_CLUSTER_HELP)(function)


def cluster_argument(function: Callable[..., None]) -> Callable[..., None]:
    """Add the argument CLUSTER to a command; ``--cluster`` also works."""

    @wraps(function)
    def with_cluster_name(*arguments: Any, cluster: str | None, cluster_name: str | None, **options: Any) -> None:
        if cluster is not None and cluster_name is not None:
            raise InvalidInputError("the cluster is given twice", code="usage", detail={"field": "cluster"})
        function(*arguments, cluster=cluster if cluster_name is None else cluster_name, **options)

    argument = click.argument("cluster_name", metavar="[CLUSTER]", required=False, type=CLUSTER)
    return argument(cluster_option(with_cluster_name))


def region_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add ``--region`` to a command, for HyperPod clusters that are not configured."""
    return click.option(
        "--region",
        metavar="REGION",
        help="AWS region. Default: $AWS_REGION, the region of the AWS configuration, or the region of Studio.",
    )(function)
