"""What Slurm is told to do to nodes: no new jobs, or jobs again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from hyperpod_jlab.model.errors import DeniedError, HyperpodError, UnreachableError
from hyperpod_jlab.model.node_actions import DrainKind
from hyperpod_jlab.orchestrators.slurm.client import SlurmClient
from hyperpod_jlab.orchestrators.slurm.complaints import complaint
from hyperpod_jlab.orchestrators.slurm.tables.nodes import SlurmNode

Look = Callable[[], Awaitable[Mapping[str, SlurmNode]]]
"""Looks at the nodes anew."""


async def set_nodes(
    client: SlurmClient, action: DrainKind, nodes: Sequence[str], reason: str | None, look: Look
) -> dict[str, HyperpodError | None]:
    """Drain or resume nodes, all in one command: calls are rationed.

    Of several nodes Slurm (seen on 22.05 and 24.11) changes those that it can, complains once, and names none; which those are is read back.

    Args:
        client: The commands.
        action: What to do.
        nodes: Their names, as Slurm listed them.
        reason: With ``drain``: why, in one line.
        look: Looks at the nodes anew.

    Returns:
        By name: None where it was done, else why not.

    Raises:
        UnreachableError: The controller does not answer.
    """
    problem = await _told(client, action, nodes, reason)
    if problem is None or isinstance(problem, DeniedError) or len(nodes) == 1:
        return dict.fromkeys(nodes, problem)
    found = await look()
    return {
        name: None if name in found and _is_done(action, found[name]) else problem for name in nodes
    }


def _is_done(action: DrainKind, node: SlurmNode) -> bool:
    if action == "drain":
        return "drain" in node.flags
    return not node.flags & {"drain", "fail"} and node.base != "down"


async def _told(
    client: SlurmClient, action: DrainKind, nodes: Sequence[str], reason: str | None
) -> HyperpodError | None:
    words = ["scontrol", "update", f"nodename={','.join(nodes)}", f"state={action}"]
    if action == "drain":
        words.append(f"reason={reason}")
    output = await client.run(words)
    if output.code == 0:
        return None
    error = complaint("scontrol", output)
    if isinstance(error, UnreachableError):
        raise error
    if not isinstance(error, DeniedError):
        return error
    return DeniedError(
        f"you may not {action} nodes: only administrators of the Slurm cluster may",
        code="missing_right",
        hint=f"ask one of them for: scontrol update nodename={','.join(nodes)[:200]} state={action}"
        + (" reason=..." if action == "drain" else ""),
        detail={**error.detail, "right": {"admin_level": "Administrator"}, "said": error.message},
    )
