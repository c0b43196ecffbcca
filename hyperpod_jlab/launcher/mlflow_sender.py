"""Sends the numbers of a run to MLflow: a process of its own on node 0, so that a server that is slow or gone holds nothing up."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set

from .bundle_files import AttemptPaths, BundleFiles, read_json
from .environment import mask_secrets
from .errors import LauncherError
from .metrics import MetricFile, write_note
from .mlflow_api import (
    MLFLOW_EXPERIMENT,
    MLFLOW_URI,
    NUMBERS_TAG,
    MlflowApi,
    MlflowFault,
    attempt_of,
    mlflow_tags,
    pick_mlflow_run,
    tags_of,
    without_user_info,
)
from .processes import Child, Children
from .ranks import Launch, rank_command
from .system import describe_end, send

MLFLOW_ALARM = "mlflow"
"""Code of the alarm that MLflow does not take the numbers."""
MLFLOW_VALUES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""What JSON cannot say as a number: in the records, and for MLflow."""


class SenderEnded(Exception):  # noqa: N818 - it is no error: its time is over
    """The attempt has ended, and MLflow has had its time."""


class MetricTail:
    """Follows a node's file of numbers. What was not sent stays there: nothing has to be kept in memory."""

    CHUNK = 1 << 16

    def __init__(self, path: str) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> List[Dict[str, Any]]:
        """The next records; empty when there are none yet."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return []
        try:
            data = os.pread(descriptor, self.CHUNK, self._offset)
        except OSError:
            return []
        finally:
            os.close(descriptor)
        body, newline, _ = data.rpartition(b"\n")
        if not newline and len(data) == self.CHUNK:  # no record is so long
            body = data
        self._offset += len(body) + len(newline)
        records = []
        for line in body.split(b"\n"):
            try:
                document = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(document, dict) and isinstance(document.get("values"), dict):
                records.append(document)
        return records


class MlflowNumbers:
    """Makes numbers of MLflow from the records. MLflow knows no ranks: of each name, the lowest rank that prints it counts."""

    MAX_NAMES = 1000
    FOREIGN = re.compile(r"[^\w. /:-]", re.ASCII)

    def __init__(self) -> None:
        self._ranks: Dict[str, int] = {}

    def convert(self, record: Mapping[str, Any]) -> List[Dict[str, Any]]:
        """The numbers of one record."""
        try:
            rank, moment = int(record["rank"]), int(float(record["time"]) * 1000)
            step = int(record.get("step") or 0)
        except (KeyError, TypeError, ValueError, OverflowError):
            return []
        numbers = []
        for name, raw in record["values"].items():
            if len(self._ranks) >= self.MAX_NAMES and name not in self._ranks:
                continue
            if rank > self._ranks.get(name, rank):
                continue
            self._ranks[name] = rank
            value = MLFLOW_VALUES.get(raw) if isinstance(raw, str) else raw
            if isinstance(value, (str, int, float)):
                key = self._key(name)
                numbers.append({"key": key, "value": value, "timestamp": moment, "step": step})
        return numbers

    def _key(self, name: str) -> str:
        """The name as MLflow takes it, which makes a path of a file of it: no empty part, no part of dots only, no dots in front."""
        parts = self.FOREIGN.sub("_", name)[:250].split("/")
        return "/".join(part for part in parts if part.strip(".")).lstrip(".") or "_"


class MlflowSender:
    """Sends numbers until the ranks have ended."""

    EVERY_S, MAX_EVERY_S = 1.0, 60.0
    """Seconds between two requests; of a server that does not take them, more and more."""
    MAX_BATCH = 1000
    """MLflow takes no more at once."""
    FINISH_S, FINISH_DOWN_S = 3.0, 1.0
    """Seconds for the last requests at the end of the attempt; the second, if the server has not answered before."""
    LAST_LINES_S = 0.3
    """After a failure the reader of the output ends at the same time: its last records are waited for."""

    def __init__(self, paths: AttemptPaths, environment: Mapping[str, str]) -> None:
        plan = read_json(os.path.join(paths.bundle, "launch.json")) or {}
        self._settings: Mapping[str, Any] = plan.get("mlflow") or {}
        index = environment.get("HYPERPOD_ARRAY_INDEX")
        self._run_id = str(plan.get("run_id")) + (".%s" % index if index else "")
        self._paths = paths
        self._environment = environment
        self._secrets = {name: environment.get(name, "") for name in plan.get("secrets") or ()}
        # The ranks that print are the first or, in pipelines, the last ones.
        nodes = sorted({0, int(plan.get("nodes") or 1) - 1})
        self._tails = [MetricTail(paths.metrics_path(node)) for node in nodes]
        self._numbers = MlflowNumbers()
        self._api: Optional[MlflowApi] = None
        self._mlflow_run: Optional[str] = None
        self._is_ours = False
        self._pending: List[Dict[str, Any]] = []
        self._refused: Set[str] = set()
        self._file = MetricFile(BundleFiles(paths.bundle), paths.metrics)
        self._problem: Optional[str] = None
        self._is_ending = False
        self._grace = float(plan.get("stop_grace") or 0.0)

    def run(self) -> int:
        """Send numbers until SIGTERM says that the ranks have ended; the exit code."""
        wake_up, signalled = os.pipe()
        os.set_blocking(signalled, False)
        signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
        signal.signal(signal.SIGALRM, self._give_up)
        signal.signal(signal.SIGTERM, self._finish)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        try:
            delay = self.EVERY_S
            while not self._is_ending:
                delay = self.EVERY_S if self._turn() else min(delay * 2, self.MAX_EVERY_S)
                select.select([wake_up], [], [], delay)
            self._send_rest()
        except SenderEnded:
            if self._problem is None:
                self._tell("MLflow did not take the last numbers in time")
        return 0

    def _finish(self, *_: object) -> None:
        self._is_ending = True
        seconds = self.FINISH_S if self._problem is None else self.FINISH_DOWN_S
        if self._outcome() != "FINISHED":  # the node kills it then, as all that is left
            seconds = max(0.1, min(seconds, self._grace * 0.8))
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _give_up(self, *_: object) -> None:
        raise SenderEnded

    def _turn(self) -> bool:
        """Send what is new; whether the server takes it."""
        while len(self._pending) < self.MAX_BATCH:
            records = [record for tail in self._tails for record in tail.read()]
            if not records:
                break
            for record in records:
                self._pending += self._numbers.convert(record)
        if not self._pending:
            return True
        try:
            self._send(self._pending[: self.MAX_BATCH])
        except MlflowFault as fault:
            self._tell(fault.message)
            if not (fault.is_final and self._mlflow_run):
                return False
        else:
            self._tell(None)
        del self._pending[: self.MAX_BATCH]
        return True

    def _send_rest(self) -> None:
        outcome = self._outcome()
        if outcome != "FINISHED":
            time.sleep(self.LAST_LINES_S)
        while self._turn() and self._pending:
            pass
        if self._pending or not self._is_ours or self._mlflow_run is None:
            return
        try:
            self._end(self._mlflow_run, outcome)
        except MlflowFault as fault:
            self._tell(fault.message)

    def _outcome(self) -> str:
        """How the attempt ended: the ranks of this node succeeded, some node has failed, or it was stopped."""
        states = (read_json(self._paths.node_record) or {}).get("ranks") or []
        if states and all(state.get("exit_code") == 0 for state in states):
            return "FINISHED"
        failed = read_json(self._paths.failed)
        return "FAILED" if failed is not None and not failed.get("stopped_by") else "KILLED"

    def _send(self, numbers: List[Dict[str, Any]]) -> None:
        api = self._api
        if api is None:
            uri = self._environment.get(MLFLOW_URI, "")
            if not re.match(r"https?://|arn:", uri):
                shown = without_user_info(uri)[:100]
                raise MlflowFault("numbers cannot be sent to this tracking server: %s" % shown)
            api = self._api = MlflowApi(uri, self._environment)
        if self._mlflow_run is None:
            self._mlflow_run = self._find_or_make(api)
        self._log(api, [one for one in numbers if one["key"] not in self._refused])

    def _log(self, api: MlflowApi, numbers: List[Dict[str, Any]]) -> None:
        """Send numbers; if the server refuses them, name by name. What it refuses beside others that it takes is not sent again."""
        refusal = self._refusal(api, numbers)
        if refusal is None:
            return
        refusals = {
            name: self._refusal(api, [one for one in numbers if one["key"] == name])
            for name in sorted({str(one["key"]) for one in numbers})
        }
        if all(refusals.values()):
            raise refusal
        for name, fault in refusals.items():
            if fault is not None:
                self._refused.add(name)
                write_note("the numbers of %s are not in MLflow: %s" % (name, fault.message))

    def _refusal(self, api: MlflowApi, numbers: List[Dict[str, Any]]) -> Optional[MlflowFault]:
        """Send numbers; what the server says if it refuses them."""
        try:
            if numbers:
                api.post("runs/log-batch", {"run_id": self._mlflow_run, "metrics": numbers})
        except MlflowFault as fault:
            if fault.status != 400:
                raise
            return fault
        return None

    def _find_or_make(self, api: MlflowApi) -> str:
        """The run of MLflow for this attempt: the one that the ranks have started, or else a new one. Those of earlier attempts are ended."""
        experiment = self._environment.get("MLFLOW_EXPERIMENT_ID") or self._experiment(api)
        known = api.search([experiment], self._run_id)
        for one in known:
            tags, info = tags_of(one), one.get("info") or {}
            earlier = attempt_of(tags) != self._paths.attempt
            if earlier and NUMBERS_TAG in tags and info.get("status") == "RUNNING":
                self._end(str(info.get("run_id")), "FAILED", api)
        found = pick_mlflow_run(known, self._paths.attempt)
        if found is not None:
            self._is_ours = NUMBERS_TAG in tags_of(found)
            return str(found["info"]["run_id"])
        tags = mlflow_tags(self._settings, self._run_id, self._paths.attempt)
        tags[NUMBERS_TAG] = "true"
        document = {
            "experiment_id": experiment,
            "start_time": int(time.time() * 1000),
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
        }
        answer = api.post("runs/create", document)
        try:
            run = str(answer["run"]["info"]["run_id"])
        except (KeyError, TypeError):
            raise MlflowFault("the server did not answer as an MLflow server does") from None
        self._is_ours = True
        self._send_params(api, run)
        return run

    def _send_params(self, api: MlflowApi, run: str) -> None:
        """The parameters of the notebook; without them the numbers are worth as much."""
        params = self._settings.get("params")
        if not isinstance(params, dict) or not params:
            return
        listed = [{"key": key, "value": str(value)[:500]} for key, value in params.items()]
        try:
            api.post("runs/log-batch", {"run_id": run, "params": listed[:100]})
        except MlflowFault as fault:
            write_note("the parameters are not in MLflow: %s" % fault.message)

    def _experiment(self, api: MlflowApi) -> str:
        name = self._environment.get(MLFLOW_EXPERIMENT)
        if not name:
            return "0"
        found = api.find_experiment(name)
        if found is not None:
            return found
        try:
            return str(api.post("experiments/create", {"name": name})["experiment_id"])
        except MlflowFault as fault:  # another run may have made it meanwhile
            found = api.find_experiment(name)
            if found is None:
                raise fault from None
            return found
        except KeyError:
            raise MlflowFault("the server did not answer as an MLflow server does") from None

    def _end(self, run: str, status: str, api: Optional[MlflowApi] = None) -> None:
        api = api or self._api
        if api is not None:
            document = {"run_id": run, "status": status, "end_time": int(time.time() * 1000)}
            api.post("runs/update", document)

    def _tell(self, problem: Optional[str]) -> None:
        """Say that the server does not take numbers, or takes them again: in the node's log, and as an alarm of the run."""
        if (problem is None) == (self._problem is None):
            return
        problem = None if problem is None else mask_secrets(problem, self._secrets)
        self._problem = problem
        now = round(time.time(), 3)
        document: Dict[str, Any] = {"time": now, "alarm": MLFLOW_ALARM, "rank": None, "since": now}
        if problem is None:
            document["over"] = True
            write_note("MLflow takes numbers again")
        else:
            document["message"] = problem
            write_note("%s; the run goes on" % problem)
        self._file.write([document])


