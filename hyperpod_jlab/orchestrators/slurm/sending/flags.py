"""Further sbatch options that a user may give (``slurm.flags``): the valid names, and those that are ours."""

from __future__ import annotations

from collections.abc import Mapping

from hyperpod_jlab.model.errors import InvalidInputError, nearest_hint

PROTECTED: Mapping[str, str] = {
    "array": "it is the spec's array",
    "auto-resume": "it is the spec's auto_resume (--auto-resume), and an option of srun",
    "autocomplete": "it sends nothing",
    "chdir": "a run's folder is its bundle",
    "clusters": "a run goes to the cluster that it names (--cluster)",
    "comment": "it holds the run's id",
    "container": "containers are the spec's image (--image)",
    "container-id": "containers are the spec's image (--image)",
    "container-image": "containers are the spec's image (--image)",
    "container-mounts": "the storage partition is mounted in the run's image (--image)",
    "dependency": "name runs with after (--after)",
    "error": "logs go into the run's bundle",
    "export": "variables are given with --env",
    "export-file": "variables are given with --env",
    "get-user-env": "variables are given with --env",
    "help": "it sends nothing",
    "input": "ranks read nothing",
    "job-name": "it is the spec's name (--name)",
    "nodes": "it is the spec's nodes (--nodes)",
    "ntasks": "there is one task a node, the launcher; processes are the spec's (--processes-per-node)",
    "ntasks-per-node": "there is one task a node, the launcher; processes are the spec's (--processes-per-node)",
    "open-mode": "logs are appended, so that no attempt loses its own",
    "output": "logs go into the run's bundle",
    "parsable": "we read the job's id",
    "quiet": "we read the job's id",
    "signal": "ranks are warned by SIGUSR2 before the time limit",
    "test-only": "use --dry-run",
    "uid": "a run is its sender's",
    "gid": "a run is its sender's",
    "usage": "it sends nothing",
    "version": "it sends nothing",
    "wait": "use --wait",
    "wrap": "the code is the spec's source",
    "account": "it is the spec's account (--account)",
    "partition": "it is the spec's queue (--queue)",
    "qos": "it is the spec's qos (--qos)",
    "time": "it is the spec's time limit (--time-limit)",
    "mem": "it is the spec's memory (--memory)",
    "cpus-per-task": "it is the spec's cpus (--cpus)",
    "priority": "it is the spec's priority (--priority)",
}
"""Options that a field of the spec stands for or that runs rely on, and why they are refused."""

ALLOWED: frozenset[str] = frozenset(
    {
        "acctg-freq", "batch", "bb", "bbf", "begin", "cluster-constraint",
        "consolidate-segments", "constraint", "contiguous", "core-spec", "cores-per-socket", "cpu-freq", "cpus-per-gpu", "deadline",
        "delay-boot", "distribution", "exclude", "exclusive", "extra", "extra-node-info", "gpu-bind",
        "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres",
        "gres-flags", "hint", "hold", "ignore-pbs", "kill-on-invalid-dep", "licenses", "mail-type",
        "mail-user", "mcs-label", "mem-bind", "mem-per-cpu", "mem-per-gpu", "mincpus", "network",
        "nice", "no-kill", "no-requeue", "nodefile", "nodelist", "ntasks-per-core",
        "ntasks-per-gpu", "ntasks-per-socket", "oom-kill-step", "overcommit", "oversubscribe", "power", "prefer",
        "profile", "propagate", "reboot", "requeue", "reservation", "resv-ports", "segment",
        "sockets-per-node", "spread-job", "spread-segments", "stepmgr", "switches", "thread-spec", "threads-per-core",
        "time-min", "tmp", "tres-bind", "tres-per-task", "use-min-nodes", "verbose",
        "wait-all-nodes", "wckey",
    }
)  # fmt: skip
"""Long options of sbatch from 22.05 to 25.11 (man sbatch) that change nothing that runs rely on."""


SWITCHES: frozenset[str] = frozenset(
    {
        "consolidate-segments", "contiguous", "hold", "ignore-pbs", "no-requeue", "overcommit",
        "oversubscribe", "reboot", "requeue", "spread-job", "spread-segments", "stepmgr",
        "use-min-nodes", "verbose",
    }
)  # fmt: skip
"""Those of them that take no value (asked of sbatch itself, 22.05 and 24.11)."""

EITHER: frozenset[str] = frozenset(
    {"exclusive", "nice", "no-kill", "oom-kill-step", "propagate", "resv-ports"}
)
"""Those that may have a value or none."""

LONGEST = 4096
"""Characters of a value: sbatch reads one into 8 KiB (src/sbatch/opt.c, BUFSIZ), and does not look how much there is."""


def check_flags(flags: Mapping[str, str | int | bool]) -> dict[str, str | int | bool]:
    """The flags by their long names, less leading dashes.

    Raises:
        InvalidInputError: One is unknown, protected or given twice, or its value cannot be one.
    """
    checked: dict[str, str | int | bool] = {}
    for given, value in flags.items():
        name = given.removeprefix("--").replace("_", "-")
        if name in PROTECTED:
            raise _refuse(given, f"--{name} cannot be set here: {PROTECTED[name]}", None)
        if name not in ALLOWED:
            raise _refuse(
                given, f"sbatch has no option '--{name[:60]}'", nearest_hint(name[:60], ALLOWED)
            )
        if name in checked:
            raise _refuse(given, f"--{name} is given twice", None)
        checked[name] = _checked_value(given, name, value)
    return checked


def _checked_value(given: str, name: str, value: str | int | bool) -> str | int | bool:
    if name in SWITCHES and not isinstance(value, bool):
        raise _refuse(given, f"--{name} takes no value", "give true or false")
    if value is True and name not in SWITCHES | EITHER:
        raise _refuse(given, f"--{name} needs a value", None)
    text = str(value)
    if not text.strip():
        raise _refuse(given, f"the value of --{name} is empty", None)
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise _refuse(
            given,
            f"the value of --{name} holds a line break or another control character",
            "write it on one line",
        )
    if len(text) > LONGEST:
        raise _refuse(given, f"the value of --{name} is longer than {LONGEST} characters", None)
    return value


def _refuse(given: str, message: str, hint: str | None) -> InvalidInputError:
    return InvalidInputError(
        message, code="invalid_flag", hint=hint, detail={"field": f"slurm.flags.{given[:60]}"}
    )
