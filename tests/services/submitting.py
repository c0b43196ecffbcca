"""A process that submits when it is told to, through the face that it is told, and dies where it is told."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request, Step


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def by_service(run_id: str, command: str, die_at: str | None) -> str:
    def on_step(step: Step) -> None:
        if step == die_at:
            die()

    spec = parse(JobSpec, {"source": {"kind": "command", "command": command}})
    request = Request(spec, run_id=run_id, base=Path.cwd())
    return asyncio.run(Hyperpod().submitter.submit(request, on_step))


def by_api(run_id: str, command: str) -> str:
    import hyperpod_jlab

    return hyperpod_jlab.submit(command=command, run_id=run_id).run_id


def by_command_line(run_id: str, command: str) -> None:
    from hyperpod_jlab.cli.main import main

    sys.exit(main(["submit", "-c", command, "--run-id", run_id]))


def submit(given: argparse.Namespace) -> None:
    if given.face == "command-line":
        by_command_line(given.run_id, given.command)
    elif given.face == "api":
        print(by_api(given.run_id, given.command))
    else:
        print(by_service(given.run_id, given.command, given.die_at))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("run_id")
    parser.add_argument("command")
    parser.add_argument("--face", default="service")
    parser.add_argument("--die-at")
    parser.add_argument("--die-after", type=float)
    given = parser.parse_args()
    if given.face == "command-line":
        import hyperpod_jlab.cli.main
    elif given.face == "api":
        import hyperpod_jlab.api  # noqa: F401
    print("ready", flush=True)
    sys.stdin.readline()
    if given.die_after is not None:
        threading.Timer(given.die_after, die).start()
    try:
        submit(given)
    except HyperpodError as error:
        print(error.code)
        return error.exit_code
    sys.stdout.flush()
    if given.die_after is not None:
        die()
    return 0


if __name__ == "__main__":
    sys.exit(main())
