"""torchrun's agent, whose way out is mended.

The agent of node 0 holds the store at which all agents meet before they leave. It may leave, and the store with it, while the others still wait
for its answer: a run that went well then ends with their false alarm ("Error waiting on exit barrier", seen in 1 of about 25 runs with torch 2.15).
Here the others say at the store that they have left, and node 0 waits for that.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Sequence

REPORT_TIMEOUT_S = 5
"""How long node 0 waits for the others to say that they have left."""


def exit_together(agent_class: Any) -> None:
    """Have node 0 leave last; changes nothing where torch's agent is not as it was known to be."""
    barrier = getattr(agent_class, "_exit_barrier", None)
    if barrier is None:
        return

    def patched(agent: Any) -> None:
        barrier(agent)
        group = agent._worker_group  # noqa: SLF001 - torch offers no other way
        names = ["hyperpod/left/%d" % rank for rank in range(1, group.group_world_size)]
        try:
            if group.group_rank == 0:
                if names:
                    agent._store.wait(names, timedelta(seconds=REPORT_TIMEOUT_S))  # noqa: SLF001
            else:
                agent._store.set(names[group.group_rank - 1], "1")  # noqa: SLF001
        except RuntimeError:
            return  # somebody has gone already: then there is nobody to wait for

    agent_class._exit_barrier = patched  # noqa: SLF001


def run_agent(argv: Sequence[str]) -> int:
    """Be torchrun's agent, as ``python -m torch.distributed.run WORDS`` is."""
    from torch.distributed.run import main as torchrun

    try:
        from torch.distributed.elastic.agent.server.api import SimpleElasticAgent
    except ImportError:
        pass
    else:
        exit_together(SimpleElasticAgent)
    torchrun(list(argv))
    return 0
