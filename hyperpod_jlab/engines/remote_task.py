"""Administrators' tasks: small programs that run as root where the whole file system is mounted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class TaskSettings:
    """An administrator's settings for tasks on a cluster. Each engine supports some of them (see `EngineFactory.task_settings`).

    Attributes:
        mounted_at: The nodes' mount path of the whole file system.
        queue: The jobs' queue.
        namespace: The namespace of the claim; default: the cluster's.
        claim: The claim of the whole file system; default: the cluster's.
        image: The image of the jobs by its digest; default: the cluster's.
    """

    mounted_at: str | None = None
    queue: str | None = None
    namespace: str | None = None
    claim: str | None = None
    image: str | None = None


class RemoteTask(Protocol):
    """Runs programs.

    Attributes:
        root: The mount path of the whole file system where they run.
        result_dir: The file system's folder in which a program leaves its result as a file; None if it
            prints the result.
    """

    @property
    def root(self) -> str: ...

    @property
    def result_dir(self) -> str | None: ...

    async def run(self, program: str, name: str) -> str:
        """Run a Python program (3.8 or later, standard library only) to its end; returns its result, which may be truncated.

        Args:
            program: Its source: plain ASCII.
            name: A unique name of lower-case letters and digits, for the result's file.

        Raises:
            HyperpodError: The program was not run, or failed.
        """
        ...


class RemoteTasks(Protocol):
    """The tasks of one cluster, run as its jobs."""

    def task(self, settings: TaskSettings) -> RemoteTask:
        """A task runner for these settings.

        Raises:
            InvalidInputError: A setting is missing or invalid.
        """
        ...

    async def find_uid(self, name: str) -> int | None:
        """The uid of a user on the cluster; None if the user does not exist.

        Raises:
            UnsupportedError: The uid cannot be determined from this machine.
        """
        ...
