"""Pods of a run as processes on this machine, which meet by the files of one bundle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .conftest import NODE_PYTHON, TIMEOUT, kill_processes_with, make_bundle, until


@dataclass
class Pods:
    """The pods of one run.

    Attributes:
        folder: Where bundles and outputs lie.
        nodes: How many nodes the run has.
    """

    folder: Path
    nodes: int = 2
    options: tuple[str, ...] = ()
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    all: list[subprocess.Popen[bytes]] = field(default_factory=list)
    outputs: dict[int, list[Path]] = field(default_factory=dict)

    def shell(self, command: str, **changes: Any) -> Pods:
        """Have the ranks run a shell command."""
        self.bundle = make_bundle(self.folder / "run").shell(command, **changes, nodes=self.nodes)
        return self

    def start(self, *nodes: int, **changes: Any) -> Pods:
        """Start pods; of a node whose pod ran before, a new one."""
        for node in nodes or range(self.nodes):
            count = len(self.outputs.setdefault(node, []))
            path = self.folder / f"out-{node}-{count}"
            self.outputs[node].append(path)
            words = self._words(node, **changes)
            environment = {**os.environ, "POD": self.mark(node)}
            with path.open("wb") as out, self.errors(node, -1).open("wb") as err:
                pod = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
            self.running[node] = pod
            self.all.append(pod)
        return self

    def _words(self, node: int, **changes: Any) -> list[str]:
        return [
            NODE_PYTHON,
            str(self.bundle.folder / "launcher.py"),
            "node",
            f"--node-rank={node}",
            f"--nodes={self.nodes}",
            "--master-addr=127.0.0.1",
            f"--scheduler-id={changes.get('job', 'run-x')}",
            f"--node-name=machine-{node}",
            "--quiet",
            *self.options,
        ]

    def errors(self, node: int, which: int) -> Path:
        """A file with what a pod said on stderr."""
        path = self.outputs[node][which]
        return path.with_name(path.name + ".err")

    def said(self, node: int, which: int = -1) -> str:
        """What a node's pod said to people."""
        return self.errors(node, which).read_text()

    def kill(self, node: int) -> None:
        """End a pod as a node's loss does: all of its processes, without a word."""
        pod = self.running.pop(node)
        pod.kill()
        kill_processes_with(self.mark(node))
        pod.wait()

    def mark(self, node: int) -> str:
        """What all processes of a node's newest pod have in their environment."""
        return f"{self.outputs[node][-1]}."

    def ended(self, patience: float = TIMEOUT) -> list[int]:
        """The exit codes of all pods, once they have ended."""
        return [self.running[node].wait(patience) for node in sorted(self.running)]

    def until_up(self, attempt: int, *nodes: int) -> None:
        """Wait until the ranks of an attempt have said `up`."""
        for node in nodes or range(self.nodes):
            self.bundle.until_said(b"up", node=node, attempt=attempt)

    def observation(self, name: str = "launcher") -> Any:
        """What node 0 wrote down of the meeting."""
        folder = self.bundle.folder / "status" / "observations"
        path = folder / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def until_observed(self, **wanted: Any) -> None:
        """Wait for such a word of node 0's."""

        def there() -> bool:
            seen = self.observation() or {}
            return all(seen.get(key) == value for key, value in wanted.items())

        until(there, f"{wanted}")

    def end_all(self) -> None:
        """Leave nothing behind."""
        for pod in self.all:
            if pod.poll() is None:
                pod.send_signal(signal.SIGCONT)
                pod.kill()
                pod.wait()
