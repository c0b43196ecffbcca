"""Ports and shells of a run's nodes, through a step of the run's own job.

A step (``srun --overlap``) runs on the node as the job's user and inside of its limits, and ends with the job. It needs no sshd there,
no key, and no open port on the nodes, and it reaches programs that listen only on the node's 127.0.0.1. All connections to a node
share one step (`launcher.relay`), because each step costs the controller a call and stays in the accounting. The step connects only
to programs of the job's user.

The nodes must be able to connect to the machine with srun: a login node. Nothing can connect to a Studio space.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import secrets
from pathlib import Path

from hyperpod_jlab import launcher
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import (
    ConflictError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.core.records import RunRecords
from hyperpod_jlab.engines.protocol import Shell
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.job_queue import JobQueue
from hyperpod_jlab.engines.slurm.jobs import SlurmJob, scheduler_id
from hyperpod_jlab.engines.slurm.native import read_sending
from hyperpod_jlab.engines.slurm.observe import newest
from hyperpod_jlab.engines.slurm.queue import Snapshot
from hyperpod_jlab.engines.slurm.rows import expand
from hyperpod_jlab.engines.slurm.transport import CommandOpener, OpenCommand
from hyperpod_jlab.launcher.relay import Channel, ChannelClosedError, PortRefusedError, RelayClient
from hyperpod_jlab.storage.records import BundleReader

STEP = "hyperpod-ports"
"""The step's name."""

_START_TIMEOUT_S = 20.0
_LINGER_S = 10.0
"""Seconds for which a step without connections stays: a browser opens the next one soon."""

_PATH = "/usr/local/bin:/usr/bin:/bin"
_MAX_STDERR = 8000
_MAX_GREETING = 64_000


@functools.cache
def relay_program() -> str:
    """The program for the node."""
    source = launcher.assemble_modules(Path(launcher.__file__).parent, ("listeners", "relay"))
    return f"{source.decode('ascii')}\nrun_relay()\n"


class Relay:
    """The step on one node, and its connections."""

    def __init__(self, command: OpenCommand, node: str) -> None:
        self.node = node
        self._command = command
        self._errors = bytearray()
        self._draining = asyncio.ensure_future(self._drain())
        self._client: RelayClient | None = None
        self._connections = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, opener: CommandOpener, job: SlurmJob, node: str, python: str) -> Relay:
        """Start the step and wait for its program.

        Raises:
            ConflictError: The job does not run.
            UnreachableError: The controller does not answer, or the program does not start.
        """
        greeting = secrets.token_hex(16)
        argv = [
            *step_arguments(job, node),
            f"--job-name={STEP}",
            "--gres=none",
            "--mpi=none",
            "--chdir=/",
            f"--export=PATH={_PATH}",
            *(python, "-I", "-c", relay_program(), greeting),
        ]
        relay = cls(await opener.open(argv), node)
        try:
            await relay._wait_started(greeting.encode())
        except BaseException:
            await relay.close()
            raise
        return relay

    @property
    def is_alive(self) -> bool:
        """Whether it takes connections, as far as is known."""
        return self._closing is None and self._client is not None and self._client.is_alive

    async def open(self, port: int) -> NodePort:
        """Connect to a port.

        Raises:
            RefusedError: No program of the job's user listens there.
            ChannelClosedError: The step has ended.
        """
        assert self._client is not None
        self._connections += 1
        try:
            channel = await self._client.open(port)
        except PortRefusedError as refusal:
            self.release()
            raise _refusal_error(str(refusal), self.node, port) from refusal
        except BaseException:
            self.release()
            raise
        return NodePort(self, channel, port)

    def release(self) -> None:
        """A connection has ended. Without connections the step ends after a while."""
        self._connections -= 1
        if self._connections == 0:
            loop = asyncio.get_running_loop()
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_later(_LINGER_S if self.is_alive else 0.0, self._close_unused)

    async def close(self) -> None:
        """End the step."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    def _close_unused(self) -> None:
        if self._connections == 0 and self._closing is None:
            self._closing = asyncio.ensure_future(self._close())

    async def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._client is not None:
            await self._client.close()
        await self._command.close()
        self._draining.cancel()
        await asyncio.gather(self._draining, return_exceptions=True)

    async def _wait_started(self, greeting: bytes) -> None:
        stdout, stdin = self._command.process.stdout, self._command.process.stdin
        assert stdout is not None
        assert stdin is not None
        output = bytearray()
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                while len(output) < _MAX_GREETING and (line := await stdout.readline()):
                    if line.strip() == greeting:
                        self._client = RelayClient(stdout, stdin)
                        return
                    output += line
                await self._command.process.wait()
                await asyncio.wait([self._draining], timeout=1)
        except TimeoutError as error:
            raise UnreachableError(
                f"no program could be started on {self.node} within {_START_TIMEOUT_S:.0f} s",
                code="no_step",
                hint="srun needs connections from the nodes to the machine where it runs; see: hpj doctor",
                detail={"node": self.node, "srun": _text(self._errors)},
            ) from error
        raise _start_error(self._command.failure(bytes(output), bytes(self._errors)), self.node)

    async def _drain(self) -> None:
        stderr = self._command.process.stderr
        assert stderr is not None
        while chunk := await stderr.read(_MAX_STDERR):
            self._errors += chunk
            del self._errors[:-_MAX_STDERR]


class NodePort:
    """A connection to a port of a node (see `engines.protocol.PortStream`)."""

    def __init__(self, relay: Relay, channel: Channel, port: int) -> None:
        self._relay: Relay | None = relay
        self._node = relay.node
        self._channel = channel
        self._port = port

    @property
    def alive(self) -> bool:
        """Whether it is open, as far as is known."""
        return self._channel.is_open

    async def read(self, limit: int = 65_536) -> bytes:
        """The next bytes; ``b""`` at the end.

        Raises:
            UnreachableError: The connection was cut.
        """
        try:
            return await self._channel.read(limit)
        except ChannelClosedError as error:
            raise UnreachableError(
                f"the connection to port {self._port} of {self._node} was cut: {error}",
                hint="try again",
                detail={"node": self._node, "port": self._port},
            ) from error

    async def write(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            UnreachableError: The other side has closed the connection.
        """
        try:
            await self._channel.write(data)
        except ChannelClosedError as error:
            raise UnreachableError(
                f"{self._node} closed the connection to its port {self._port}",
                code="port_closed",
                detail={"node": self._node, "port": self._port},
            ) from error

    async def end(self) -> None:
        """Say that no more bytes follow."""
        self._channel.end()

    async def close(self) -> None:
        self._channel.close()
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.release()


