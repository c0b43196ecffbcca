"""Files of the bundle."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional


def read_json(path: str) -> Optional[Dict[str, Any]]:
    """A record that somebody may have written; None when there is none (yet)."""
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read().decode("utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def records_folder(bundle: str, task: Optional[int]) -> str:
    """The folder of a run's records: the bundle, or of an array's child a folder in it."""
    return bundle if task is None else os.path.join(bundle, "tasks", str(task))


class BundleFiles:
    """Makes files and folders in a bundle, readable as far as the bundle's own folder lets people in.

    The job's umask may be 077 and its user another than the reader; the bundle's folder alone guards what is in it.
    So the launcher's files get the common mode, and the process's umask stays what it is for the ranks.
    """

    def __init__(self, bundle: str) -> None:
        self._umask = 0o022 & ~stat.S_IMODE(os.stat(bundle).st_mode)

    @contextlib.contextmanager
    def _common_mode(self) -> Iterator[None]:
        previous_umask = os.umask(self._umask)
        try:
            yield
        finally:
            os.umask(previous_umask)

    def open(self, path: str, flags: int) -> int:
        """Open a file, made if need be."""
        with self._common_mode():
            return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def make_folders(self, path: str) -> None:
        """Make a folder and those above it, where they are missing."""
        with self._common_mode():
            os.makedirs(path, exist_ok=True)

    def claim_folder(self, path: str) -> bool:
        """Make a folder that must not be there; False when it is."""
        with self._common_mode():
            try:
                os.mkdir(path)
            except FileExistsError:
                return False
        return True

    def write(self, path: str, document: Mapping[str, Any]) -> None:
        """Write a record: readers see the old one or the new one, never half of one."""
        with self._temporary(path, document) as temporary:
            os.replace(temporary, path)

    def write_once(self, path: str, document: Mapping[str, Any]) -> bool:
        """Write a record unless there is one; whether it was written. Of several writers one wins."""
        with self._temporary(path, document) as temporary:
            try:
                os.link(temporary, path)
            except OSError as error:
                # A network file system may have made the link and lost the answer.
                if os.stat(temporary).st_nlink == 2:
                    return True
                if error.errno == errno.EEXIST:
                    return False
                raise
        return True

    @contextlib.contextmanager
    def _temporary(self, path: str, document: Mapping[str, Any]) -> Iterator[str]:
        folder, name = os.path.split(path)
        temporary = os.path.join(folder, ".%s.%s.tmp" % (name, os.urandom(6).hex()))
        data = json.dumps(document).encode("utf-8") + b"\n"
        try:
            descriptor = self.open(temporary, os.O_WRONLY | os.O_TRUNC)
            with open(descriptor, "wb") as file:
                file.write(data)
            yield temporary
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


class Records:
    """Writes the records of a running node: a full or failing disk is no reason to end a job, so these wait and retry."""

    RETRY_AFTER_S = 2.0

    def __init__(self, files: BundleFiles, log_note: Callable[[str], None]) -> None:
        self._files = files
        self._log_note = log_note
        self._waiting: Dict[str, Mapping[str, Any]] = {}
        self._retry_at = 0.0
        self._has_warned = False

    def write(self, path: str, document: Mapping[str, Any]) -> None:
        """Write a record now, or as soon as the disk takes it."""
        try:
            self._files.write(path, document)
            self._waiting.pop(path, None)
        except OSError as error:
            self._waiting[path] = document
            self._retry_at = time.monotonic() + self.RETRY_AFTER_S
            if not self._has_warned:
                self._has_warned = True
                self._log_note("cannot write %s: %s; trying again" % (path, error.strerror or error))

    def write_once(self, path: str, document: Mapping[str, Any]) -> None:
        """Write a record unless there is one."""
        try:
            self._files.write_once(path, document)
        except OSError as error:
            self._log_note("cannot write %s: %s" % (path, error.strerror or error))

    def retry(self) -> None:
        """Write what could not be written, from time to time."""
        if self._waiting and time.monotonic() >= self._retry_at:
            for path, document in list(self._waiting.items()):
                self.write(path, document)

    def flush(self, seconds: float) -> None:
        """Try for a while to get everything written."""
        deadline = time.monotonic() + seconds
        while self._waiting and time.monotonic() < deadline:
            time.sleep(0.1)
            self._retry_at = 0.0
            self.retry()


class AttemptPaths(NamedTuple):
    """Where everything of one attempt on one node lies."""

    bundle: str
    records: str
    attempt: int
    node_rank: int

    @property
    def status(self) -> str:
        """The attempt's folder of records."""
        return os.path.join(self.records, "status", "attempt-%d" % self.attempt)

    @property
    def logs(self) -> str:
        """The attempt's folder of logs."""
        return os.path.join(self.records, "logs", "attempt-%d" % self.attempt)

    @property
    def node_record(self) -> str:
        """This node's record."""
        return self.node_record_path(self.node_rank)

    def node_record_path(self, node_rank: int) -> str:
        """Any node's record."""
        return os.path.join(self.status, "node-%d.json" % node_rank)

    @property
    def failed(self) -> str:
        """The mark of the first node that failed, which ends the others."""
        return os.path.join(self.status, "failed.json")

    @property
    def next_attempt(self) -> str:
        """The folder that is there once a later attempt has begun."""
        return os.path.join(self.records, "status", "attempt-%d" % (self.attempt + 1))

    def rank_error(self, rank: int) -> str:
        """What a rank failed with."""
        return os.path.join(self.status, "rank-%d.error.json" % rank)

    def pid_file(self, local_rank: int) -> str:
        """Where a rank that torchrun started leaves its process id."""
        return os.path.join(self.status, ".node-%d.rank-%d.pid" % (self.node_rank, local_rank))

    @property
    def node_log(self) -> str:
        """The launcher's own log."""
        return os.path.join(self.logs, "node-%d.log" % self.node_rank)

    @property
    def activity(self) -> str:
        """The record of the logs' sizes."""
        return os.path.join(self.logs, "node-%d.activity.json" % self.node_rank)

    @property
    def resources(self) -> str:
        """The samples of what the node and its ranks use."""
        return os.path.join(self.logs, "node-%d.resources.jsonl" % self.node_rank)

    @property
    def metrics(self) -> str:
        """The numbers that the ranks print, and the alarms that they raise."""
        return self.metrics_path(self.node_rank)

    def metrics_path(self, node_rank: int) -> str:
        """Any node's numbers and alarms."""
        return os.path.join(self.logs, "node-%d.metrics.jsonl" % node_rank)

    def alarm_posted(self, code: str) -> str:
        """The mark that an alarm was posted to the webhook."""
        return os.path.join(self.status, ".alarm-%s.json" % code)

    @property
    def alarm_stop(self) -> str:
        """Which alarm ends the attempt; for the launcher of this node alone."""
        return os.path.join(self.status, ".node-%d.alarm.json" % self.node_rank)

    @property
    def setup_file(self) -> str:
        """The setup lines as a file, so that bash can name their lines."""
        return os.path.join(self.logs, "node-%d.setup.sh" % self.node_rank)

    def rank_log(self, local_rank: int) -> str:
        """A rank's log."""
        return os.path.join(self.logs, "node-%d.rank-%d.log" % (self.node_rank, local_rank))
