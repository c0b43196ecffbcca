"""Runs on nodes that HyperPod repairs: that they recover, and on which nodes.

HyperPod repairs a node of Slurm that is set to ``fail`` with the reason ``Action:Replace`` or ``Action:Reboot`` (AWS' documentation of manual
recovery); it keeps its name, and the reason until the repair is over.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.orchestrators.slurm.tables.nodes import SlurmNode
from hyperpod_jlab.storage.records import BundleReader

_ORDER = re.compile(r"Action:(Replace|Reboot)")
_WORDS = {"Replace": "replaces", "Reboot": "reboots"}
_MOST = 3


async def with_repairs(
    words: dict[str, Observation],
    bundles: Sequence[BundleReader],
    look: Callable[[], Awaitable[Mapping[str, SlurmNode]]],
) -> dict[str, Observation]:
    """The words on runs; those that run on nodes under repair, or wait after they did, have that as their reason.

    Args:
        words: What the queue says, by run id.
        bundles: The runs.
        look: Looks at the nodes; called only when a run runs or waits. Where they cannot be asked the words stay.
    """
    if not any(word.state in {"running", "waiting"} for word in words.values()):
        return words
    try:
        nodes = await look()
    except HyperpodError:
        return words
    repaired = {
        name: found[1]
        for name, node in nodes.items()
        if node.reason and not node.usable and (found := _ORDER.fullmatch(node.reason.strip()))
    }
    if not repaired:
        return words
    return await asyncio.to_thread(_told, words, bundles, repaired)


def _told(
    words: dict[str, Observation], bundles: Sequence[BundleReader], repaired: Mapping[str, str]
) -> dict[str, Observation]:
    found = dict(words)
    for bundle in bundles:
        word = words.get(bundle.run_id)
        if word is None or word.state not in {"running", "waiting"} or word.reason_code == "held":
            continue
        on = [name for name in _last_nodes(bundle) if name in repaired]
        if on:
            reason = _reason(on, repaired, word)
            found[bundle.run_id] = word.model_copy(
                update={"reason": reason, "reason_code": "recovering"}
            )
    return found


def _last_nodes(bundle: BundleReader) -> list[str]:
    """The nodes of the newest attempt, as Slurm calls them."""
    try:
        attempts = bundle.read().attempts
    except HyperpodError:  # a damaged bundle is told by whoever reads it
        return []
    return sorted({node.node.partition(".")[0] for node in attempts[-1].nodes}) if attempts else []


def _reason(on: Sequence[str], repaired: Mapping[str, str], word: Observation) -> str:
    more = f" and {len(on) - _MOST} more" if len(on) > _MOST else ""
    action = _WORDS[repaired[on[0]]]
    done = f"HyperPod {action} {', '.join(on[:_MOST])}{more}"
    if word.state == "running":
        return f"{done}, on which it runs; it is resumed there, or goes back into the queue"
    return f"{done}, on which it ran" + (f"; Slurm says: {word.reason}" if word.reason else "")
