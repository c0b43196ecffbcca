"""Whether a run has the log that is asked for."""

from __future__ import annotations

from hyperpod_jlab.model.errors import NotFoundError
from hyperpod_jlab.model.run import Run
from hyperpod_jlab.services.log_request import LogRequest
from hyperpod_jlab.services.runs import Runs


def check_choice(run: Run, request: LogRequest) -> None:
    """Look whether the run has the ranks, the node and the attempt.

    Raises:
        NotFoundError: It has not.
    """
    count = run.nodes * run.processes_per_node
    if request.ranks and max(request.ranks) >= count:
        known = "only rank 0" if count == 1 else f"the ranks 0-{count - 1}"
        raise no_such_log(run.run_id, f"rank {max(request.ranks)}", known)
    if request.node is not None and request.node >= run.nodes:
        raise no_such_node(run, str(request.node))
    if request.attempt is not None and not run.children:  # those of an array have their own
        last = run.status.attempts[-1].number if run.status.attempts else 0
        # One that has not begun yet can be waited for.
        if request.attempt > last and (run.status.ended or not request.follow):
            known = f"{last} attempt" + "s" * (last != 1)
            raise no_such_log(run.run_id, f"attempt {request.attempt}", known)


async def check_asked(runs: Runs, request: LogRequest) -> None:
    """`check_choice` for faces that have not looked at the run yet. Who asks for all, or goes on from a cursor, is not looked at again.

    Raises:
        NotFoundError: There is no such run, or it has not what is asked for.
    """
    chosen = request.ranks or request.node is not None or request.attempt is not None
    if chosen and request.cursor is None:
        check_choice(await runs.get(request.run_id), request)


def node_names(run: Run) -> tuple[str, ...]:
    """What the nodes of the newest attempt are called, in the order of their ranks."""
    return run.status.attempts[-1].nodes if run.status.attempts else ()


def no_such_node(run: Run, node: str) -> NotFoundError:
    """The error for a node, by rank or name, that the run has not."""
    known = "only node 0" if run.nodes == 1 else f"the nodes 0-{run.nodes - 1}"
    names = node_names(run)
    return no_such_log(
        run.run_id, f"node {node[:60]}", known + (f" ({', '.join(names[:8])})" if names else "")
    )


def no_such_log(run_id: str, what: str, known: str | None = None) -> NotFoundError:
    """The error for something of which the run has no log.

    Args:
        run_id: The run.
        what: What it has not, as in "rank 9".
        known: What it has instead.
    """
    hint = f"see: hpj show {run_id}" if known is None else f"it has {known}"
    return NotFoundError(f"{run_id} has no {what}", code="no_such_log", hint=hint)
