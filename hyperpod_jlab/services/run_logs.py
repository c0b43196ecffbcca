"""What the log service must know of runs, told by the runs service."""

from __future__ import annotations

import time
from pathlib import Path

from hyperpod_jlab.logs.array import ArrayStreams
from hyperpod_jlab.model.errors import DeniedError, HyperpodError
from hyperpod_jlab.services.runs import Runs

_A_MOMENT = 2.0
_PATIENCE = 60.0
_FRESH = 0.25  # seconds for which "has it ended" is not asked again, however many follow the run


class RunLogsOf:
    """The runs service as the log service sees it (`hyperpod_jlab.services.logs.RunLogs`)."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._asked: dict[str, tuple[float, bool]] = {}

    def records_dir(self, run_id: str) -> Path:
        """The run's records folder."""
        return self._runs.records_folder(run_id)

    def processes_per_node(self, run_id: str) -> int:
        """Ranks on each node."""
        return self._runs.bundle(run_id).head().processes_per_node

    def array_streams(self, run_id: str) -> ArrayStreams | None:
        """The logs of all children of an array; None for any other run. May block."""
        bundle = self._runs.bundle(run_id)
        head = bundle.head()
        if head.array is None or bundle.index is not None:
            return None
        return ArrayStreams(bundle.folder / "tasks", head.nodes, head.processes_per_node)

    async def attempt_reason(self, run_id: str, attempt: int) -> str | None:
        """Why an attempt ended; None when nobody knows."""
        try:
            run = await self._runs.get(run_id)
        except HyperpodError:  # a damaged record, say: the log is shown without
            return None
        found = (one for one in run.status.attempts if one.number == attempt)
        return next((one.reason for one in found if one.reason_code != "lost"), None)

    async def catch_up(self, run_id: str, *, follow: bool) -> None:
        """Wait until all that the run's nodes have said by now can be read; who follows the log need not have all at once.

        Raises:
            DeniedError: This user may not read it.
        """
        try:
            await self._runs.catch_up(run_id, _A_MOMENT if follow else _PATIENCE)
        except DeniedError:
            raise
        except HyperpodError:
            return  # who reads the log is told

    async def is_ended(self, run_id: str) -> bool:
        """Whether no further attempt of the run can start."""
        now = time.monotonic()
        # Not even an end is remembered for long: a submit that was broken off may be sent again, under the same id.
        self._asked = {run: seen for run, seen in self._asked.items() if now - seen[0] <= _FRESH}
        if run_id in self._asked:
            return self._asked[run_id][1]
        ended = (await self._runs.get(run_id)).status.ended
        if ended:
            await self.catch_up(run_id, follow=False)
        self._asked[run_id] = (time.monotonic(), ended)
        return ended
