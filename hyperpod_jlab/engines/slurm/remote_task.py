"""An errand: a small program that runs once as root on a node, as a job of its own, and leaves its answer on the file system.

The job is its sender's. Where that is not root it becomes root by ``sudo -n``, as HyperPod's user may. Why a file: from a Studio space ``srun`` does not work,
for it needs ports of the space that nodes can reach, and what a job prints may lie where its sender cannot write.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import stat
import time
from pathlib import Path, PurePosixPath

from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.engines.remote_task import TaskSettings
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.jobs import SlurmJob
from hyperpod_jlab.storage.owners import find_uid
from hyperpod_jlab.storage.partition import PathMap

TIMEOUT = 600.0
"""Seconds until a job that waits or runs is taken back."""

_MINUTES = 5
_MAX_PROGRAM_BYTES = 64 * 1024 * 1024
"""Bytes of an answer at most."""

_QUEUE_TTL_S = 20.0
"""Seconds in which a file that a node has closed is seen by other machines: NFS keeps what it knew of a folder for up to 60, Lustre for none."""

_EXIT_NO_PYTHON, _EXIT_NO_ROOT, _EXIT_NO_REPLY = 86, 87, 88
_EXIT = re.compile(r"\bExitCode=([0-9]+):([0-9]+)")
_END_MARKER = "hpj-end-of-program"

_SCRIPT = f"""\
#!/bin/sh
# Made by hyperpod_jlab: a program that looks at folders of the file system or makes them, and writes down what came of it.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
command -v python3 >/dev/null || exit {_EXIT_NO_PYTHON}
as=
if [ "$(id -u)" -ne 0 ]; then
  sudo -n true || exit {_EXIT_NO_ROOT}
  as='sudo -n'
fi
exec $as python3 -I - <<'{_END_MARKER}'
"""


NODE_ROOT = "/fsx"
"""Where HyperPod's life cycle scripts mount the cluster's file system, if AWS tells of no other place."""

RESULT_FOLDER = ".hyperpod-folders"
"""The folder in which jobs leave their answers."""


class SlurmTaskRunner:
    """Runs programs as jobs.

    Args:
        client: Slurm's commands.
        root: Where the nodes have the whole file system.
        result_dir: The folder of the file system for answers, such as ``/.hyperpod-folders``.
        result_folder: That folder as this machine sees it; None: the machine with Slurm's commands is asked, which has the file system where nodes have it.
        queue: The partition of the jobs; None: the default one.
        timeout: Seconds until a job is taken back.
    """

    def __init__(
        self,
        client: SlurmClient,
        root: str,
        result_dir: str,
        result_folder: Path | None = None,
        *,
        queue: str | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self.root = root
        self.result_dir = result_dir
        self._client = client
        self._result_folder = result_folder
        self._queue = queue
        self._timeout = timeout

    async def run(self, program: str, name: str) -> str:
        """Run a program that leaves its answer as a file of this name (see `engines.remote_task.RemoteTask`).

        Raises:
            DeniedError: The job's user may not act as root.
            RefusedError: Slurm takes no such job, or it failed.
            UnreachableError: Slurm does not answer, the job did not start in time, or its answer is not to be seen.
        """
        if _END_MARKER in program.splitlines():
            raise ValueError("the program holds the mark of its end")
        script = f"{_SCRIPT}{program}\n{_END_MARKER}\n".encode("ascii")
        job = await self._client.sbatch(script, self._options(name))
        has_ended = False
        try:
            state = await self._wait_for_end(job)
            has_ended = True
        finally:
            if not has_ended:
                with contextlib.suppress(HyperpodError):
                    await self._client.scancel(job)
        if state not in {"COMPLETED", None}:
            raise await self._failed(job, state)
        return await self._read_result(name)

    def _options(self, name: str) -> list[str]:
        options = [
            f"--job-name={name}",
            "--nodes=1",
            "--ntasks=1",
            "--cpus-per-task=1",
            "--mem=256M",
            f"--time={_MINUTES}",
            "--chdir=/",
            "--output=/dev/null",
            "--error=/dev/null",
            "--export=NONE",
            "--no-requeue",
        ]
        return options if self._queue is None else [*options, f"--partition={self._queue}"]

    async def _wait_for_end(self, job: str) -> str | None:
        """Wait for a job's end; its state, None when Slurm has forgotten it."""
        deadline, pause_s = time.monotonic() + self._timeout, 0.3
        job_row: SlurmJob | None = None
        while time.monotonic() < deadline:
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 3.0)
            try:
                job_row = next(iter(await self._client.squeue([f"--jobs={job}"])), None)
            except NotFoundError:
                return None
            except UnreachableError:
                continue  # the controller may be back before our patience ends
            if job_row is None or job_row.is_ended:
                return job_row.state if job_row else None
        state_text = f"{job_row.state}, {job_row.reason}" if job_row else "not visible"
        raise UnreachableError(
            f"the folder job {job} did not end within {self._timeout:.0f} s ({state_text}) and was cancelled",
            code="job_did_not_end",
            hint="check why it waited, or use a queue with free nodes: --queue",
            detail={"job": job},
        )

    async def _failed(self, job: str, state: str | None) -> HyperpodError:
        """The error for a job that came to another end than a good one."""
        code = None
        with contextlib.suppress(HyperpodError):
            match = _EXIT.search(await self._client.scontrol("show", "job", job))
            code = int(match[1]) if match else None
        if code == _EXIT_NO_ROOT:
            return DeniedError(
                f"the user of the job {job} cannot become root (sudo -n)",
                code="no_root",
                hint="log in as root or as the ubuntu user of HyperPod, or run this on a node as root: --folders here --mounted-at",
                detail={"job": job},
            )
        exit_messages = {
            _EXIT_NO_PYTHON: "the node has no python3",
            _EXIT_NO_REPLY: f"its answer could not be written to {self.root}{self.result_dir}",
        }
        hint = "run this again; finished steps are not repeated"
        if code == _EXIT_NO_REPLY:
            hint = "check that nodes mount the whole file system there (--mounted-at), and that root owns the folder"
        state_text = exit_messages.get(code or 0, f"{state}, exit code {code}")
        return RefusedError(
            f"the folder job {job} failed: {state_text}",
            code="job_failed",
            hint=hint,
            detail={"job": job, "state": state, "exit_code": code},
        )

    async def _read_result(self, name: str) -> str:
        end = time.monotonic() + _QUEUE_TTL_S
        while True:
            result = await self._read(name)
            if result is not None:
                return result
            if time.monotonic() > end:
                location = self._result_folder or f"{self.root}{self.result_dir} on the login node"
                raise UnreachableError(
                    f"the answer about the folders is not visible in {location}",
                    code="no_answer",
                    hint="run this where the file system is mounted, or through a login node that mounts it",
                )
            await asyncio.sleep(0.5)

    async def _read(self, name: str) -> str | None:
        if self._result_folder is None:
            path = f"{self.root.rstrip('/')}{self.result_dir}/{name}"
            output = await self._client.transport.run(["/bin/cat", path])
            return output.out if output.code == 0 else None
        return await asyncio.to_thread(read_result_file, self._result_folder / name)


