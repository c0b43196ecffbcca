"""Read a run's records, and write those of the user interfaces and engines."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import secrets
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, StorageDeniedError
from hyperpod_jlab.core.job_actions import ActionKind
from hyperpod_jlab.core.records import (
    Action,
    AttemptClaim,
    AttemptRecords,
    Claim,
    Head,
    NodeRecord,
    Observation,
    ProcessRecord,
    RankError,
    RunRecords,
    Submission,
    with_observed_attempt,
)
from hyperpod_jlab.core.run_id import split_run_id
from hyperpod_jlab.core.spec import SPEC_FORMAT, JobSpec
from hyperpod_jlab.core.usage import Usage
from hyperpod_jlab.core.validation import has_too_many_values
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage import files as atomic
from hyperpod_jlab.storage.acl import host_uid, is_uid
from hyperpod_jlab.storage.big_records import is_too_complex
from hyperpod_jlab.storage.bundle import Budget, is_command_item, is_file_entry, visible_names
from hyperpod_jlab.storage.files import storage_errors
from hyperpod_jlab.storage.locate import BundleLocation
from hyperpod_jlab.storage.owners import user_name

Record = TypeVar("Record", bound=BaseModel)
T = TypeVar("T")

BUNDLE_FORMAT = 1

_ATTEMPT = re.compile(r"attempt-[1-9][0-9]{0,8}")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")

_MAX_RECORD_BYTES = 4 << 20
_MAX_FILE_BYTES = 16 << 20
_MAX_HEAD_BYTES = 256 << 10
_MAX_FOREIGN_RECORDS = 10_000
"""Maximum names read from a folder of another user's bundle."""
_MAX_FOREIGN_STEPS = 500
"""Attempts, observations and actions of another user's run: what follows from them takes the product of their numbers."""
_NAME_BYTES = 64
"""What a name in a folder counts, whether or not its file is read."""


class DamagedBundleError(HyperpodError):
    """A bundle that cannot be read: a file is missing or broken, or a newer version wrote it."""

    default_code = "damaged"
    exit_code = 2
    status = 422


