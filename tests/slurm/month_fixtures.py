"""A month of jobs in the database of a real slurmdbd, written there without running them, and what sreport says of it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.slurm.cluster import SlurmTestbed

HOUR, DAY = 3_600, 86_400
ACCOUNTS = {"vision": "ana bert carl", "speech": "ana dora", "robots": "emil"}
"""Accounts and their users; one user is in two."""
SUSPENDER = ("paused", "gus")
"""An account and user whose only job was suspended for a while."""

_COMPLETED, _CANCELLED, _FAILED, _TIMEOUT, _NODE_FAIL, _PREEMPTED = 3, 4, 5, 6, 7, 8
_RUNNING, _REQUEUED, _RESIZING = 1, 1024, 8192
_ENDS = (_COMPLETED, _COMPLETED, _CANCELLED, _FAILED, _TIMEOUT, _NODE_FAIL, _PREEMPTED)
_NO_TASK = 4_294_967_294
_ROWS_PER_INSERT = 5_000


@dataclass(frozen=True)
class Month:
    """The last whole month, in a time zone whose summer time ends on its third Sunday. Times are Unix seconds.

    Attributes:
        begin: Its begin, at local midnight.
        end: Its end.
        zone: The value of TZ.
    """

    begin: int
    end: int
    zone: str

    @classmethod
    def last(cls) -> Month:
        """The last whole month, three days after its end at the earliest: what follows it is looked at, too."""
        now = datetime.now(UTC) - timedelta(days=3)
        months = now.year * 12 + now.month - 1
        first, after = (datetime(m // 12, m % 12 + 1, 1, tzinfo=UTC) for m in (months - 1, months))
        spring = (first.month + 5) % 12 + 1
        zone = f"STD-1DST,M{spring}.3.0/2,M{first.month}.3.0/3"
        # Summer time is two hours before UTC, then it is one.
        return cls(int(first.timestamp()) - 2 * HOUR, int(after.timestamp()) - HOUR, zone)


Row = Mapping[str, int | str]


class MonthOfJobs:
    """Rows of slurmdbd's table of jobs.

    Args:
        month: The month in which most of them run.
        associations: The id of each association by account and user.
        gpu: The id of gres/gpu among slurmdbd's resources.
    """

    def __init__(self, month: Month, associations: Mapping[tuple[str, str], int], gpu: int) -> None:
        self._month = month
        self._associations = sorted(associations.items())
        self._suspender = associations[SUSPENDER]
        self._gpu = gpu
        self._random = random.Random(21)
        self._job = 1_000

    def rows(self, count: int) -> list[Row]:
        """So many executions of jobs, or a few more."""
        rows: list[Row] = []
        makers = (self._requeued, self._array, self._resized, self._never_started, self._endless)
        while len(rows) < count:
            if self._random.random() < 0.8:
                rows.append(self._execution())
            else:
                # Jobs that never end are few.
                maker = self._random.choices(makers, (20, 10, 5, 10, 1))[0]
                rows += maker()
        return rows

    def _execution(self, **values: int | str) -> Row:
        """One execution with random values; some begin or end at a bound of the month or of an hour."""
        draw = self._random
        begin, end = self._month.begin, self._month.end
        start = draw.randrange(begin - 5 * DAY, end + 2 * DAY)
        start = draw.choices((start, start - start % HOUR, begin, end), (90, 8, 1, 1))[0]
        lasts = min(10 * DAY, int(draw.lognormvariate(7.5, 2)))
        stop = draw.choices((start + lasts, max(start, end), start), (96, 2, 2))[0]
        nodes = draw.choice((1, 1, 1, 2, 4, 16))
        cpus, gpus = nodes * draw.randint(1, 96), nodes * draw.choice((0, 1, 2, 8))
        tres = f"1={cpus},2={nodes * 4000},3={2**64 - 2},4={nodes},5={cpus}"
        (account, user), association = draw.choice([item for item in self._associations if item[1] != self._suspender])
        self._job += 1
        return {
            "mod_time": stop,
            "account": account,
            "cpus_req": cpus,
            "job_name": draw.choice(("train", "a|b", "two\\nlines", "unit\x1fsep")),
            "id_assoc": association,
            "id_job": self._job,
            "id_array_job": 0,
            "id_array_task": _NO_TASK,
            "id_resv": 0,
            "id_wckey": 0,
            "id_user": 30_000,
            "id_group": 30_000,
            "het_job_id": 0,
            "het_job_offset": _NO_TASK,
            "state_reason_prev": 0,
            "nodelist": f"gpu[1-{nodes}]",
            "nodes_alloc": nodes,
            "partition": draw.choice(("dev", "batch")),
            "priority": 1,
            "state": draw.choice(_ENDS),
            "timelimit": 60,
            "time_submit": start - 60,
            "time_eligible": start - 60,
            "time_start": start,
            "time_end": stop,
            "time_suspended": 0,
            "work_dir": f"/home/{user}",
            "tres_alloc": tres + (f",{self._gpu}={gpus}" if gpus else ""),
            **values,
        }

    def suspended(self, seconds: int) -> Row:
        """A job of `SUSPENDER` on 2 nodes with 10 CPUs, suspended for so long in the middle of the month."""
        start = self._month.begin + 10 * DAY
        return self._execution(
            account=SUSPENDER[0],
            id_assoc=self._suspender,
            time_suspended=seconds,
            time_submit=start,
            time_eligible=start,
            time_start=start,
            time_end=start + 2 * DAY,
            nodes_alloc=2,
            state=_COMPLETED,
            tres_alloc=f"1=10,4=2,{self._gpu}=4",
        )

    def _requeued(self) -> Iterable[Row]:
        first = self._execution(state=self._random.choice((_REQUEUED, _NODE_FAIL, _PREEMPTED)))
        yield first
        start = int(first["time_end"]) + self._random.randrange(1, DAY)
        yield {
            **first,
            "state": _COMPLETED,
            "time_submit": start - 1,
            "time_start": start,
            "time_end": start + self._random.randrange(DAY),
        }

    def _array(self) -> Iterable[Row]:
        first = int(self._execution()["id_job"])
        for task in range(self._random.randrange(1, 9)):
            yield self._execution(id_array_job=first, id_array_task=task)

    def _resized(self) -> Iterable[Row]:
        first = self._execution(state=_RESIZING)
        yield first
        second = self._execution()
        start = int(first["time_end"])
        yield {
            **second,
            "id_job": first["id_job"],
            "time_submit": max(start, int(first["time_submit"]) + 1),
            "time_eligible": start,
            "time_start": start,
            "time_end": start + self._random.randrange(DAY),
        }

    def _never_started(self) -> Iterable[Row]:
        row = self._execution(state=_CANCELLED, nodelist="", nodes_alloc=0, tres_alloc="")
        yield {**row, "time_start": row["time_end"]}

    def _endless(self) -> Iterable[Row]:
        yield self._execution(state=_RUNNING, time_end=0)


class Database:
    """The database and the slurmdbd of a cluster.

    Args:
        cluster: The cluster, started with ``--dbd``.
    """

    def __init__(self, cluster: SlurmTestbed) -> None:
        self._cluster = cluster
        self._socket = str(cluster.folder / "run" / "mysql.sock")

    def sql(self, text: str) -> list[list[str]]:
        """Runs SQL; returns the rows of its answer."""
        done = subprocess.run(
            [
                *("mariadb", "--no-defaults", "--user=root", f"--socket={self._socket}"),
                *("--batch", "--skip-column-names", "slurm_acct_db"),
            ],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        return [line.split("\t") for line in done.stdout.splitlines()]

    def add_people(self) -> dict[tuple[str, str], int]:
        """Adds `ACCOUNTS` and their users; returns the id of each association."""
        for account, users in [*ACCOUNTS.items(), SUSPENDER]:
            self._cluster.exec("ctl", "sacctmgr", "-i", "add", "account", account)
            names = users.replace(" ", ",")
            self._cluster.exec("ctl", "sacctmgr", "-i", "add", "user", names, f"account={account}")
        rows = self.sql("select acct, user, id_assoc from testbed_assoc_table where user <> ''")
        return {(account, user): int(number) for account, user, number in rows if user != "root"}

    def gpu(self) -> int:
        """The id of gres/gpu."""
        return int(self.sql("select id from tres_table where type='gres' and name='gpu'")[0][0])

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Writes rows; all have the same columns."""
        columns = ", ".join(f"`{name}`" for name in rows[0])
        statements = []
        for start in range(0, len(rows), _ROWS_PER_INSERT):
            part = rows[start : start + _ROWS_PER_INSERT]
            values = ",".join(f"({','.join(map(_literal, row.values()))})" for row in part)
            statements.append(f"insert into testbed_{table} ({columns}) values {values};")
        self.sql("\n".join(statements))

    def suspend(self, row: Row, seconds: int) -> None:
        """Writes that a job was suspended for so long, an hour after its start."""
        start = int(row["time_start"]) + HOUR
        self.sql(
            "insert into testbed_suspend_table (job_db_inx, id_assoc, time_start, time_end) "
            "select job_db_inx, id_assoc, "
            f"{start}, {start + seconds} from testbed_job_table where id_job = {row['id_job']};"
        )

    def roll_up(self, month: Month) -> None:
        """Makes slurmdbd sum up all since the month's begin, in its time zone."""
        pid = int((self._cluster.folder / "run" / "slurmdbd.pid").read_text())
        _end(pid)
        begin = month.begin
        self.sql(
            # sreport reports of no cluster in a time before it was registered.
            f"update testbed_event_table set time_start = {begin} where node_name = '';"
            "delete from testbed_last_ran_table;"
            f"insert into testbed_last_ran_table values ({begin}, {begin}, {begin});"
        )
        zone, server = f"TZ={month.zone}", f"MYSQL_UNIX_PORT={self._socket}"
        self._cluster.exec("ctl", "env", zone, server, "slurmdbd")
        deadline = time.monotonic() + 600
        while int(self.sql("select hourly_rollup from testbed_last_ran_table")[0][0]) <= begin:
            assert time.monotonic() < deadline, "slurmdbd does not roll up"
            time.sleep(0.2)

    def sreport(self, month: Month, begin: int, end: int) -> dict[tuple[str, str, str], int]:
        """Seconds by account, user (empty: all of the account) and resource, those above 0."""
        text = self._cluster.exec(
            *("ctl", "env", f"TZ={month.zone}", "sreport", "-n", "-P", "-t", "Seconds"),
            *("-T", "cpu,gres/gpu,node", "cluster", "AccountUtilizationByUser"),
            *(f"start=uts{begin}", f"end=uts{end}", "format=Account,Login,TresName,Used"),
        )
        rows = (line.split("|") for line in text.splitlines())
        return {
            (account, user, resource): int(used)
            for account, user, resource, used in rows
            if account != "root" and int(used)
        }


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _end(pid: int) -> None:
    """Ends a process that is not ours to wait for."""
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, f"process {pid} does not end"
        time.sleep(0.05)
