"""Starting a supervisor so that it outlives whatever starts it.

A Jupyter kernel ends all its descendants when it shuts down, so the supervisor must not be one: a small process in between starts a session of its own,
forks and ends, and its child (now a child of init) becomes the supervisor. No descriptor of ours is passed on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from hyperpod_jlab.model.errors import InternalError
from hyperpod_jlab.orchestrators.local.trust import launcher_digest
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.atomic import storage_errors
from hyperpod_jlab.storage.processes import this_process
from hyperpod_jlab.storage.records import BundleReader

# Who the child is gets written down before it may go, so that whoever started it can tell from then on that it lives or died: its number and start
# time stay the same through exec. When it cannot be written the child ends. An owner that is there already is left alone: this child will then
# find the place taken.
_DETACH = """
import os, sys
os.setsid()
folder, record, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
os.set_inheritable(folder, False)
word, go = os.pipe()
child = os.fork()
if child == 0:
    os.close(go)
    if os.read(word, 1) != b"1":
        os._exit(1)
    os.close(word)
    os.chdir("/")
    os.execv(command[0], command)
with open("/proc/%d/stat" % child, errors="replace") as stat:
    start = stat.read().rpartition(")")[2].split()[19]
mine = "owner.json." + str(child) + ".tmp"
try:
    file = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
    with open(file, "w") as file:
        file.write(record % (child, int(start)))
    os.link(mine, "owner.json", src_dir_fd=folder, dst_dir_fd=folder)
except FileExistsError:
    pass
finally:
    os.unlink(mine, dir_fd=folder)
os.write(go, b"1")
os._exit(0)
"""


def spawn_supervisor(bundle: BundleReader, *, folder: Path, slots: int) -> None:
    """Start the supervisor of a run; one that is there already makes this one end by itself.

    Raises:
        DeniedError: The run is another user's.
        StorageError: The bundle is not this user's, or cannot be written to; nothing was started.
        InternalError: No process could be started.
    """
    bundle.check_own("submit")
    python = sys.executable
    command = [python, "-P", "-m", "hyperpod_jlab.orchestrators.local.supervisor"]
    partition = bundle.partition
    command += [str(partition.root), bundle.run_id, f"--folder={folder}", f"--slots={slots}"]
    command.append(f"--launcher={launcher_digest(partition, bundle.folder)}")
    command += ["--shared"] if partition.shared else []
    log = bundle.folder / "logs" / "supervisor.log"
    status = bundle.records / "status"
    with storage_errors(log):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        errors = os.fdopen(descent.open_file(log, flags, bundle.file_mode), "ab")
    try:
        with errors, descent.opened_folder(status) as opened:
            subprocess.run(
                [python, "-I", "-S", "-c", _DETACH, str(opened), _owner_template(), *command],
                pass_fds=(opened,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=_environment(),
                check=True,
                timeout=60,
            )
    except (OSError, subprocess.SubprocessError) as error:
        _check_writable(status)
        raise InternalError(
            "the run's supervisor could not be started",
            code="no_supervisor",
            hint=f"see {log}",
            detail={"error": str(error)},
        ) from error


def _check_writable(folder: Path) -> None:
    """Tell a full or read-only partition from other reasons.

    Raises:
        StorageError: Nothing can be written there.
    """
    probe = folder / f".probe-{os.getpid()}"
    with storage_errors(folder):
        descent.replace(probe, b"x")
        descent.unlink(probe)


def _owner_template() -> str:
    """The owner's record as JSON, with the process number and start time left open."""
    record = this_process(heartbeat=time.time()).model_dump()
    del record["pid"], record["start_time"]
    text = json.dumps(record).replace("%", "%%")
    return text[:-1] + ', "pid": %d, "start_time": %d}'


def _environment() -> dict[str, str]:
    """What the supervisor needs of this process's environment; runs inherit none of it."""
    kept = ("HOME", "PATH", "LANG", "TMPDIR", "PYTHONPATH", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    return {name: os.environ[name] for name in kept if name in os.environ}
