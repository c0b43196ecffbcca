"""Which node a user means: by its instance id, by the scheduler's name or by its name in the private network."""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_jlab.model.errors import ConflictError, NotFoundError, nearest_hint
from hyperpod_jlab.model.node_join import JoinedNode

_PREFIX = "hyperpod-"


def find_node(rows: Sequence[JoinedNode], name: str) -> JoinedNode:
    """The row of a node.

    Args:
        rows: The nodes of one cluster.
        name: What the user calls it; capitals do not matter.

    Raises:
        NotFoundError: There is none.
        ConflictError: Several have had this name, and it is not clear which has it now.
    """
    wanted = name.strip().lower()
    found = [row for row in rows if wanted in _names(row)]
    if not found:
        known = [one for row in rows for one in _names(row)]
        near = nearest_hint(wanted, known) if len(known) <= 1000 else None
        raise NotFoundError(
            f"the cluster has no node '{name[:100]}'",
            code="no_such_node",
            hint=near if near and near.startswith("did you mean") else "see: hpj nodes",
            detail={"node": name[:100]},
        )
    # Of a replaced node AWS may list both instances; the scheduler's node belongs to the one that is it now.
    current = [row for row in found if row.node is not None] or found
    if len(current) == 1:
        return current[0]
    instances = [row.instance for row in current if row.instance is not None]
    listed = ", ".join(f"{one.name} ({one.state})" for one in instances)
    raise ConflictError(
        f"several nodes are called '{name[:100]}': {listed}",
        code="ambiguous_node",
        hint="name one by its instance id",
        detail={"node": name[:100], "instances": [one.name for one in instances]},
    )


def _names(row: JoinedNode) -> set[str]:
    names: set[str] = set()
    if row.instance is not None:
        names.add(row.instance.name)
        if row.instance.host:
            names |= {row.instance.host, row.instance.host.partition(".")[0]}
    if row.node is not None:
        names |= {row.node.name, row.node.name.removeprefix(_PREFIX)}
    return {name.lower() for name in names}
