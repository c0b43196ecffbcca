"""Shells on a run's nodes, and ports of its nodes on this machine.

A shell is a step of the run's own job (``srun --overlap``): it runs as the job's user and inside of its limits, and ends with the job.
It needs connections from the nodes to the machine with srun, so it does not work in a Studio space.

A port is forwarded by OpenSSH (``ssh -L``) through the login node in use. On a machine that reaches the nodes itself, it is forwarded
by plain TCP.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import NoReturn

from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import ConflictError, NotFoundError, UnreachableError, UnsupportedError
from hyperpod_jlab.core.records import RunRecords
from hyperpod_jlab.engines.forwarding import LOOPBACK, LocalEnd, bind, serve_tcp
from hyperpod_jlab.engines.protocol import Shell
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.job_queue import JobQueue
from hyperpod_jlab.engines.slurm.jobs import SlurmJob, scheduler_id
from hyperpod_jlab.engines.slurm.observe import newest
from hyperpod_jlab.engines.slurm.queue import Snapshot
from hyperpod_jlab.engines.slurm.rows import expand
from hyperpod_jlab.engines.slurm.ssh import LoginNode, Ssh
from hyperpod_jlab.engines.slurm.ssh_errors import parse_ssh_error
from hyperpod_jlab.engines.slurm.transport import LocalTransport
from hyperpod_jlab.storage.records import BundleReader


class RunNodes:
    """The nodes of one cluster's runs.

    Args:
        transport: How it is reached.
        client: Its commands.
        queue: Its queue.
        config: Its configuration.
    """

    def __init__(
        self, transport: Ssh | LocalTransport, client: SlurmClient, queue: JobQueue, config: SlurmCluster
    ) -> None:
        self._transport = transport
        self._client = client
        self._queue = queue
        self._config = config

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """The shell commands for the run's nodes."""
        if self._config.transport == "here" and find_studio() is not None:
            raise UnsupportedError(
                "shells need srun, which does not work in a Studio space: the nodes cannot connect to it",
                code="no_srun",
                hint='use a login node: set transport = "ssh" in the configuration of the cluster',
            )
        job, nodes = await self._find(bundle)
        return [
            Shell(rank, node, await self._transport.shell_line([*step_arguments(job, node), "--pty", "bash"]))
            for rank, node in enumerate(nodes)
        ]

    async def forward(self, bundle: BundleReader, node: int, port: int, end: LocalEnd) -> NoReturn:
        """Forward a port (see `engines.protocol.Forwarding`)."""
        _, nodes = await self._find(bundle)
        if node >= len(nodes):
            raise NotFoundError(
                f"the run has no node {node}; it has {len(nodes)}, and the first is 0",
                code="no_such_node",
                detail={"node": node, "nodes": len(nodes)},
            )
        # Slurm's own address of the node: its name need not resolve.
        argv = ["sinfo", "--noheader", "--Node", f"--nodes={nodes[node]}", "--format=%o"]
        address = (await self._client.query(argv)).split()[0]
        if isinstance(self._transport, LocalTransport):
            await serve_tcp(address, port, end)
        await _forward_by_ssh(await self._transport.login_node(), f"{address}:{port}", end)

    async def _find(self, bundle: BundleReader) -> tuple[SlurmJob, list[str]]:
        """The run's job, and its nodes by rank."""
        await asyncio.to_thread(bundle.check_own, "open")
        records = await asyncio.to_thread(bundle.read)
        job = _find_job(records, bundle, await self._queue.own_jobs())
        if job is None or job.state != "RUNNING":
            self._queue.forget()
            snapshot = await self._queue.user_queue.get(0.0)
            job = _find_job(records, bundle, snapshot)
        if job is None or job.state != "RUNNING":
            state = job.state.lower() if job is not None else "not in the queue"
            raise ConflictError(
                f"the job of {bundle.run_id} is not running; it is {state}",
                code="wrong_state",
                hint="ports and shells are available while a run is running",
                detail={"run_id": bundle.run_id, "state": state},
            )
        return job, _nodes_by_rank(records, expand(job.node_list))


def step_arguments(job: SlurmJob, node: str) -> list[str]:
    """The arguments of srun for a step on one node of a job, beside the others."""
    return ["srun", f"--jobid={job.job_id}", "--overlap", f"--nodelist={node}", "--nodes=1", "--ntasks=1"]


def _find_job(records: RunRecords, bundle: BundleReader, snapshot: Snapshot) -> SlurmJob | None:
    """A run's job among those of this user."""
    known = scheduler_id(records, bundle.index)
    jobs = snapshot.by_run.get(records.head.run_id, [])
    if known is not None:
        known_job = known.partition("_")[0]
        jobs = [job for job in jobs if known_job in {job.job_id, job.array_job_id}]
    if bundle.index is not None:
        index = bundle.index
        jobs = [job for job in jobs if job.has_task(index)]
    return newest(jobs, known)


def _nodes_by_rank(records: RunRecords, allocated: tuple[str, ...]) -> list[str]:
    """The nodes of a job by rank: as the newest attempt's launchers wrote them, else in the scheduler's order, in which Slurm numbers nodes."""
    nodes = list(allocated)
    if not records.attempts:
        return nodes
    written = {one.node_rank: one.node for one in records.attempts[-1].nodes}
    ordered = [written.get(rank) for rank in range(len(nodes))]
    known = [node for node in ordered if node in allocated]
    return known if len(set(known)) == len(nodes) else nodes


async def _forward_by_ssh(login_node: LoginNode, destination: str, end: LocalEnd) -> NoReturn:
    """Run ``ssh -L`` until cancelled. Its far command ends with this process: it waits for the end of its input."""
    marker = secrets.token_hex(12)
    with bind(end.port) as free:
        local_port = int(free.getsockname()[1])
    problems: list[str] = []
    opened = asyncio.Event()

    async def read_problems(pipe: asyncio.StreamReader) -> None:
        async for line in pipe:
            problems.append(line.decode("utf-8", "replace").rstrip())
            if opened.is_set():
                end.on_problem(f"{destination}: {problems[-1]}")

    forward = f"{LOOPBACK}:{local_port}:{destination}"
    async with login_node.forwarding(forward, f"echo {marker}; exec cat") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        reading = asyncio.ensure_future(read_problems(process.stderr))
        # Start-up files of the login shell may print lines before it.
        while line := await process.stdout.readline():
            if line.strip() == marker.encode():
                opened.set()
                end.on_open(local_port)
                break
        await reading
    text = "\n".join(problems[-20:])
    if opened.is_set():
        raise UnreachableError(f"the connection to {login_node.text} broke: {text[-300:]}", code="connection_lost")
    raise parse_ssh_error(login_node.text, text, login_node.command_line)
