"""``hpj clone``: send a run again, with the same code and other options."""

from __future__ import annotations

from typing import Any

import click

from hyperpod_jlab.cli.invocation import with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.parameters import RUN
from hyperpod_jlab.cli.program_words import ProgramCommand, program_words
from hyperpod_jlab.cli.sending import Ways, can_ask, send, sending_options
from hyperpod_jlab.cli.spec_options import add_spec_options, data_of, merge, parse_spec
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.run_id import new_run_id, split_run_id
from hyperpod_jlab.services.current_folder import current_folder
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.submission import Request
from hyperpod_jlab.storage.users import user_name

_HELP = """\
Send a run again: the same spec and the same code, as it was sent then. Options go over the old spec, words behind -- take the place
of the old arguments. Prints the new run's id.

A run of another user needs your confirmation, since its code then runs with your rights: you are asked on a terminal, else give
--trust-owner with the user's name.

RUN is a run's id, the beginning of one, or 'last'. An array's child (ID.3) is sent again as an array of that one index.
"""

_EXAMPLES = (
    "hpj clone last --follow",
    "hpj clone 20261121-120455-k3x9qd --nodes 4 --time-limit 8h",
    "hpj clone last -- --lr 0.01",
)


@click.command(cls=ProgramCommand, help=_HELP, examples=_EXAMPLES)
@click.argument("run", type=RUN)
@sending_options
@click.option(
    "--trust-owner",
    metavar="NAME",
    help="Run the code of this other user with your rights. Read it first: hpj show RUN names the folder.",
)
def clone(
    run: str,
    cluster: str | None,
    run_id: str | None,
    dry_run: bool,
    wait: bool,
    follow: bool,
    trust_owner: str | None,
    **options: Any,
) -> None:
    """Clone a run."""
    over, given = data_of(options)
    old_id, old_cluster, data, owner = with_services(lambda hyperpod: _old(hyperpod, run))
    parent, index = split_run_id(old_id)
    if index is not None:
        data["array"] = str(index)
    data = merge(data, over)
    words = program_words()
    if words is not None:
        data["args"] = words
    request = Request(
        parse_spec(data, given, f"the spec of {parent}"),
        cluster=cluster if cluster is not None else old_cluster,
        run_id=run_id if run_id is not None else new_run_id(),
        base=current_folder(),
        clone_of=parent,
        trust_owner=trust_owner or (None if dry_run else _confirmed(parent, owner)),
    )
    send(request, Ways(dry_run, wait, follow))


def _confirmed(run_id: str, owner: str | None) -> str | None:
    """The user whose run it is, once it was confirmed at the terminal that the code is to run."""
    if owner is None or not can_ask():
        return None
    words = (
        f"The code of {run_id} ({printable(owner)}) may be another user's. Run it with your rights?"
    )
    return owner if click.confirm(words, err=True) else None


async def _old(hyperpod: Hyperpod, text: str) -> tuple[str, str, dict[str, Any], str | None]:
    """The old run's id, cluster and spec, and the name of its owner when its code may be another user's."""
    run_id = await find_run(hyperpod, text)
    bundle = hyperpod.runs.bundle(run_id)
    owner = None if bundle.is_own and not bundle.is_suspect else user_name(bundle.owner)
    return run_id, bundle.head().cluster, bundle.spec().model_dump(mode="json"), owner


# The code is there already: options that choose what to take along have no say.
add_spec_options(without={"source", "files"})(clone)
