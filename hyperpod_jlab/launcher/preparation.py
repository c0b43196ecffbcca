"""What a node does before its ranks start: setup lines, programs, and noting down what went wrong."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import Any, Callable, Dict, Mapping, Sequence

from .bundle_files import AttemptPaths, BundleFiles, Records
from .environment import (
    SETUP,
    anonymous_file,
    find_program,
    launcher_variables,
    mask_secrets,
    node_environment,
    parse_environment,
)
from .errors import LauncherError
from .logs import NodeLog
from .plan import NodeArguments, Plan
from .processes import Child, Children
from .ranks import Launch, RankState
from .streams import Streams
from .system import available_cpus, describe_end
from .tracebacks import ERROR_WINDOW, LoggedError, last_error

TORCH_CHECK = "import importlib.util, sys; sys.exit(3 if importlib.util.find_spec('torch') is None else 0)"

Step = Callable[[str, Sequence[str], Mapping[str, str], str, Sequence[int]], Child]
"""Runs something to its end before the ranks start, while the loop turns: name, words, environment, folder, descriptors."""


class Preparation:
    """Makes a plan into a launch: environment, setup lines, interpreter, and whether this node has what it takes."""

    def __init__(self, attempt_paths: AttemptPaths, arguments: NodeArguments, files: BundleFiles, log: NodeLog) -> None:
        self._attempt_paths = attempt_paths
        self._arguments = arguments
        self._files = files
        self._log = log

    def launch(self, plan: Plan, secrets: Mapping[str, str], children: Children, run_step: Step) -> Launch:
        """Everything that starting the ranks takes.

        Raises:
            LauncherError: Something of it is missing on this node, or the setup lines failed.
            StopRequested: The node was told to stop meanwhile.
        """
        attempt_paths, arguments = self._attempt_paths, self._arguments
        cwd = os.path.join(attempt_paths.bundle, plan.cwd)
        if not os.path.isdir(cwd):
            hint = "the folder must exist on every node"
            raise LauncherError("cwd_missing", "the working folder %s does not exist" % cwd, hint)
        environment = node_environment(plan, attempt_paths, arguments, secrets)
        if plan.environment is not None:
            plan = plan._replace(python=self._use_packages(plan, environment, cwd, run_step))
        if plan.setup is not None and plan.setup.strip():
            environment = self._run_setup(plan.setup, environment, cwd, run_step)
            environment.update(launcher_variables(plan, attempt_paths, arguments))
        cpus = max(1, (plan.cpus or available_cpus()) // plan.processes)
        environment.setdefault("OMP_NUM_THREADS", str(cpus))
        environment["PWD"] = cwd
        python = self._find_python(plan, environment, cwd)
        argv = plan.argv(attempt_paths.bundle, python)
        if find_program(argv[0], environment, cwd) is None:
            hint = "the first word of a command must be a program on the node"
            raise LauncherError("command_missing", "program not found on this node: %s" % argv[0], hint)
        if plan.launcher == "torchrun":
            self._check_torch(python, environment, cwd, run_step)
        return Launch(plan, attempt_paths, arguments, python, argv, cwd, environment, children)

    def _use_packages(self, plan: Plan, environment: Dict[str, str], cwd: str, run_step: Step) -> str:
        """Have the environment that travels with the run, and let `environment` lead to it; its Python."""
        result = anonymous_file()
        try:
            python = self._find_python(plan, environment, cwd)
            launcher = os.path.abspath(__file__)
            argv = [python, "-I", "-X", "utf8", launcher, "environment", str(result)]
            child = run_step("the environment", argv, environment, cwd, [result])
            data = os.pread(result, os.fstat(result).st_size, 0)
        finally:
            os.close(result)
        answer = json.loads(data.decode("utf-8")) if data else {}
        error = answer.get("error")
        if error is not None:
            raise LauncherError(error["code"], error["message"], error["hint"], error["detail"])
        if "path" not in answer:
            end = describe_end(child.exit_code, child.signal)
            hint = "see the node's log"
            raise LauncherError("environment_failed", "the builder of the environment " + end, hint)
        path = answer["path"]
        programs = os.path.join(path, "bin")
        # What the run itself installs is its own: others use the environment too.
        added = os.path.join(self._attempt_paths.records, "packages")
        environment.pop("PYTHONHOME", None)
        environment.update(
            PATH=os.pathsep.join([programs, environment.get("PATH", os.defpath)]),
            VIRTUAL_ENV=path,
            HYPERPOD_ENVIRONMENT=path,
            PIP_TARGET=added,
            PYTHONPATH=os.pathsep.join(filter(None, [added, environment.get("PYTHONPATH")])),
        )
        return os.path.join(programs, "python")

    def _find_python(self, plan: Plan, environment: Mapping[str, str], cwd: str) -> str:
        if plan.python is None:
            return sys.executable
        python = find_program(plan.python, environment, cwd)
        if python is None:
            hint = "set --python to a path that exists on the nodes"
            raise LauncherError("python_missing", "interpreter not found on this node: %s" % plan.python, hint)
        return python

    def _run_setup(self, lines: str, environment: Mapping[str, str], cwd: str, run_step: Step) -> Dict[str, str]:
        """Run the setup lines; the environment that they leave."""
        path = self._attempt_paths.setup_file
        with open(self._files.open(path, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(lines.encode("utf-8", "surrogateescape") + b"\n")
        result = anonymous_file()
        try:
            argv = ["/bin/bash", "-e", "-c", SETUP, "setup", path, str(result)]
            child = run_step("setup", argv, environment, cwd, [result])
            data = os.pread(result, os.fstat(result).st_size, 0)
        finally:
            os.close(result)
        if child.exit_code:
            log = os.path.relpath(self._attempt_paths.node_log, self._attempt_paths.bundle)
            message = "the setup lines failed: bash " + describe_end(child.exit_code, child.signal)
            detail = {"exit_code": child.exit_code, "log": log}
            hint = "see " + log
            raise LauncherError("setup_failed", message, hint, detail, child.exit_code)
        environment_left = parse_environment(data)
        if not environment_left:
            self._log.note("the setup lines returned no environment, so it is unchanged")
        return environment_left or dict(environment)

    def _check_torch(self, python: str, environment: Mapping[str, str], cwd: str, run_step: Step) -> None:
        """See that torchrun can run, before its traceback has to tell."""
        name = "the check for torch"
        child = run_step(name, [python, "-c", TORCH_CHECK], environment, cwd, ())
        if child.exit_code == 3:
            hint = "install torch there, set another --python, or use --launcher python"
            message = "the launcher is torchrun, but %s cannot import torch" % python
            raise LauncherError("torch_missing", message, hint, {"python": python})
        if child.exit_code:
            end = describe_end(child.exit_code, child.signal)
            raise LauncherError("python_failed", "%s does not work: it %s" % (python, end))


class ErrorRecorder:
    """Writes down what failed ranks failed with, from their logs, where the runner in the rank did not."""

    def __init__(self, attempt_paths: AttemptPaths, streams: Streams, records: Records) -> None:
        self._attempt_paths = attempt_paths
        self._streams = streams
        self._records = records

    def record(self, states: Sequence[RankState], secrets: Mapping[str, str]) -> None:
        """Look at the ranks that have ended with something else than 0."""
        for state in states:
            path = self._attempt_paths.rank_error(state.rank)
            if state.exit_code == 0 or state.ended_at is None or os.path.exists(path):
                continue
            stream = self._streams[str(state.local_rank)]
            with contextlib.suppress(OSError):
                stream.poll()
            error = last_error(*stream.tail(ERROR_WINDOW))
            # One whose exit code is unknown, or that was ended, may have got over an error long ago.
            was_signalled = state.exit_code is None or state.signal in (signal.SIGTERM, signal.SIGKILL)
            if error is not None and (error.ends_log or not was_signalled):
                document = self._error_document(state, error, stream.index.time_of(error.offset))
                for name in ("message", "traceback"):
                    document[name] = mask_secrets(document[name], secrets)
                self._records.write_once(path, document)

    def _error_document(self, state: RankState, error: LoggedError, seen_at: float) -> Dict[str, Any]:
        return {
            "time": seen_at,
            "rank": state.rank,
            "node_rank": self._attempt_paths.node_rank,
            "local_rank": state.local_rank,
            "type": error.type,
            "message": error.message,
            "traceback": error.traceback,
            "cell": error.cell,
            "line": error.line,
            "file": error.file,
        }
