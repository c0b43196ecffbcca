"""A scheduler of the testbed behind a HyperPod cluster: each of its machines is an instance.

A machine that goes away is an instance that failed; the replacement's machine is started again, under a new instance id. What a scheduler's
machines are, and how they are looked at, is in `slurm_bed` and `kubernetes_bed`.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.aws.endpoint import Endpoint
from testbed.aws.lifecycle import Lifecycle, Timings
from testbed.aws.state import Cluster, Node

GROUP = "worker-group-1"
"""The instance group of the machines."""

MESSAGE = "The instance does not respond."
"""AWS' sentence on an instance whose machine went away."""

_ENVIRONMENT = dict(os.environ)
"""As it is before a test or the demo gives this process another cache folder: what a testbed is built of lies in the user's own."""

_PAUSE = 0.2
"""Seconds between two looks at the machines."""
_TIMEOUT = 150
"""Seconds that a testbed may take for an order: its own limit for each of several waits is 60."""


class BedError(Exception):
    """The testbed does not do what it is told, in its own words."""


def order(script: Path, folder: Path, command: str, *words: str, variables: Mapping[str, str] | None = None) -> str:
    """Run a command of a testbed's script; returns what it prints.

    Args:
        script: The script.
        folder: The testbed's folder.
        command: The command.
        words: Its arguments after the folder.
        variables: Variables of its environment.

    Raises:
        BedError: It fails, or takes too long.
    """
    try:
        done = subprocess.run(
            [script, command, folder, *words],
            env={**_ENVIRONMENT, **(variables or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BedError(f"{script.name} {command}: not done after {_TIMEOUT} s") from error
    if done.returncode != 0:
        raise BedError(f"{script.name} {command} {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Attached(ABC):
    """The machines of a testbed as those of a HyperPod cluster, while it is entered.

    Args:
        endpoint: The account's endpoint.
        cluster: The cluster, with a node in `GROUP` for each machine.
        timings: How long things take.
    """

    def __init__(self, endpoint: Endpoint, cluster: Cluster, timings: Timings | None) -> None:
        self.endpoint = endpoint
        self.cluster = cluster
        self.lifecycle = Lifecycle(endpoint.account.timeline, cluster, timings, self)
        self.problems: list[str] = []
        """What the testbed refused to do."""
        self._orders: queue.SimpleQueue[tuple[str, Node]] = queue.SimpleQueue()
        self._up: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        # Who is up from the first is known from the first: a machine that goes away a moment later has failed.
        self._up = {node.instance_id for node in self._running() if self.is_up(node)}
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def start(self, node: Node) -> None:
        """Start a node's machine, soon."""
        self._orders.put(("start", node))

    def stop(self, node: Node) -> None:
        """End a node's machine and what runs there, soon."""
        self._orders.put(("stop", node))

    # ------------------------------------------------------------------------------ what the schedulers differ in

    @abstractmethod
    def is_up(self, node: Node) -> bool:
        """Whether a node's machine does its work."""

    @abstractmethod
    def switch_on(self, node: Node) -> None:
        """Start a node's machine.

        Raises:
            BedError: It does not come up.
        """

    @abstractmethod
    def switch_off(self, node: Node) -> None:
        """End a node's machine, if it is there.

        Raises:
            BedError: It does not end.
        """

    @abstractmethod
    def tell(self) -> None:
        """Bring to the scheduler what AWS tells it of the nodes, and to AWS what the scheduler asks for. Called again and again."""

    # ------------------------------------------------------------------------------ the watching thread

    def _watch(self) -> None:
        while not self._over.wait(_PAUSE):
            self._obey()
            self.tell()
            with self.endpoint.changing():
                for node in self._running():
                    self._look_at(node)

    def _running(self) -> list[Node]:
        nodes = self.cluster.nodes
        return [node for node in nodes if node.group == GROUP and node.status == "Running"]

    def _obey(self) -> None:
        while not self._orders.empty():
            command, node = self._orders.get()
            try:
                (self.switch_on if command == "start" else self.switch_off)(node)
            except BedError as error:
                self.problems.append(str(error))
                if command == "start":
                    with self.endpoint.changing():
                        self.lifecycle.fail(node, "Lifecycle scripts did not run successfully.")

    def _look_at(self, node: Node) -> None:
        if self.is_up(node):
            self._up.add(node.instance_id)
        elif node.instance_id in self._up:  # else it has not come up yet
            self._up.discard(node.instance_id)
            self.lifecycle.fail(node, MESSAGE)
