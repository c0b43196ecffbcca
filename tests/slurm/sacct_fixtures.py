"""A cluster whose accounting has the rows that a test says, behind the client's transport."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.engines.slurm.accounting import AccountingHistory
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.facts import ClusterFacts
from hyperpod_jlab.engines.slurm.history import SlurmHistory
from hyperpod_jlab.engines.slurm.job_queue import JobQueue
from hyperpod_jlab.engines.slurm.queue import PollInterval
from hyperpod_jlab.engines.slurm.tables import SlurmTables
from hyperpod_jlab.engines.slurm.transport import CommandOutput

SacctRow = dict[str, str]

BEGIN = 1_790_805_600
"""The time of the rows here (Unix seconds)."""

_CONFIG = """\
ClusterName             = test
AccountingStorageType   = accounting_storage/slurmdbd
AccountingStorageTRES   = cpu,mem,node,gres/gpu
PrivateData             = none
"""


def sacct_row(**values: str | int) -> SacctRow:
    """A row of sacct: a job of ana that ran for an hour on a node with 2 GPUs, but for these values."""
    job = str(values.get("JobID", "12"))
    row = {
        "JobID": job,
        "JobIDRaw": job,
        "State": "COMPLETED",
        "ExitCode": "0:0",
        "User": "ana",
        "Account": "vision",
        "QOS": "normal",
        "Partition": "dev",
        "Priority": "7",
        "TimelimitRaw": "120",
        "NNodes": "1",
        "NodeList": "gpu1",
        "AllocCPUS": "8",
        "AllocTRES": "billing=8,cpu=8,gres/gpu:h100=2,gres/gpu=2,mem=62.50G,node=1",
        "Submit": BEGIN - 60,
        "Start": BEGIN,
        "Comment": "",
        "WorkDir": "/home/ana",
        "JobName": "train",
        "End": BEGIN + 3600,
        **values,
    }
    return {name: str(value) for name, value in row.items()}


class Accounted:
    """Answers the commands as slurmdbd and the controller do (as_mysql_jobacct_process.c, `_state_time_string`).

    Args:
        rows: The rows of the accounting.
        user: The user who asks.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, rows: Sequence[SacctRow] = (), user: str = "ana") -> None:
        self.rows = list(rows)
        self.user = user
        self.config = _CONFIG
        self.database_config = ""
        self.calls: list[Sequence[str]] = []
        self.row_counts: list[int] = []
        self.failure: Callable[[Sequence[str]], CommandOutput | None] = lambda _: None
        """Called before each command; its answer is taken instead."""

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 0) -> CommandOutput:
        self.calls.append(argv)
        answers = {
            "sacct": lambda: self._sacct(argv),
            "/bin/sh": lambda: f"{self.user}\n1000\n",
            "scontrol": lambda: self.config,
            "sacctmgr": lambda: self.database_config,
        }
        if "--user=nobody-here" in argv:
            return CommandOutput(1, "", "sacct: fatal: Invalid user id: nobody-here")
        failed = self.failure(argv)
        return failed or CommandOutput(0, answers.get(argv[0], str)(), "")

    async def close(self) -> None:
        pass

    def _sacct(self, argv: Sequence[str]) -> str:
        options = dict(word.removeprefix("--").split("=", 1) for word in argv if "=" in word)
        fields = options["format"].split(",")
        found = [row for row in self.rows if _is_selected(row, options)]
        if "State" in fields:
            self.row_counts.append(len(found))
        lines = (options["delimiter"].join(row[name] for name in fields) for row in found)
        return "".join(f"{line}\n" for line in lines)


def _is_selected(row: SacctRow, options: dict[str, str]) -> bool:
    if options.get("user") not in {None, row["User"]}:
        return False
    if "jobs" in options:
        return options["jobs"] in {row["JobID"].partition("_")[0].partition("+")[0], row["JobID"]}
    first, last = (int(options[name].removeprefix("uts")) for name in ("starttime", "endtime"))
    has_ended = row["End"].isdecimal()
    if options["state"] == "R":
        started = row["Start"].isdecimal() and int(row["Start"]) < last
        return started and (int(row["End"]) > first if has_ended else row["State"] == "RUNNING")
    return has_ended and first <= int(row["End"]) <= last


def history_of(transport: Accounted) -> tuple[SlurmHistory, AccountingHistory]:
    """The history, and what knows whether there is one."""
    client = SlurmClient(transport)
    facts = ClusterFacts(client)
    config = SlurmCluster(orchestrator="slurm", transport="ssh", login_nodes=["none"])
    pace = PollInterval()
    queue = JobQueue(client, facts, pace, config)
    tables = SlurmTables(client, queue, pace, runs_here=False)
    accounting = AccountingHistory(client)
    return SlurmHistory(client, queue, facts, accounting, tables), accounting
