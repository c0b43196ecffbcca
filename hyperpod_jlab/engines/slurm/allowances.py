"""Limits of what accounts and QoS may use (GrpTRESMins): what is left of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from hyperpod_jlab.core.allowance import Allowance, AllowanceOwner
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.facts import ClusterFacts

MINUTES = 60.0
_RESOURCES = frozenset({"cpu", "node", "billing"})

_BEGIN = re.compile(r"^(?=ClusterName=|QOS=)", re.MULTILINE)
_RECORD = re.compile(
    r"(?:ClusterName=\S* Account=(?P<account>\S*) UserName=(?P<user>[^\s(]*)|QOS=(?P<qos>[^\s(]+)\(\d+\))"
)
_LIMITS = re.compile(r"\bGrpTRESMins=(\S*)")
_LIMIT = re.compile(r"(?P<resource>[^,=]+)=(?P<limit>\d+)\((?P<used>\d+)\)")


async def read_allowances(
    client: SlurmClient, facts: ClusterFacts, account: str | None, qos: str | None
) -> list[Allowance]:
    """The limits that this user's jobs count against, from the controller, which enforces them; empty without any, or without accounting.

    Args:
        client: The cluster's commands.
        facts: Cached facts about the cluster.
        account: The jobs' account; None: all of the user's.
        qos: The jobs' QoS; None: all that the user may use with the account.

    Raises:
        UnreachableError: The controller does not answer.
    """
    accounts = await facts.accounts()
    if accounts is None or not accounts.names:
        return []
    text = await client.scontrol("show", "assoc_mgr", "flags=assoc,qos", f"users={accounts.user}")
    others = set(accounts.names) - {account} if account is not None else set[str]()
    return parse_allowances(text, accounts.qos_of(account) if qos is None else [qos], others)


def parse_allowances(text: str, qos: Sequence[str], without: Collection[str] = ()) -> list[Allowance]:
    """Parse `scontrol show assoc_mgr`: the limits that are set, of a user's associations, of the accounts above them, and of these QoS.

    Args:
        text: The output.
        qos: The QoS.
        without: Accounts that are left out.
    """
    allowances: list[Allowance] = []
    for record in _BEGIN.split(text):
        head = _RECORD.match(record)
        limits = _LIMITS.search(record)
        if head is None or limits is None or (head["qos"] and head["qos"] not in qos):
            continue
        owner: AllowanceOwner = "qos" if head["qos"] else "user" if head["user"] else "account"
        name = head["qos"] or head["account"]
        if head["account"] in without:
            continue
        allowances += (
            Allowance(owner, name, resource, limit / MINUTES, used / MINUTES)
            for resource, limit, used in _set_limits(limits[1])
        )
    return allowances


def _set_limits(text: str) -> Iterator[tuple[str, int, int]]:
    """The limits that are set in ``cpu=N(0),gres/gpu=12000(80)``; ``N`` means no limit."""
    for match in _LIMIT.finditer(text):
        resource = match["resource"].removeprefix("gres/")
        if resource in _RESOURCES or match["resource"] != resource:
            yield resource, int(match["limit"]), int(match["used"])
