"""The guided tour that `make demo` runs: train a small network on two nodes of the embedded cluster, logs in the terminal, then JupyterLab.

With `--finetune` it is the journey of examples/finetune/ instead, and a node is killed on the way (demo_finetune.py).

With `--hyperpod` the cluster is one of HyperPod: a real Slurm behind an AWS API on this machine, seen from a space of Studio that is simulated (demo_hyperpod.py).

The run is an ordinary one in your own storage: `hpj runs` lists it afterwards. The exit code is that of `hpj submit --follow`.
"""

import argparse
import asyncio
import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import demo_finetune
import demo_hyperpod
import demo_lab

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.run_id import new_run_id
from hyperpod_jlab.run.services import Hyperpod

ROOT = Path(__file__).resolve().parent.parent
HPJ = Path(sys.executable).parent / "hpj"
NOTEBOOK = "examples/train_ddp.ipynb"
LOCAL = "local"
FRAMES = "|/-\\"
PLAIN_EVERY = 5.0  # seconds between two lines that say that something still goes on, where there is no terminal
QUIET = 1.0  # seconds of silence before it is said what goes on


class Progress:
    """One line that says what goes on and for how long: redrawn on a terminal, a line now and then in a pipe."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._begin = time.monotonic()
        self._said = self._begin
        self._drawn = False
        self._frame = 0

    def restart(self) -> None:
        """Something else begins."""
        self.clear()
        self._begin = self._said = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the last restart."""
        return time.monotonic() - self._begin

    def show(self, text: str) -> None:
        """Say what goes on."""
        if self._live:
            self._frame += 1
            frame = FRAMES[self._frame % len(FRAMES)]
            self._stream.write(f"\r\x1b[K{frame} {text} ({self.elapsed:.0f} s)")
            self._drawn = True
        elif time.monotonic() - self._said >= PLAIN_EVERY:
            self._said = time.monotonic()
            self._stream.write(f"  ... {text} ({self.elapsed:.0f} s)\n")
        self._stream.flush()

    def clear(self) -> None:
        """Take the line away, before something else is written."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False


def say(text: str = "") -> None:
    """Write a line of the demo's own."""
    print(text, flush=True)


class DemoError(Exception):
    """What keeps the demo from going on, in words."""


def check_torch(progress: Progress) -> str:
    """Import torch in a process of its own; returns its version."""
    progress.restart()
    command = [sys.executable, "-c", "import torch; print(torch.__version__)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                out, err = process.communicate(timeout=0.2)
                break
            if progress.elapsed > QUIET:
                progress.show("importing torch")
    progress.clear()
    if process.returncode != 0:
        last = (err.strip().splitlines() or ["no output"])[-1]
        raise DemoError(f"torch cannot be imported: {last}\nInstall it with: scripts/ensure-torch.sh")
    return out.strip()


class Watcher:
    """What the services say of the cluster and the run, for the progress line."""

    def __init__(self, cluster: str, run_id: str) -> None:
        self._hyperpod = Hyperpod()
        self._cluster = cluster
        self._run_id = run_id

    def taken(self) -> str | None:
        """Who holds the cluster's slots, when none is free."""
        queues = asyncio.run(self._hyperpod.queues(self._cluster))
        if not queues or queues[0].slots_free != 0:
            return None
        jobs = asyncio.run(self._hyperpod.jobs(self._cluster))
        running = [f"{job.name} ({job.run_id})" for job in jobs if job.state == "running"]
        slots = (
            "The only slot of this machine is"
            if queues[0].slots == 1
            else f"All {queues[0].slots} slots of this machine are"
        )
        return f"{slots} in use by {', '.join(running) or 'other runs'}."

    def now(self, *, begun: bool = True) -> str:
        """The run's state in a few words; `begun` when its ranks have written something."""
        try:
            run = asyncio.run(self._hyperpod.runs.get(self._run_id))
        except HyperpodError:
            return "submitting"
        if run.state == "running":
            return run.state if begun else "running: each process imports torch"
        return f"{run.state}: {run.status.reason}" if run.status.reason else run.state


def lines_of(process: subprocess.Popen[bytes]) -> Iterator[tuple[IO[bytes], bytes] | None]:
    """What a process writes, as (stream, bytes), until it has ended; None while it is silent."""
    found: queue.SimpleQueue[tuple[IO[bytes], bytes] | None] = queue.SimpleQueue()

    def read(source: IO[bytes], target: IO[bytes]) -> None:
        for line in source:
            found.put((target, line))
        found.put(None)

    assert process.stdout is not None
    assert process.stderr is not None
    pairs = ((process.stdout, sys.stdout.buffer), (process.stderr, sys.stderr.buffer))
    for pair in pairs:
        threading.Thread(target=read, args=pair, daemon=True).start()
    open_streams = len(pairs)
    while open_streams:
        try:
            item = found.get(timeout=0.25)
        except queue.Empty:
            yield None
            continue
        if item is None:
            open_streams -= 1
        else:
            yield item


def follow(
    command: list[str],
    watcher: Watcher,
    progress: Progress,
    seen: Callable[[bytes], None] = lambda _: None,
    shows: Callable[[bytes], bool] = lambda _: True,
) -> int:
    """Run hpj, pass on what it writes, and say what goes on while it is silent; returns its exit code.

    `seen` is called with each line, after those that `shows` accepts are written.
    """
    progress.restart()
    heard = time.monotonic()
    begun = False
    variables = {**os.environ, "FORCE_COLOR": "1"} if sys.stdout.isatty() else dict(os.environ)
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C comes to us alone, and is passed on once
    ) as process:
        before = signal.signal(signal.SIGINT, lambda *_: process.send_signal(signal.SIGINT))
        for item in lines_of(process):
            if item is None:
                if time.monotonic() - heard > QUIET:
                    progress.show(watcher.now(begun=begun))
                continue
            target, line = item
            if shows(line):
                progress.clear()
                target.write(line)
                target.flush()
            seen(line)
            heard = time.monotonic()
            begun = begun or target is sys.stdout.buffer
        signal.signal(signal.SIGINT, before)
    progress.clear()
    return process.returncode


