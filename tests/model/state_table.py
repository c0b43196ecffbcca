"""The table of cases for a run's state: what was recorded, and what must be said of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.core.records import Claim, RunRecords
from hyperpod_jlab.core.state import StateContext
from tests.model.recording import act, attempt, error, intent, node, rank, records, word

LATER = StateContext(now=100_000.0)
"""Long after everything."""


@dataclass(frozen=True)
class Case:
    """One row. `want` names fields of the status; `attempts` gives (state, reason_code, exit_code) of each."""

    name: str
    given: RunRecords
    want: dict[str, Any]
    attempts: tuple[tuple[str, str | None, int | None], ...] | None = None
    moment: StateContext = LATER
    says: str = field(default="")


def at(now: float, submitter: Any = "unknown", unreachable: str | None = None) -> StateContext:
    return StateContext(now, submitter, unreachable)


def want(state: str, code: str | None = None, **more: Any) -> dict[str, Any]:
    return {"state": state, "reason_code": code, **more}


def done(number: int = 0, *, end: float = 20.0, **more: Any) -> Any:
    """A node that ended well."""
    return node(number, end=end, exit_code=0, ranks=[rank(number, end=end, exit_code=0)], **more)


def broke(number: int = 0, *, end: float = 20.0, code: int = 3, **more: Any) -> Any:
    """A node whose rank ended with an exit code."""
    ranks = [rank(number, end=end, exit_code=code)]
    return node(number, end=end, exit_code=code, ranks=ranks, **more)


def stopped(number: int = 0, *, end: float = 20.0, by: str = "SIGTERM", signal: int = 15) -> Any:
    """A node that was told to end."""
    ranks = [rank(number, end=end, signal=signal)]
    code = 128 + signal
    return node(number, end=end, exit_code=code, signal=signal, ranks=ranks, stopped_by=by)


def ended(time: float, verdict: str, **more: Any) -> Any:
    return word(time, "ended", verdict=verdict, **more)


def twice(*nodes: Any, **more: Any) -> RunRecords:
    """A first attempt that failed with 3, and a second one."""
    return records(attempt(broke()), attempt(*nodes, number=2), **more)


FIRST = ("failed", "exit_code", 3)

BEFORE_ANY_ATTEMPT = [
    Case("just made, its submitter lives", records(taken=False, intents=(intent(),)), want("submitting"), moment=at(5, "alive")),
    Case("a live submitter may take as long as it likes", records(taken=False, intents=(intent(),)), want("submitting"), moment=at(90_000, "alive")),
    Case("its submitter is dead", records(taken=False, intents=(intent(7),)), want("failed", "submit_interrupted", ended_at=7.0, exit_code=None), moment=at(8, "dead")),
    Case("submitter elsewhere, within patience", records(taken=False, intents=(intent(7),)), want("submitting"), moment=at(126.9)),
    Case("submitter elsewhere, out of patience", records(taken=False, intents=(intent(7),)), want("failed", "submit_interrupted"), moment=at(127.1)),
    Case("the newest intent counts for patience", records(taken=False, intents=(intent(7), intent(500))), want("submitting"), moment=at(600)),
    Case("no intent at all: patience from its making", records(taken=False), want("submitting"), moment=at(119)),
    Case("no intent at all and out of patience", records(taken=False), want("failed", "submit_interrupted", ended_at=0.0)),
    Case("cancelled while its submit was interrupted", records(taken=False, intents=(intent(),), actions=(act(9),)), want("cancelled", ended_at=9.0), moment=at(10, "dead")),
    Case("cancelled while its submitter lives: not yet", records(taken=False, intents=(intent(),), actions=(act(9),)), want("submitting"), moment=at(10, "alive")),
    Case("the engine's answer was lost", records(taken=False, intents=(intent(),), observations=(ended(5, "REFUSED", observer="submit", reason="no answer", reason_code="submit_interrupted"),)), want("failed", "submit_interrupted", reason="no answer"), moment=at(6, "alive")),
    Case("the lost answer was a yes after all", records(observations=(ended(5, "REFUSED", observer="submit", reason_code="submit_interrupted"),)), want("waiting")),
    Case("sent again after a lost answer", records(taken=False, intents=(intent(0), intent(8)), observations=(ended(5, "REFUSED", observer="submit", reason_code="submit_interrupted"),)), want("submitting"), moment=at(9, "alive")),
    Case("taken, as the engine's own process shows", records(taken=False, intents=(intent(),), owner=intent(2)), want("waiting"), moment=at(3, "dead")),
    Case("taken, as the claim shows", records(taken=False, intents=(intent(),), claim=Claim(scheduler_id="17", time=3)), want("waiting"), moment=at(4, "dead")),
    Case("taken, nothing said", records(), want("waiting", reason=None)),
    Case("observed although the submission was never recorded", records(taken=False, observations=(word(3, "waiting", reason="queued"),)), want("waiting", reason="queued"), moment=at(4, "dead")),
    Case("waits for resources", records(observations=(word(3, "waiting", reason="4 nodes wanted", reason_code="resources"),)), want("waiting", "resources", reason="4 nodes wanted")),
    Case("held", records(observations=(word(3, "waiting", reason="held by its user", reason_code="held"),)), want("waiting", "held")),
    Case("suspended", records(observations=(word(3, "waiting", reason_code="suspended"),)), want("waiting", "suspended")),
    Case("cancelled while it waits", records(observations=(word(3, "waiting"),), actions=(act(4),)), want("waiting", "cancelling")),
    Case("cancelled before anything was said", records(actions=(act(4),)), want("waiting", "cancelling")),
    Case("the cancel was carried out", records(observations=(ended(5, "CANCELLED"),), actions=(act(4),)), want("cancelled", reason=None, ended_at=5.0, started_at=None)),
    Case("cancelled by the scheduler's admin", records(observations=(ended(5, "CANCELLED"),)), want("cancelled")),
    Case("nodes are being prepared", records(observations=(word(3, "running"),)), want("running", "starting")),
    Case("cancelled while nodes are being prepared", records(observations=(word(3, "running"),), actions=(act(4),)), want("running", "cancelling")),
    Case("a run before it failed", records(observations=(ended(5, "DEPENDENCY", reason="waiting for a, which ended as failed"),)), want("failed", "dependency", reason="waiting for a, which ended as failed")),
    Case("refused after it was taken", records(observations=(ended(5, "REFUSED", reason="no such account"),)), want("failed", "refused", reason="no such account")),
    Case("lost before it began", records(observations=(ended(5, "LOST"),)), want("failed", "lost")),
    Case("ended by the scheduler, which calls that exit code 0", records(observations=(ended(5, "TIMEOUT", exit_code=0),)), want("failed", "timeout", exit_code=None)),
    Case("ended with a verdict that nobody knows", records(observations=(ended(5, "EXPLODED"),)), want("failed", "lost")),
    Case("a cancel that came after the end changes nothing", records(observations=(ended(5, "DEPENDENCY"),), actions=(act(6),)), want("failed", "dependency")),
    Case("a native job without our launcher, well", records(observations=(ended(5, "COMPLETED", exit_code=0),)), want("succeeded", exit_code=0, ended_at=5.0)),
    Case("a native job without our launcher, not well", records(observations=(ended(5, "FAILED", exit_code=4),)), want("failed", "failed", exit_code=4)),
    Case("the newest word counts, whoever said it", records(observations=(word(9, "running", observer="a"), word(3, "waiting", observer="b"))), want("running", "starting")),
    Case("an old word of a forgotten observer", records(observations=(ended(2, "LOST", observer="a"), word(3, "waiting", observer="b"))), want("waiting")),
]  # fmt: skip

ONE_ATTEMPT = [
    Case("claimed, no node yet", records(attempt()), want("running", started_at=10.0, ended_at=None), (("running", None, None),)),
    Case("all nodes run", records(attempt(node(0), node(1)), nodes=2), want("running", started_at=10.0), (("running", None, None),)),
    Case("some nodes run", records(attempt(node(0, start=12.0), node(1, start=11.0)), nodes=4), want("running", started_at=11.0)),
    Case("one of two nodes is done", records(attempt(done(0), node(1)), nodes=2), want("running")),
    Case("a node builds the environment", records(attempt(node(0), node(1, step="building the environment")), nodes=2), want("running", "setup", reason="building the environment")),
    Case("a node that ended while it built the environment", records(attempt(node(end=20.0, exit_code=1, step="building the environment"))), want("failed", "exit_code")),
    Case("one of two nodes failed", records(attempt(broke(0), node(1)), nodes=2), want("running", "ending")),
    Case("being cancelled", records(attempt(node()), actions=(act(15),)), want("running", "cancelling")),
    Case("success", records(attempt(done(0), done(1, end=22.0)), nodes=2), want("succeeded", reason=None, exit_code=0, started_at=10.0, ended_at=22.0), (("succeeded", None, 0),)),
    Case("success needs every node", records(attempt(done(0), done(1)), nodes=3), want("running")),
    Case("success is told before the scheduler's word", records(attempt(done()), observations=(word(10, "running"),)), want("succeeded"), moment=at(21)),
    Case("cancelled when all ranks had ended well", records(attempt(done()), actions=(act(19),), observations=(ended(21, "CANCELLED"),)), want("succeeded", exit_code=0)),
    Case("exit code", records(attempt(broke(code=3))), want("failed", "exit_code", exit_code=3, reason="exit code 3"), (("failed", "exit_code", 3),)),
    Case("exit code 255 is no signal", records(attempt(broke(code=255))), want("failed", "exit_code", exit_code=255)),
    Case("a shell tells its child's signal", records(attempt(broke(code=137))), want("failed", "signal", reason="ended by signal 9", exit_code=137)),
    Case("a rank ended by a signal", records(attempt(node(end=20.0, exit_code=139, signal=11, ranks=[rank(0, end=20.0, signal=11)]))), want("failed", "signal", exit_code=139, reason="ended by signal 11")),
    Case("the rank that failed first, over nodes", records(attempt(broke(0, end=21.0, code=4), broke(1, end=20.5, code=7)), nodes=2), want("failed", "exit_code", exit_code=7)),
    Case("a rank that failed first on a node that ended last", records(attempt(node(0, end=30.0, exit_code=4, ranks=[rank(0, end=19.0, exit_code=4)]), broke(1, end=20.0, code=7)), nodes=2), want("failed", exit_code=4, ended_at=30.0, reason_code="exit_code")),
    Case("nodes that were stopped for a peer do not count", records(attempt(stopped(0, end=19.0, by="peer"), broke(1, end=20.0, code=7)), nodes=2), want("failed", "exit_code", exit_code=7)),
    Case("all were stopped for a peer: the first one's code", records(attempt(stopped(0, end=22.0, by="peer", signal=9), stopped(1, end=21.0, by="peer")), nodes=2), want("failed", "signal", exit_code=143)),
    Case("the launcher could not start the ranks", records(attempt(node(end=11.0, exit_code=86, error={"code": "no_python", "message": "no python3"}))), want("failed", "no_python", exit_code=86, reason="no python3")),
    Case("an exception in a cell", records(attempt(broke(code=1), errors=(error(19.0, 0, cell=3, line=7),))), want("failed", "exception", exit_code=1, reason="rank 0 raised ValueError in cell 3 line 7: boom")),
    Case("the first exception by time", records(attempt(broke(0, code=1), broke(1, code=1), errors=(error(19.5, 0, "later"), error(19.0, 1, "first"))), nodes=2), want("failed", "exception"), says="rank 1 raised ValueError: first"),
    Case("an exception that was caught", records(attempt(done(), errors=(error(19.0, 0),))), want("succeeded", reason=None)),
    Case("an exception without words", records(attempt(broke(code=1), errors=(error(19.0, 0, ""),))), want("failed", "exception", reason="rank 0 raised ValueError")),
    Case("a long exception is cut", records(attempt(broke(code=1), errors=(error(19.0, 0, "x" * 9999),))), want("failed", "exception", reason="rank 0 raised ValueError: " + "x" * 474)),
    Case("incomplete, and nobody says anything", records(attempt(node(0)), nodes=2), want("running")),
]  # fmt: skip

CANCELS = [
    Case("cancelled", records(attempt(stopped()), actions=(act(15),)), want("cancelled", reason=None, exit_code=143), (("cancelled", None, 143),)),
    Case("cancelled, and the scheduler has yet to say so", records(attempt(stopped()), actions=(act(15),), observations=(word(10, "running"),)), want("running", "cancelling"), moment=at(21)),
    Case("cancelled twice", records(attempt(stopped()), actions=(act(15), act(30))), want("cancelled")),
    Case("cancelled, journal out of order", records(attempt(stopped()), actions=(act(30), act(15))), want("cancelled")),
    Case("cancelled after it had failed", records(attempt(broke()), actions=(act(25),)), want("failed", "exit_code", exit_code=3)),
    Case("it failed by itself while the cancel was on its way", records(attempt(broke()), actions=(act(19),)), want("failed", "exit_code", exit_code=3)),
    Case("cancelled; one node had failed before", records(attempt(broke(0, end=18.0), stopped(1)), nodes=2, actions=(act(19),)), want("cancelled", exit_code=3)),
    Case("cancelled; a node left no word", records(attempt(stopped(0), node(1)), nodes=2, actions=(act(15),), observations=(ended(40, "CANCELLED"),)), want("cancelled")),
    Case("cancel beats the time limit", records(attempt(stopped()), actions=(act(15),), observations=(ended(21, "TIMEOUT"),)), want("cancelled")),
    Case("cancelled after it was heard last, and then lost", records(attempt(node()), actions=(act(25),), observations=(ended(21, "LOST"),)), want("cancelled")),
    Case("cancelled after it was heard last, and lost before it began", records(actions=(act(25),), observations=(ended(21, "LOST"),)), want("cancelled")),
    Case("cancel beats a lost supervisor", records(attempt(node()), actions=(act(15),), observations=(ended(21, "LOST"),)), want("cancelled")),
    Case("hold, release and requeue are no cancel", records(attempt(stopped()), actions=(act(11, "hold"), act(12, "release"), act(13, "requeue"))), want("failed", "signal")),
]  # fmt: skip

VERDICTS = [
    Case("TIMEOUT beats the exit code", records(attempt(stopped()), observations=(ended(21, "TIMEOUT"),)), want("failed", "timeout", exit_code=143, reason="it reached its time limit")),
    Case("TIMEOUT without a word of the nodes", records(attempt(node()), observations=(ended(21, "TIMEOUT", exit_code=1),)), want("failed", "timeout", exit_code=1, ended_at=21.0)),
    Case("OOM", records(attempt(broke(code=137)), observations=(ended(21, "OOM"),)), want("failed", "out_of_memory", exit_code=137)),
    Case("OOM without a word of the nodes", records(attempt(node()), observations=(ended(21, "OOM"),)), want("failed", "out_of_memory", exit_code=None)),
    Case("NODE_FAIL", records(attempt(broke(0, code=9), node(1)), nodes=2, observations=(ended(21, "NODE_FAIL", reason="n1 does not respond"),)), want("failed", "node_fail", reason="n1 does not respond", exit_code=9)),
    Case("PREEMPTED", records(attempt(stopped()), observations=(ended(21, "PREEMPTED"),)), want("failed", "preempted")),
    Case("CANCELLED by others", records(attempt(stopped()), observations=(ended(21, "CANCELLED", reason="by the admin"),)), want("cancelled", "cancelled", reason="by the admin", exit_code=143)),
    Case("REFUSED", records(attempt(), observations=(ended(21, "REFUSED"),)), want("failed", "refused")),
    Case("LOST with an exit code: the code is the better word", records(attempt(broke()), observations=(ended(21, "LOST"),)), want("failed", "exit_code", exit_code=3)),
    Case("LOST when it was being stopped", records(attempt(stopped()), observations=(ended(21, "LOST"),)), want("failed", "lost")),
    Case("LOST without an exit code", records(attempt(node()), observations=(ended(21, "LOST", reason="its supervisor was killed"),)), want("failed", "lost", reason="its supervisor was killed", exit_code=None)),
    Case("LOST after all ranks ended well", records(attempt(done()), observations=(ended(21, "LOST"),)), want("succeeded")),
    Case("FAILED with an exit code", records(attempt(broke()), observations=(ended(21, "FAILED"),)), want("failed", "exit_code", exit_code=3)),
    Case("FAILED and a node left no word", records(attempt(broke(0), node(1)), nodes=2, observations=(ended(21, "FAILED"),)), want("failed", "failed", exit_code=3)),
    Case("COMPLETED says no more than the exit codes", records(attempt(broke()), observations=(ended(21, "COMPLETED"),)), want("failed", "exit_code")),
    Case("the verdict's own code and words", records(attempt(stopped()), observations=(ended(21, "PREEMPTED", reason="for run b", reason_code="priority"),)), want("failed", "priority", reason="for run b")),
    Case("a failure whose verdict is still out", records(attempt(broke()), observations=(word(10, "running"),)), want("running", "ending"), moment=at(21)),
    Case("a verdict that never comes", records(attempt(broke()), observations=(word(10, "running"),)), want("failed", "exit_code"), moment=at(81)),
]  # fmt: skip

SEVERAL_ATTEMPTS = [
    Case("the second runs", twice(node()), want("running", started_at=10.0), (FIRST, ("running", None, None))),
    Case("the second succeeded", twice(done()), want("succeeded", exit_code=0), (FIRST, ("succeeded", None, 0))),
    Case("the second failed otherwise", twice(broke(code=4)), want("failed", "exit_code", exit_code=4), (FIRST, ("failed", "exit_code", 4))),
    Case("recovering", records(attempt(broke()), observations=(word(21, "waiting", attempt=1, verdict="FAILED", reason="restart 1 of 2", reason_code="recovering"),)), want("waiting", "recovering", reason="restart 1 of 2", exit_code=None), (FIRST,)),
    Case("recovering, the scheduler only says that it waits", records(attempt(broke()), observations=(word(21, "waiting"),)), want("waiting", "recovering"), (FIRST,)),
    Case("requeued", records(attempt(stopped()), actions=(act(15, "requeue"),), observations=(word(21, "waiting", attempt=1, verdict="REQUEUED", reason_code="requeued"),)), want("waiting", "requeued"), (("failed", "requeued", 143),)),
    Case("removed while it waited after a requeue", records(attempt(stopped()), observations=(word(21, "waiting", attempt=1, verdict="REQUEUED"), ended(22, "LOST", reason="its job was removed", reason_code="lost"))), want("failed", "lost", reason="its job was removed"), (("failed", "requeued", 143),)),
    Case("given up while it waited after a requeue", records(attempt(stopped()), observations=(word(21, "waiting", attempt=1, verdict="REQUEUED"), ended(22, "FAILED", reason="it was tried often enough"))), want("failed", "failed", reason="it was tried often enough"), (("failed", "requeued", 143),)),
    Case("waits again after a node failed", records(attempt(node(0), node(1)), nodes=2, observations=(word(21, "waiting", attempt=1, verdict="NODE_FAIL", reason="n1 is replaced", reason_code="recovering"),)), want("waiting", "recovering", reason="n1 is replaced"), (("failed", "node_fail", None),)),
    Case("its node is repaired while it runs", records(attempt(node()), observations=(word(15, "running", reason="n0 is replaced", reason_code="recovering"),)), want("running", "recovering", reason="n0 is replaced"), (("running", None, None),)),
    Case("its ranks failed while its node is repaired", records(attempt(broke()), observations=(word(25, "running", reason="n0 is replaced", reason_code="recovering"),)), want("running", "recovering", reason="n0 is replaced", ended_at=None), moment=at(26)),
    Case("cancelled while its node is repaired", records(attempt(node()), actions=(act(15),), observations=(word(16, "running", reason="n0 is replaced", reason_code="recovering"),)), want("running", "cancelling")),
    Case("cancelled while it recovers", records(attempt(broke()), actions=(act(25),), observations=(word(21, "waiting"),)), want("waiting", "cancelling"), (FIRST,)),
    Case("cancelled while it recovered", records(attempt(broke()), actions=(act(25),), observations=(ended(26, "CANCELLED"),)), want("cancelled", reason=None, exit_code=3)),
    Case("an old wait before the attempt says nothing", records(attempt(broke()), observations=(word(5, "waiting", reason_code="held"),)), want("failed", "exit_code")),
    Case("a first attempt that left no word, once the second runs", records(attempt(node()), attempt(node(start=30.0), number=2)), want("running"), (("failed", "lost", None), ("running", None, None))),
    Case("a word on the first does not end the second", twice(node(start=30.0), observations=(ended(25, "NODE_FAIL", attempt=1),)), want("running"), (("failed", "node_fail", 3), ("running", None, None))),
    Case("a late word on the first does not end the second", twice(node(start=30.0), observations=(ended(99, "TIMEOUT", attempt=1),)), want("running"), (("failed", "timeout", 3), ("running", None, None))),
    Case("a word on an attempt that nobody knows", records(attempt(node()), observations=(ended(99, "TIMEOUT", attempt=7),)), want("running")),
    Case("a word on no attempt in particular ends the last only", twice(node(start=30.0), observations=(ended(40, "NODE_FAIL"),)), want("failed", "node_fail", exit_code=None), (FIRST, ("failed", "node_fail", None))),
    Case("cancelled in the second", twice(stopped(end=40.0), actions=(act(35),)), want("cancelled"), (FIRST, ("cancelled", None, 143))),
    Case("a cancel in the second leaves a first that left no word", records(attempt(node()), attempt(stopped(end=40.0), number=2), actions=(act(35),)), want("cancelled"), (("failed", "lost", None), ("cancelled", None, 143))),
    Case("the verdict on the first stays when the scheduler speaks of the second", twice(node(start=30.0), observations=(word(21, "waiting", observer="local.attempt-1", attempt=1, verdict="NODE_FAIL"), word(31, "running"))), want("running"), (("failed", "node_fail", 3), ("running", None, None))),
    Case("the first verdict on an attempt stays", records(attempt(stopped()), observations=(ended(21, "TIMEOUT", attempt=1), ended(50, "NODE_FAIL", attempt=1, observer="b"))), want("failed", "timeout")),
    Case("restarts are used up while the next one had begun", twice(node(start=30.0), observations=(ended(40, "FAILED", exit_code=3, reason="too often", reason_code="restarts_used_up"),)), want("failed", "restarts_used_up", exit_code=3, reason="too often"), (FIRST, ("failed", "restarts_used_up", None))),
    Case("an attempt that nobody saw", records(attempt(node()), attempt(node(start=30.0), number=2), observations=(word(21, "waiting", observer="events", attempt=1, verdict="PREEMPTED", reason="it was preempted; its log is lost", reason_code="preempted"),)), want("running"), (("failed", "preempted", None), ("running", None, None))),
    Case("one that nobody saw, and the run waits", records(attempt(node()), observations=(word(21, "waiting", observer="events", attempt=1, verdict="PREEMPTED", reason="not kept", reason_code="preempted"), word(22, "waiting", reason="no quota", reason_code="quota"))), want("waiting", "quota", reason="no quota"), (("failed", "preempted", None),)),
    Case("LOST gives way to a word that knows better", records(attempt(node()), observations=(ended(21, "LOST", attempt=1, observer="watch"), ended(25, "OOM", attempt=1))), want("failed", "out_of_memory")),
]  # fmt: skip

DAMAGE = [
    Case("a record that cannot be read", records(attempt(node()), damage=("status/attempt-1/node-1.json",)), want("unknown", "damaged"), says="node-1.json"),
    Case("a broken submission", records(taken=False, damage=("submission.json",)), want("unknown", "damaged"), moment=at(5, "alive")),
    Case("what has ended stays ended", records(attempt(done()), damage=("status/observations/x.json",)), want("succeeded", exit_code=0)),
    Case("only three are named", records(attempt(node()), damage=tuple("abcde")), want("unknown", "damaged", reason="records cannot be read: a, b, c")),
]  # fmt: skip

DEAF = at(100_000.0, unreachable="ml does not respond")
HEARD = StateContext(100_000.0, "unknown", "ml does not respond", heard=True)

UNREACHABLE = [
    Case("a waiting run of a cluster that does not respond", records(), want("unknown", "unreachable", reason="ml does not respond"), moment=DEAF),
    Case("a running one", records(attempt(node())), want("unknown", "unreachable", started_at=10.0), (("running", None, None),), moment=DEAF),
    Case("one whose nodes are heard of", records(attempt(node())), want("running", reason="its nodes report that it is running; ml does not respond"), (("running", None, None),), moment=HEARD),
    Case("one that is being cancelled and is heard of", records(attempt(node()), actions=(act(15),)), want("running", "cancelling"), moment=HEARD),
    Case("nobody is heard of what waits", records(), want("unknown", "unreachable"), moment=HEARD),
    Case("what has ended there stays ended", records(attempt(broke())), want("failed", "exit_code"), moment=DEAF),
    Case("what was never sent there is no matter of the cluster", records(taken=False), want("failed", "submit_interrupted"), moment=DEAF),
    Case("damage is told before", records(damage=("a",)), want("unknown", "damaged"), moment=DEAF),
]  # fmt: skip

CASES = [*BEFORE_ANY_ATTEMPT, *ONE_ATTEMPT, *CANCELS, *VERDICTS, *SEVERAL_ATTEMPTS, *DAMAGE, *UNREACHABLE]
