"""One attempt of a run on the embedded cluster: N launchers as N process groups, from start to the last process's end."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import socket
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyperpod_jlab.launcher.contract import TAKEN_SIGNALS
from hyperpod_jlab.orchestrators.local.environment import clean_environment
from hyperpod_jlab.orchestrators.local.sweep import end_processes
from hyperpod_jlab.orchestrators.seal import EXIT_UNTRUSTED, Seal, guarded, refusal
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.partition import Partition

_PR_SET_PDEATHSIG = 1
_PORTS = (
    20000,
    32000,
)  # below Linux's ephemeral range, so no outgoing connection takes the port first
_LAUNCHER_SLACK = 1.2

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT

FENCED = 85
"""Exit code of a launcher that found another job's claim."""


def free_port() -> int:
    """A TCP port on loopback that nobody listens on now."""
    for _ in range(200):
        port = random.randrange(*_PORTS)  # noqa: S311 - no secret
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port on loopback")


def _prepare_launcher() -> None:
    """Have the kernel end this process when the supervisor dies (prctl(2)), so nobody runs on unwatched; what comes before it has handlers waits for them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN_SIGNALS)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(frozen=True)
class End:
    """How an attempt ended: the verdict on it, and why, where that says more."""

    verdict: str
    reason: str | None = None


@dataclass
class RunningAttempt:
    """The launchers of one attempt.

    Attributes:
        partition: The partition.
        launcher: SHA-256 of the launcher that may run.
        bundle: The bundle's folder.
        records: The records' folder (the bundle's, or a child's).
        plan: ``launch.json``.
        scheduler_id: The run's id in this engine.
        gpus: Indices of the GPUs that the run holds, shared out evenly over its nodes.
        task: Index of the child in its array, or None.
    """

    partition: Partition
    launcher: str
    bundle: Path
    records: Path
    plan: dict[str, Any]
    scheduler_id: str
    gpus: tuple[int, ...] = ()
    task: int | None = None
    incarnation: str = field(default_factory=lambda: uuid.uuid4().hex)
    started: float = field(default_factory=time.monotonic)
    launchers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Start a launcher for each node."""
        nodes = int(self.plan["nodes"])
        port = free_port()
        path = self.records / "logs" / "supervisor.log"
        with os.fdopen(descent.open_file(path, _APPEND, 0o644), "ab") as log:
            for node in range(nodes):
                self.launchers.append(
                    subprocess.Popen(
                        self._arguments(node, nodes, port),
                        cwd="/",
                        env=self._environment(node, nodes),
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=log,
                        start_new_session=True,
                        preexec_fn=_prepare_launcher,  # noqa: PLW1509 - the supervisor has one thread
                    )
                )

    def running(self) -> bool:
        """Whether a launcher still runs."""
        return any(launcher.poll() is None for launcher in self.launchers)

    def loss(self) -> End | None:
        """What became of launchers that were killed, if any were: they could tell nobody, and their peers may wait for them for hours."""
        codes = [launcher.poll() for launcher in self.launchers]
        killed = {node: -code for node, code in enumerate(codes) if code is not None and code < 0}
        if not killed:
            return None
        nodes = ", ".join(map(str, killed))
        names = ", ".join(sorted({_signal_name(number) for number in killed.values()}))
        words = f"the launcher of node {nodes} was killed ({names})"
        return End("LOST" if len(killed) == len(codes) else "NODE_FAIL", words)

    def outcome(self) -> End:
        """How the attempt ended by itself. Only after its end."""
        codes = [launcher.wait() for launcher in self.launchers]
        if FENCED in codes:
            return End("FENCED")
        if EXIT_UNTRUSTED in codes:
            return End("REFUSED", refusal(self.bundle.name))
        return self.loss() or End("FAILED" if any(codes) else "COMPLETED")

    def warn(self) -> None:
        """Tell the ranks that the time limit is near (SIGUSR2; NCCL may take SIGUSR1 for itself)."""
        self._signal(signal.SIGUSR2)

    def end(self) -> None:
        """End all processes of the attempt: the launchers do it within their grace, else it is done for them."""
        grace = float(self.plan["stop_grace"])
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + grace + _LAUNCHER_SLACK
        while self.running() and time.monotonic() < deadline:
            time.sleep(0.02)
        for launcher in self.launchers:
            if launcher.poll() is None:
                launcher.kill()
        self.sweep()

    def sweep(self) -> None:
        """Kill what the launchers left behind, if anything."""
        end_processes(self.records, 0)

    def _signal(self, number: signal.Signals) -> None:
        for launcher in self.launchers:
            launcher.send_signal(number)

    def _arguments(self, node: int, nodes: int, port: int) -> list[str]:
        seal = Seal(os.getuid(), self.launcher, self.partition.shared)
        root = self.partition.root
        arguments = [
            str(self.plan["python"]),
            *guarded(seal.words(root, self.bundle.relative_to(root))),
            "node",
            f"--node-rank={node}",
            f"--nodes={nodes}",
            "--master-addr=127.0.0.1",
            f"--master-port={port}",
            f"--scheduler-id={self.scheduler_id}",
            f"--incarnation={self.incarnation}",
            f"--node-name=local-{node}",
            "--quiet",
        ]
        if self.task is not None:
            arguments.append(f"--task={self.task}")
        return arguments

    def _environment(self, node: int, nodes: int) -> dict[str, str]:
        share = len(self.gpus) // nodes
        gpus = self.gpus[node * share : (node + 1) * share]
        environment = clean_environment(str(self.plan["python"]), gpus)
        environment["HYPERPOD_RECORDS"] = os.fspath(self.records)
        return environment