def next_steps(run_id: str, place: demo_hyperpod.Place | None) -> None:
    """What to try next."""
    steps = [
        ("hpj runs", "your runs, newest first"),
        (f"hpj show {run_id}", "this run: attempts, nodes, paths of its files"),
        (f"hpj logs {run_id} --rank 1", "the log of one rank"),
        ("hpj submit -c 'hostname; nproc' --nodes 2 --follow", "a command, once on each node"),
        ("examples/function.ipynb", "the Python API: a function, its log, its value"),
    ]
    if place is not None:
        steps += [
            ("hpj doctor", "check Studio, AWS, file systems and clusters"),
            ("hpj admin policy", "the IAM policy for this; the space's role has no more"),
            (f"hpj nodes {demo_hyperpod.CLUSTER}", "the nodes, in AWS and in Slurm"),
        ]
        if place.whole is not None:
            steps += [
                (f"hpj admin plan --cluster {cluster} --partition-mode per-user --folders {by}", words)
                for cluster, by, words in _admin_ways(place)
            ]
        if place.kill_kubernetes is not None:
            on_eks = f"--cluster {demo_hyperpod.EKS_CLUSTER}"
            steps.append((f"hpj submit -c hostname {on_eks} --follow", "a run on the other cluster"))
    width = max(len(command) for command, _ in steps)
    say()
    if place is None:
        say("Try next (with .venv/bin on the PATH):")
    else:
        say(f"Try next, in a terminal of JupyterLab or after: . {place.environment}")
    for command, words in steps:
        say(f"  {command:<{width}}  # {words}")
    if place is not None and place.whole is not None:
        say("For admins: the panel's menu opens the Admin page.")
        say(f"There, under More, create folders with the Jupyter server, and set the mount path to {place.whole}")
    if place is not None:
        say("To make a machine fail and be replaced within two minutes, run:")
        for kill in filter(None, (place.kill, place.kill_kubernetes)):
            say(f"  {kill}")


def _admin_ways(place: demo_hyperpod.Place) -> list[tuple[str, str, str]]:
    """Clusters, by whom folders are looked at, and a word on each."""
    ways = [(demo_hyperpod.CLUSTER, "slurm", "the changes that hpj admin apply would make")]
    if place.kill_kubernetes is not None:
        ways.append((demo_hyperpod.EKS_CLUSTER, "kubernetes", "the same, with a Job on the other cluster"))
    return ways


def look_around(place: demo_hyperpod.Place) -> int:
    """Show what AWS knows; returns the exit code of the first command that fails."""
    for words in (
        ["clusters"],
        ["nodes", demo_hyperpod.CLUSTER],
        *([["nodes", demo_hyperpod.EKS_CLUSTER]] if place.kill_kubernetes else []),
        ["storage"],
    ):
        say(f"\n$ hpj {' '.join(words)}")
        code = subprocess.run([str(HPJ), *words], check=False).returncode
        if code != 0:
            return code
    say()
    return 0


