"""The launcher of hyperpod_jlab: starts the ranks of one node, keeps their logs and records, and ends them.

It is assembled from the modules of hyperpod_jlab.launcher into one file, which each run's bundle holds, and runs on the far side, whatever the orchestrator, under any Python from 3.8 on
and with nothing but the standard library. The bundle's layout and every file that is written here are described in
`docs/bundle-format.md`. Four subcommands:

- ``node``: what an engine starts on each node: once for each attempt, or where no scheduler brings the nodes together, once for all of them.
- ``rank -- ARGV...``: what `node` (or torchrun's agent, then with ``--write-pid``) starts for each rank: it makes the
  rank's log file its stdout and stderr and then becomes ARGV, so that the last byte before a SIGKILL is in the file.
  With ``--keep-output`` it only becomes ARGV: so do the agent and the setup lines die with the launcher, too.
- ``environment``: what `node` starts to find or build the environment that travels with the run.
- ``again``: what a scheduler's script asks after an attempt that failed: may it start the run once more?

Each rank loads this file too, so what the entry doesn't need is imported where it is used, and data classes, which are
slow to make, are left out.

Two ideas carry the rest. The ranks write to files and the launcher only looks at these: nothing that happens to the
launcher's own output can hold a rank up. And one loop (`Node.turn`) waits for signals, children and time; whatever
the launcher waits for, it goes on turning.
"""

from __future__ import annotations

import re
import signal
from typing import Optional

FORMAT = 1
"""Format of the bundles that this launcher understands and of the records that it writes."""

EXIT_FENCED = 85
EXIT_LAUNCHER = 86

HEARTBEAT_VARIABLE = "HYPERPOD_HEARTBEAT"
"""Variable with the path of a file to which the launcher writes signs of life, if a program looks for them there."""

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
WARNING_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)
_FIRST_REAL_TIME = getattr(signal, "SIGRTMIN", None)
STACK_SIGNAL: Optional[int] = None if _FIRST_REAL_TIME is None else int(_FIRST_REAL_TIME) + 8
"""Asks a process that catches it for its stacks; None where there are no real-time signals, as on macOS.

SIGUSR1 and SIGUSR2 are the user's, Slurm's and NCCL's. Of the real-time signals, .NET uses the first and Valgrind the last.
"""
STACK_VARIABLE = "HYPERPOD_STACK_SIGNAL"
HANDLED_SIGNALS = (*STOP_SIGNALS, *WARNING_SIGNALS)
"""What the launcher has handlers for. Whoever starts it may block them: they wait then until it has."""

VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