class SlurmPorts:
    """Ports and shells of one cluster's runs.

    Args:
        opener: Starts its commands.
        client: Its commands.
        queue: Its queue.
        config: Its configuration.
    """

    def __init__(
        self, opener: CommandOpener, client: SlurmClient, queue: JobQueue, config: SlurmCluster
    ) -> None:
        self._opener = opener
        self._client = client
        self._queue = queue
        self._config = config
        self._relays: dict[tuple[str, int], asyncio.Task[Relay]] = {}

    async def open(self, bundle: BundleReader, node: int, port: int) -> NodePort:
        """Connect to a port of a running run's node.

        Raises:
            ConflictError: The run is not running.
            NotFoundError: The run does not have the node.
            DeniedError: The run is another user's.
            RefusedError: No program of the job's user listens there.
            UnreachableError: The cluster does not answer.
        """
        await self._check(bundle)
        for is_last in (False, True):
            relay = await self._relay(bundle, node)
            try:
                return await relay.open(port)
            except ChannelClosedError as error:  # it ended just now, for example with its attempt
                if is_last:
                    raise UnreachableError(
                        f"the step on {relay.node} has ended", hint="try again"
                    ) from error
        raise AssertionError

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """The shell commands for the run's nodes."""
        await self._check(bundle)
        job, nodes = await self._find(bundle)
        return [
            Shell(
                rank,
                node,
                await self._opener.shell_line([*step_arguments(job, node), "--pty", "bash"]),
            )
            for rank, node in enumerate(nodes)
        ]

    async def close(self) -> None:
        """End all steps."""
        tasks, self._relays = list(self._relays.values()), {}
        for task in tasks:
            if not task.done():
                task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Relay):
                await result.close()

    async def _check(self, bundle: BundleReader) -> None:
        await asyncio.to_thread(bundle.check_own, "open")
        if self._config.transport == "here" and find_studio() is not None:
            raise UnsupportedError(
                "ports and shells need srun, which does not work in a Studio space: the nodes cannot connect to it",
                code="no_srun",
                hint='use a login node: set transport = "ssh" in the configuration of the cluster',
            )

    async def _relay(self, bundle: BundleReader, node: int) -> Relay:
        """The step on a node, started if needed; concurrent callers share it."""
        key = bundle.run_id, node
        task = self._relays.get(key)
        if task is None or (task.done() and not _is_usable(task)):
            task = self._relays[key] = asyncio.ensure_future(self._start(bundle, node))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _start(self, bundle: BundleReader, node: int) -> Relay:
        self._relays = {
            key: task for key, task in self._relays.items() if not task.done() or _is_usable(task)
        }
        job, nodes = await self._find(bundle)
        if node >= len(nodes):
            raise NotFoundError(
                f"the run has no node {node}; it has {len(nodes)}, and the first is 0",
                code="no_such_node",
                detail={"node": node, "nodes": len(nodes)},
            )
        await self._client.wait_turn()
        return await Relay.start(self._opener, job, nodes[node], self._config.python or "python3")

    async def _find(self, bundle: BundleReader) -> tuple[SlurmJob, list[str]]:
        """The run's job, and its nodes by rank."""
        records = await asyncio.to_thread(bundle.read)
        sending = await asyncio.to_thread(read_sending, bundle)
        adopted = sending.adopted if sending is not None else None
        job = _find_job(records, bundle, adopted, await self._queue.own_jobs())
        if job is None or job.state != "RUNNING":
            self._queue.forget()
            snapshot = await self._queue.user_queue.get(0.0)
            job = _find_job(records, bundle, adopted, snapshot)
        if job is None or job.state != "RUNNING":
            state = job.state.lower() if job is not None else "not in the queue"
            raise ConflictError(
                f"the job of {bundle.run_id} is not running; it is {state}",
                code="wrong_state",
                hint="ports are available while a run is running",
                detail={"run_id": bundle.run_id, "state": state},
            )
        return job, _nodes_by_rank(records, expand(job.node_list))