def tour(given: argparse.Namespace, place: demo_hyperpod.Place | None = None) -> int:
    """Go through the steps; returns the exit code."""
    progress = Progress(sys.stderr)
    if not HPJ.exists():
        raise DemoError(f"{HPJ} not found; run: make install")
    if place is not None and (code := look_around(place)) != 0:
        return code
    say(f"1. PyTorch: {check_torch(progress)}")
    cluster = LOCAL if place is None else demo_hyperpod.CLUSTER
    run_id = new_run_id()
    watcher = Watcher(cluster, run_id)
    taken = watcher.taken()
    if taken:
        say(f"{taken} The demo's run waits for a free slot. To free one: hpj cancel RUN")
    sizes = [f"--nodes={given.nodes}", f"--processes-per-node={given.processes_per_node}"]
    if place is not None:
        sizes += [f"--queue={demo_hyperpod.QUEUE}", "--time-limit=15m"]
    words = ["submit", NOTEBOOK, *sizes, f"--cluster={cluster}", f"--run-id={run_id}", "--follow"]
    say(f"2. hpj {' '.join(words)}")
    begin = time.monotonic()
    code = follow([str(HPJ), *words], watcher, progress)
    if code == 130:
        say(f"To end the run: hpj cancel {run_id}")
        return code
    say(f"3. {watcher.now()} after {time.monotonic() - begin:.0f} s; the run is {run_id}")
    next_steps(run_id, place)
    if given.no_lab or code not in {0, 1}:
        return code
    return demo_lab.serve() or code


def finetune_tour() -> int:
    """Fine-tune a toy from the base model to its scores; returns the exit code."""
    progress = Progress(sys.stderr)
    say(f"PyTorch: {check_torch(progress)}")
    begin = time.monotonic()

    def submit(words: list[str], kill: demo_finetune.NodeKill) -> int:
        run_id = new_run_id()
        options = ["submit", f"--cluster={LOCAL}", f"--run-id={run_id}", "--follow"]
        say(f"hpj submit {' '.join(words)}")
        command = [str(HPJ), *options, *words]
        watcher = Watcher(LOCAL, run_id)
        return follow(command, watcher, progress, lambda line: kill.seen(run_id, line), kill.shows)

    code = demo_finetune.journey(submit, say)
    say(f"The journey took {time.monotonic() - begin:.0f} s.")
    say("The same as a notebook: examples/finetune/finetune.ipynb. On GPUs: docs/finetune.md")
    return code


def hyperpod_tour(given: argparse.Namespace) -> int:
    """The same on a HyperPod cluster of this machine, which ends with it."""
    missing = demo_hyperpod.what_is_missing()
    if missing is not None:
        raise DemoError(missing)
    say("0. Starting an AWS API, clusters with Slurm and Kubernetes, and a Studio space ...")
    progress = Progress(sys.stderr)
    try:
        with demo_hyperpod.hyperpod_testbed(
            progress.show, kubernetes=not given.no_kubernetes, admin=given.admin
        ) as place:
            progress.clear()
            say(f"Started after {progress.elapsed:.0f} s.")
            if place.without_kubernetes is not None:
                say(f"Kubernetes is left out: {place.without_kubernetes}")
            return tour(given, place)
    except demo_hyperpod.BedError as error:
        raise DemoError(str(error)) from error
    finally:
        progress.clear()
        say("The clusters and everything else of the demo have stopped.")


def main() -> int:
    parser = argparse.ArgumentParser(description="Train a small network on the embedded cluster, and print its logs.")
    parser.add_argument("--no-lab", action="store_true", help="do not start JupyterLab")
    parser.add_argument(
        "--hyperpod",
        action="store_true",
        help="use simulated HyperPod clusters: AWS, Slurm, Kubernetes and Studio on this machine (needs Linux, root, Slurm)",
    )
    parser.add_argument(
        "--finetune",
        action="store_true",
        help="fine-tune a toy language model, through the failure of a node, and evaluate it",
    )
    parser.add_argument(
        "--no-kubernetes", action="store_true", help="with --hyperpod: start only the cluster with Slurm"
    )
    parser.add_argument("--admin", action="store_true", help="with --hyperpod: run as an admin of the Studio domain")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--processes-per-node", type=int, default=2)
    try:
        given = parser.parse_args()
        if given.admin and not given.hyperpod:
            parser.error("--admin can be used only with --hyperpod")
        if given.finetune:
            return finetune_tour()
        return hyperpod_tour(given) if given.hyperpod else tour(given)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except HyperpodError as error:
        print(f"demo: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("\ndemo: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
