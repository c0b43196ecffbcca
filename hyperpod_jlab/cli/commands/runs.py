"""``hpj runs``: the list of runs."""

from __future__ import annotations

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import Table, elapsed, moment, print_list, print_table
from hyperpod_jlab.cli.parameters import CLUSTER, WordsParam
from hyperpod_jlab.model.errors import InvalidInputError, nearest_hint
from hyperpod_jlab.model.run import STATES, Run
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.listing import Listing, Wanted
from hyperpod_jlab.services.state_words import check_states

_HELP = """\
List runs, newest first: your own, or everybody's with --all-users.

A run whose folder cannot be read is listed as 'unknown' with the reason, and does not keep the others from being shown.
"""

_EXAMPLES = (
    "hpj runs",
    "hpj runs --state running,waiting --cluster ml-slurm",
    "hpj runs --limit 20 --json",
)

_TITLES = ("RUN", "NAME", "CLUSTER", "STATE", "NODES", "SUBMITTED", "RAN", "REASON")


@click.command(cls=HpjCommand, help=_HELP, examples=_EXAMPLES)
@click.option("--cluster", type=CLUSTER, help="Only runs of this cluster.")
@click.option(
    "--state",
    "states",
    type=WordsParam(STATES, "state"),
    multiple=True,
    help=f"Only runs in this state ({', '.join(STATES)}); several with commas, or given again.",
)
@click.option("--limit", type=click.IntRange(min=1), help="At most this many. Default: all.")
@click.option("--cursor", help="Go on after an earlier page: its 'next' in --json.")
@click.option("--all-users", is_flag=True, help="The runs of all users of the storage partition.")
def runs(
    cluster: str | None,
    states: tuple[str, ...],
    limit: int | None,
    cursor: str | None,
    all_users: bool,
) -> None:
    """List runs."""
    words = [word.strip() for text in states for word in text.split(",")]
    wanted = Wanted(
        cluster=cluster,
        states=check_states(words),
        everyone=all_users,
        limit=limit,
        cursor=cursor,
    )
    listing = with_services(lambda hyperpod: _list(hyperpod, wanted), asking=True)
    if invocation().as_json:
        print_list("runs", [run.to_dict() for run in listing.runs], listing.next)
        return
    titles: tuple[str, ...] = _TITLES
    rows: list[tuple[str, ...]] = [_row(run) for run in listing.runs]
    if all_users:
        titles = (*titles[:3], "USER", *titles[3:])
        users = [run.user or "-" for run in listing.runs]
        rows = [(*row[:3], user, *row[3:]) for row, user in zip(rows, users, strict=True)]
    print_table(Table(titles, rows, empty="no runs"))


async def _list(hyperpod: Hyperpod, wanted: Wanted) -> Listing:
    listing = await hyperpod.runs.list(wanted)
    if not listing.runs and wanted.cluster not in {None, *hyperpod.settings.clusters}:
        # Runs of a cluster that is no longer configured are listed; a misspelt name is told.
        raise InvalidInputError(
            f"there is no cluster '{str(wanted.cluster)[:60]}'",
            code="unknown_cluster",
            hint=nearest_hint(str(wanted.cluster), hyperpod.settings.clusters),
            detail={"field": "cluster"},
        )
    return listing


def _row(run: Run) -> tuple[str, ...]:
    return (
        run.run_id,
        run.name,
        run.cluster or "-",
        run.state,
        str(run.nodes),
        moment(run.submitted_at or run.created_at),
        elapsed(run),
        run.status.reason or "",
    )