def step_arguments(job: SlurmJob, node: str) -> list[str]:
    """The arguments of srun for a step on one node of a job, beside the others."""
    return [
        "srun",
        f"--jobid={job.job_id}",
        "--overlap",
        f"--nodelist={node}",
        "--nodes=1",
        "--ntasks=1",
    ]


def _find_job(
    records: RunRecords, bundle: BundleReader, adopted: str | None, snapshot: Snapshot
) -> SlurmJob | None:
    """A run's job among those of this user."""
    known = scheduler_id(records, bundle.index)
    jobs = snapshot.by_run.get(records.head.run_id, [])
    if adopted is not None:
        jobs = [job for job in snapshot.jobs if adopted in {job.job_id, job.array_job_id}]
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


def _is_usable(task: asyncio.Task[Relay]) -> bool:
    with contextlib.suppress(HyperpodError, asyncio.CancelledError, OSError):
        return task.result().is_alive
    return False


_REFUSALS = {
    "nothing_listens": (
        "no program",
        "the program may still be starting, or listen on another port",
    ),
    "other_users_port": ("a program of another user", "let your program use another port"),
}
"""The program that listens, and the hint, by the relay's reason."""


def _refusal_error(reason: str, node: str, port: int) -> HyperpodError:
    detail = {"node": node, "port": port}
    if reason in _REFUSALS:
        listener, hint = _REFUSALS[reason]
        return RefusedError(
            f"{listener} listens on port {port} of {node}", code=reason, hint=hint, detail=detail
        )
    return UnreachableError(
        f"port {port} of {node} cannot be reached: {reason}", hint="try again", detail=detail
    )


def _start_error(error: HyperpodError, node: str) -> HyperpodError:
    """The error for a step that did not start."""
    text = error.message.lower()
    if isinstance(error, NotFoundError) or "has expired" in text:
        return ConflictError(
            "the job is not running any more",
            code="wrong_state",
            hint="ports are available while a run is running",
            detail=error.detail,
        )
    if isinstance(error, RefusedError):
        return UnreachableError(
            f"no program could be started on {node}: {error.message}",
            code="no_step",
            hint="it needs python3 there; see the log of the node's slurmd",
            detail=error.detail,
        )
    return error


def _text(data: bytearray) -> str:
    return " ".join(data.decode("utf-8", "replace").split())[-300:]
