"""Arguments and plan."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from .contract import FORMAT, VARIABLE_NAME
from .errors import LauncherError


class NodeArguments(NamedTuple):
    """What the engine says about this node."""

    node_rank: int
    nodes: int
    master_addr: str
    master_port: int
    scheduler_id: str
    incarnation: Optional[str]
    node_name: str
    task: Optional[int]
    quiet: bool
    wait_attempt: float
    max_restarts: int = 0
    time_limit: Optional[float] = None
    patience: float = 3600.0
    return_patience: float = 900.0
    no_signal_codes: bool = False
    instance: Optional[str] = None


Kind = Union[type, Tuple[type, ...]]


def _argument(value: Any, kind: Kind, name: str, path: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise LauncherError("bad_plan", "%s: '%s' is missing or wrong" % (path, name))
    return value


class Plan(NamedTuple):
    """What launch.json says: what to run on each node."""

    run_id: str
    nodes: int
    processes: int
    launcher: str
    python: Optional[str]
    command: List[Any]
    cwd: str
    variables: Dict[str, str]
    secrets: List[str]
    keep_secrets: bool
    setup: Optional[str]
    stop_grace: float
    forward_signals: str
    cpus: Optional[int]
    mlflow: Dict[str, Any]
    environment: Optional[str] = None

    @classmethod
    def load(cls, path: str) -> Plan:
        """Read a plan.

        Raises:
            LauncherError: It is missing, newer than this launcher, or wrong.
        """
        document = cls._document(path)

        def get(name: str, kind: Kind, default: Any = None) -> Any:
            value = document.get(name)
            return default if value is None and default is not None else _argument(value, kind, name, path)

        def maybe(name: str, kind: Kind) -> Any:
            return None if document.get(name) is None else get(name, kind)

        launcher = get("launcher", str)
        plan = cls(
            run_id=get("run_id", str),
            nodes=get("nodes", int, 1),
            processes=1 if launcher == "none" else get("processes_per_node", int, 1),
            launcher=launcher,
            python=maybe("python", str),
            command=get("command", list),
            cwd=get("cwd", str, "work"),
            variables=get("variables", dict, {}),
            secrets=get("secrets", list, []),
            keep_secrets=get("keep_secrets", bool, False),
            setup=maybe("setup", str),
            stop_grace=float(get("stop_grace", (int, float), 10)),
            forward_signals=get("forward_signals", str, "caught"),
            cpus=maybe("cpus", int),
            mlflow=get("mlflow", dict, {}),
            environment=maybe("environment", str),
        )
        plan._check(path)
        return plan

    @staticmethod
    def _document(path: str) -> Dict[str, Any]:
        try:
            with open(path, "rb") as file:
                document = json.loads(file.read().decode("utf-8"))
        except (OSError, ValueError) as error:
            raise LauncherError("bad_plan", "%s cannot be read: %s" % (path, error)) from error
        if not isinstance(document, dict) or not isinstance(document.get("format"), int):
            raise LauncherError("bad_plan", "%s is not a launch plan" % path)
        if document["format"] > FORMAT:
            raise LauncherError(
                "newer_format",
                "the bundle has format %d, this launcher knows %d" % (document["format"], FORMAT),
                hint="the bundle's launcher.py is older than its plan: submit the run again",
                detail={"format": document["format"], "known": FORMAT},
            )
        return document

    def _check(self, path: str) -> None:
        problem = None
        if self.launcher not in ("python", "torchrun", "none"):
            problem = "launcher"
        elif self.forward_signals not in ("caught", "always", "never"):
            problem = "forward_signals"
        elif self.nodes < 1 or self.processes < 1 or self.stop_grace < 0 or self.cpus == 0:
            problem = "nodes, processes_per_node, stop_grace or cpus"
        elif not self.command:
            problem = "command"
        elif not all(VARIABLE_NAME.fullmatch(str(name)) for name in self.secrets):
            problem = "secrets"
        elif not all(isinstance(value, str) for value in self.variables.values()):
            problem = "variables"
        if problem:
            raise LauncherError("bad_plan", "%s: '%s' is wrong" % (path, problem))

    def argv(self, bundle: str, python: str) -> List[str]:
        """What a rank executes."""
        argv = []
        for item in self.command:
            if isinstance(item, str):
                argv.append(item)
            elif isinstance(item, dict) and isinstance(item.get("bundle"), str):
                argv.append(os.path.join(bundle, item["bundle"]))
            elif isinstance(item, dict) and item.get("python") is True:
                argv.append(python)
            else:
                raise LauncherError("bad_plan", "launch.json: a word of 'command' is wrong")
        first = self.command[0]
        is_option = isinstance(first, str) and first.startswith("-")
        is_script = isinstance(first, dict) and argv[0].endswith(".py")
        return [python, *argv] if is_option or is_script else argv