def read_result_file(file: Path) -> str | None:
    """What stands in a file of answers; None: it is not there yet. What users may have put in its place is not followed or waited for.

    Raises:
        UnreachableError: It cannot be read, or is no file.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(file, flags), "rb") as file_object:
            if not stat.S_ISREG(os.fstat(file_object.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            return file_object.read(_MAX_PROGRAM_BYTES).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreachableError(
            f"the answer about the folders cannot be read: {error.strerror}", code="no_answer"
        ) from error


class SlurmTasks:
    """Tasks of administrators as jobs of one cluster.

    Args:
        client: Its commands.
        config: Its configuration.
        paths: The storage partition here and there.
    """

    def __init__(self, client: SlurmClient, config: SlurmCluster, paths: PathMap) -> None:
        self._client = client
        self._config = config
        self._paths = paths

    def task(self, settings: TaskSettings) -> SlurmTaskRunner:
        """Tasks whose answers are read where this machine or the login node has the file system.

        Raises:
            InvalidInputError: This machine runs Slurm's commands, and has nothing of the file system.
        """
        root = settings.mounted_at or NODE_ROOT
        if not root.startswith("/"):
            raise InvalidInputError(
                f"the mount point on the nodes must be an absolute path, not '{root[:60]}'",
                detail={"field": "mounted_at"},
            )
        result_dir, result_folder = f"/{RESULT_FOLDER}", None
        if self._config.transport == "here":
            paths = self._paths
            if paths.remote.is_relative_to(root) and Path(paths.local).is_dir():
                result_dir = str(
                    PurePosixPath("/") / paths.remote.relative_to(root) / RESULT_FOLDER
                )
                result_folder = Path(paths.local) / RESULT_FOLDER
            elif Path(root).is_dir():
                result_folder = Path(root) / RESULT_FOLDER
            else:
                raise InvalidInputError(
                    f"this machine does not mount what nodes have at {root}, so it cannot read their answer",
                    code="no_common_folder",
                    hint="set storage of the cluster in the configuration to its partition there, or use ssh to a login node",
                    detail={"field": "mounted_at"},
                )
        return SlurmTaskRunner(self._client, root, result_dir, result_folder, queue=settings.queue)

    async def find_uid(self, name: str) -> int | None:
        """As the machine with Slurm's commands says."""
        if self._config.transport == "here":
            return await asyncio.to_thread(find_uid, name)
        output = await self._client.transport.run(["/usr/bin/id", "-u", "--", name])
        output_text = output.out.strip()
        return int(output_text) if output.code == 0 and output_text.isdecimal() else None