def run_sender(_: Sequence[str]) -> int:
    """Be the process that sends numbers to MLflow."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    variables = os.environ
    paths = AttemptPaths(
        variables["HYPERPOD_BUNDLE"],
        variables["HYPERPOD_RECORDS"],
        int(variables["HYPERPOD_ATTEMPT"]),
        int(variables["NODE_RANK"]),
    )
    return MlflowSender(paths, dict(variables)).run()


class SenderChild:
    """The process that sends numbers to MLflow, as the node sees it. Without it the node runs as well.

    It is the ranks' Python that runs it, because that one may have boto3, which SageMaker's servers need.
    """

    STOP_TIMEOUT_S = MlflowSender.FINISH_S + 1.0

    def __init__(self, launch: Launch, children: Children, log_note: Callable[[str], None]) -> None:
        self._log_note = log_note
        self._child: Optional[Child] = None
        self._kill_at: Optional[float] = None
        program = [launch.python, os.path.abspath(__file__), "mlflow"]
        argv = [*rank_command("--keep-output"), *program]
        # It inherits the mask: of a short run, the end must not come before it is ready for that.
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
        try:
            self._child = children.start("mlflow", argv, launch.environment, "/", is_counted=False)
        except LauncherError as error:
            log_note(str(error))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)

    def poll(self) -> None:
        """See what became of it."""
        child = self._child
        if child is None:
            return
        if not child.ended:
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                send(child.pid, signal.SIGKILL)
            return
        self._child = None
        if child.exit_code and self._kill_at is None:
            text = "the process that sends numbers to MLflow %s"
            self._log_note(text % describe_end(child.exit_code, child.signal))

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._child is not None

    def stop(self) -> None:
        """The ranks have ended, and all their numbers are in the file: it sends the rest and ends."""
        if self._child is not None and not self._child.ended and self._kill_at is None:
            send(self._child.pid, signal.SIGTERM)
            self._kill_at = time.monotonic() + self.STOP_TIMEOUT_S