class BundleReader(BundleLocation):
    """The bundle of one run (or of the array that a child belongs to), for reading and for adding records."""

    _budget: Budget | None = None
    _shares_budget = False
    _array: RunRecords | None = None

    def child(self, index: int, array: RunRecords | None = None) -> BundleReader:
        """A child of this array.

        Args:
            index: Its index.
            array: The array's records, if known, so that records shared with the array are not read again for each child.
        """
        parent = split_run_id(self.run_id)[0]
        child = BundleReader(self.partition, f"{parent}.{index}", self._find())
        child._budget = self._budget
        child._shares_budget = self._budget is not None
        child._array = array
        return child

    def array(self) -> BundleReader:
        """The array of this child."""
        return BundleReader(self.partition, split_run_id(self.run_id)[0], self._find())

    def child_indices(self) -> list[int]:
        """The indices of this array's children that have records, in order. May block."""
        names_found = self._listed(self.folder / "tasks")
        return sorted(int(name) for name in names_found if _INDEX.fullmatch(name))

    def head(self) -> Head:
        """The bundle's head.

        Raises:
            NotFoundError: The run does not exist.
            DamagedBundleError: The head cannot be read, is of a newer format, or the bundle's owner is wrong.
        """
        self._check_owner()
        data = self._load(self.folder / "bundle.json", _MAX_HEAD_BYTES)
        version = data.get("format")
        if isinstance(version, int) and version > BUNDLE_FORMAT:
            raise DamagedBundleError(
                f"the bundle of {self.run_id} was created by a newer version (format {version})",
                code="newer_format",
                hint=self._update_hint(),
                detail={"format": version, "path": str(self.folder)},
            )
        head = self._validated(Head, data, self.folder / "bundle.json")
        if head.run_id != self.folder.name:
            raise self._damaged(self.folder / "bundle.json", "belongs to another run")
        return head

    def _check_owner(self) -> None:
        with contextlib.suppress(OSError):  # readers report missing files
            owner = descent.state(self.folder).st_uid
            if not is_uid(owner, self.owner):
                raise DamagedBundleError(
                    f"the bundle of {self.run_id} is ignored: it belongs to {user_name(host_uid(owner))}, but is in the folder of "
                    f"{user_name(self.owner)}",
                    code="foreign_bundle",
                    hint=f"delete it: {self.folder}",
                    detail={"path": str(self.folder), "owner": host_uid(owner)},
                )

    def spec(self) -> JobSpec:
        """The run's spec, without fields that only another version knows.

        Raises:
            NotFoundError: The run does not exist.
            DamagedBundleError: The spec cannot be read, or is of a newer format.
        """
        path = self.folder / "spec.json"
        data = self._load(path)
        version = data.get("format")
        if isinstance(version, int) and version > SPEC_FORMAT:
            raise DamagedBundleError(
                f"the spec of {self.run_id} was created by a newer version (format {version})",
                code="newer_format",
                hint=self._update_hint(),
                detail={"format": version, "path": str(path)},
            )
        if has_too_many_values(JobSpec, data):
            raise self._damaged(path, "has too many values")
        environment = data.get("environment")
        if isinstance(environment, dict) and environment.get("capture") == "conda":
            environment["capture"] = "venv"  # what comes closest to it; older versions wrote it
        try:
            return JobSpec.model_validate(data)
        except ValidationError as error:
            _drop_unknown_fields(data, error)
        return self._validated(JobSpec, data, path)

    def plan(self) -> dict[str, Any]:
        """The launcher's plan (``launch.json``)."""
        return self._load(self.folder / "launch.json")

    def command(self) -> list[Any]:
        """A rank's command, by the launcher's plan: items as docs/bundle-format.md describes them.

        Raises:
            DamagedBundleError: It is missing.
        """
        value = self.plan().get("command")
        if not isinstance(value, list) or not all(map(is_command_item, value)):
            raise self._damaged(self.folder / "launch.json", "is damaged: no command")
        return value

    def files(self) -> list[dict[str, Any]]:
        """The files of code and project as submitted (``files.json``): path, digest, executable."""
        path = self.folder / "files.json"
        entries = self._load(path).get("files")
        if not isinstance(entries, list) or not all(map(is_file_entry, entries)):
            raise self._damaged(path, "is damaged: no list of files")
        return entries

    def read(self) -> RunRecords:
        """All records; unreadable ones are omitted and named in ``damage``."""
        array = self._array
        head = self.head() if array is None else array.head
        if not self.is_own and not self._shares_budget:
            self._budget = Budget()  # an array's children share their array's
        damage: list[str] = []
        status = self.records / "status"
        records = RunRecords(
            head=head,
            submission=self._submission(damage) if array is None else array.submission,
            claim=self._optional(Claim, status / "claim.json", damage),
            attempts=tuple(self._attempts(status, damage)),
            observations=tuple(self._all(Observation, status / "observations", damage)),
            actions=self._sorted_actions(damage),
            intents=tuple(self._intents(damage)) if array is None else array.intents,
            owner=self._optional(ProcessRecord, status / "owner.json", damage),
            damage=tuple(damage),
        )
        if self._budget is not None and self._budget.is_spent:
            records = dataclasses.replace(records, damage=(*damage, "records: too many to read"))
        return with_observed_attempt(records)

    def _submission(self, damage: list[str]) -> Submission | None:
        return self._optional(Submission, self.folder / "submission.json", damage)

    def actions(self) -> tuple[Action, ...]:
        """The journal of user actions, oldest first (for a child: with those on its array)."""
        return self._sorted_actions([])

    def add_action(
        self, action: ActionKind, user: str, *, time_limit: int | None = None, queue: str | None = None
    ) -> Action:
        """Record a user's action; with ``change`` the new time limit (in seconds) and queue."""
        record = Action(time=time.time(), action=action, user=user, time_limit=time_limit, queue=queue)
        folder = self.records / "status" / "actions"
        path = folder / f"{time.time_ns():020d}-{secrets.token_hex(3)}.json"
        self._put(path, record)
        return record

    def drop_action(self, record: Action) -> None:
        """Remove a recorded action that was not done."""
        folder = self.records / "status" / "actions"
        for name in reversed(visible_names(folder)):
            if self._optional(Action, folder / name, []) == record:
                with storage_errors(folder / name):
                    descent.unlink(folder / name)
                return

    def add_observation(self, observation: Observation) -> None:
        """Record the scheduler's observation, replacing this observer's earlier one; its first verdict on an attempt is kept too."""
        folder = self.records / "status" / "observations"
        if observation.attempt is not None and observation.verdict is not None:
            verdict_file = folder / f"{observation.observer}.attempt-{observation.attempt}.json"
            if not descent.is_file(verdict_file):
                self._put(verdict_file, observation)
        self._put(folder / f"{observation.observer}.json", observation)

    def add_intent(self, process: ProcessRecord) -> None:
        """Record that this process is about to call the engine."""
        self._put(self.folder / "status" / f"intent-{secrets.token_hex(4)}.json", process)

    def write_owner(self, process: ProcessRecord) -> None:
        """Record which process manages the run (local engine)."""
        self._put(self.records / "status" / "owner.json", process)

    def write_submission(self, submission: Submission) -> None:
        """Record that the engine has accepted the run."""
        self._put(self.folder / "submission.json", submission)

    def usage(self) -> Usage | None:
        """The recorded usage of an ended run."""
        return self._optional(Usage, self._usage_file, [])

    def write_usage(self, usage: Usage) -> None:
        """Record the run's usage."""
        self._put(self._usage_file, usage)

    @property
    def _usage_file(self) -> Path:
        return self.records / "status" / "usage.json"

    def _put(self, path: Path, record: BaseModel) -> None:
        data = atomic.to_json(record.model_dump(exclude_none=True))
        self.check_writable(path)
        with storage_errors(path):
            descent.make_folders(self.folder, path.parent, self.folder_mode)
            descent.replace(path, data, mode=self.file_mode)

    def _attempts(self, status: Path, damage: list[str]) -> Iterable[AttemptRecords]:
        numbers = [int(name.removeprefix("attempt-")) for name in self._listed(status) if _ATTEMPT.fullmatch(name)]
        for number in self._limited(sorted(numbers, reverse=True), damage)[::-1]:
            folder = status / f"attempt-{number}"
            names = self._listed(folder)
            nodes = [name for name in names if name.startswith("node-") and name.endswith(".json")]
            errors = [name for name in names if name.endswith(".error.json")]
            yield AttemptRecords(
                number=number,
                claim=self._optional(AttemptClaim, folder / "claim.json", damage),
                nodes=tuple(sorted(self._read_each(NodeRecord, folder, nodes, damage), key=lambda n: n.node_rank)),
                errors=tuple(sorted(self._read_each(RankError, folder, errors, damage), key=lambda e: e.time)),
            )

    def _sorted_actions(self, damage: list[str]) -> tuple[Action, ...]:
        actions = self._actions(self.records / "status", damage)
        return tuple(sorted(actions, key=lambda action: action.time))

    def _actions(self, status: Path, damage: list[str]) -> Iterable[Action]:
        yield from self._all(Action, status / "actions", damage)
        if self._array is not None:
            yield from self._array.actions
        elif self.index is not None:  # an action on the array applies to its children
            yield from self._all(Action, self.folder / "status" / "actions", damage)

    def _intents(self, damage: list[str]) -> Iterable[ProcessRecord]:
        folder = self.folder / "status"
        names = [name for name in self._listed(folder) if name.startswith("intent-")]
        yield from self._read_each(ProcessRecord, folder, names, damage)

    def _all(self, kind: type[Record], folder: Path, damage: list[str]) -> Iterable[Record]:
        names = [name for name in self._listed(folder) if name.endswith(".json")]
        yield from self._read_each(kind, folder, self._limited(names, damage), damage)

    def _limited(self, found: list[T], damage: list[str]) -> list[T]:
        if self.is_own or len(found) <= _MAX_FOREIGN_STEPS:
            return found
        damage.append("records: too many to read")
        return found[:_MAX_FOREIGN_STEPS]

    def _read_each(self, kind: type[Record], folder: Path, names: list[str], damage: list[str]) -> Iterable[Record]:
        for name in names:
            record = self._optional(kind, folder / name, damage)
            if record is not None:
                yield record

    def _listed(self, folder: Path) -> list[str]:
        if self.is_own:
            return visible_names(folder)
        if self._budget is None:
            return visible_names(folder, _MAX_FOREIGN_RECORDS)
        names = visible_names(folder, _MAX_FOREIGN_RECORDS) if self._budget.spend(0) else []
        self._budget.spend(_NAME_BYTES * len(names))
        return names

    def _optional(self, kind: type[Record], path: Path, damage: list[str]) -> Record | None:
        if self._budget is not None and not self._budget.spend(0):
            return None
        try:
            data = descent.read(path, _MAX_RECORD_BYTES)
            if self._budget is not None:
                self._budget.spend(len(data))
            if is_too_complex(data):
                raise ValueError
            return kind.model_validate_json(data)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError):
            damage.append(str(path.relative_to(self.folder)))
            return None

    def _load(self, path: Path, most: int = _MAX_FILE_BYTES) -> dict[str, Any]:
        try:
            content = descent.read(path, most)
            data = None if is_too_complex(content) else from_json(content)
        except (FileNotFoundError, NotADirectoryError):
            if not descent.is_folder(self.folder):
                raise NotFoundError(
                    f"run {self.run_id} not found", code="no_such_run", hint="list runs with: hpj runs"
                ) from None
            raise self._damaged(path, "is missing") from None
        except ValueError as error:
            raise self._damaged(path, f"is damaged: {error}") from error
        except PermissionError as error:
            raise StorageDeniedError(
                f"you do not have the permission to read the run {self.run_id}: {path}",
                hint="ask its owner for read permission",
                detail={"path": str(path), "os_error": error.strerror},
            ) from error
        except OSError as error:
            raise self._damaged(path, f"cannot be read: {error.strerror}") from error
        if not isinstance(data, dict):
            raise self._damaged(path, "is damaged: not a JSON object")
        return data

    def _validated(self, kind: type[Record], data: dict[str, Any], path: Path) -> Record:
        try:
            return kind.model_validate(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            location = ".".join(str(part) for part in first["loc"])
            raise self._damaged(path, f"is damaged at {location}: {first['msg']}") from error

    def _damaged(self, path: Path, problem: str) -> DamagedBundleError:
        return DamagedBundleError(
            f"the bundle of {self.run_id} is damaged: {path.name} {problem}",
            hint=f"its logs may still be readable as files; to remove the run, delete its folder: {self.folder}"
            if self.is_own
            else f"{user_name(self.owner)} must repair it: {self.folder}",
            detail={"path": str(path)},
        )

    def _update_hint(self) -> str:
        return f"update hyperpod_jlab (pip install --upgrade hyperpod_jlab); its folder is {self.folder}"


def _drop_unknown_fields(data: dict[str, Any], error: ValidationError) -> None:
    """Remove what a model does not know from the data that it refused: fields, and words in lists, such as an alarm of an earlier version."""
    # From the end of each list, as what comes behind an item that goes moves up.
    for problem in reversed(error.errors(include_url=False, include_input=False)):
        if problem["type"] not in {"extra_forbidden", "literal_error"}:
            continue
        *parents, name = problem["loc"]
        place: Any = data
        for step in parents:
            # The tag of a union is a step, and no key.
            if isinstance(place, dict) and place.get("kind") != step:
                place = place.get(step)
        if isinstance(place, dict) and problem["type"] == "extra_forbidden":
            place.pop(name, None)
        elif isinstance(place, list) and isinstance(name, int):
            del place[name]
