"""Tasks of administrators: small programs that run as root where the whole file system is mounted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class TaskSettings:
    """What an administrator says of tasks on a cluster. Each engine knows some of it (see `EngineKind.task_settings`).

    Attributes:
        mounted_at: Where the nodes have the whole file system.
        queue: The queue of the jobs.
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
        root: Where the whole file system is mounted there.
        reply: The folder of the file system in which a program leaves its answer as a file; None: it prints it.
    """

    @property
    def root(self) -> str: ...

    @property
    def result_dir(self) -> str | None: ...

    async def run(self, program: str, name: str) -> str:
        """Run a Python program (3.8 or later, standard library) to its end; its answer, which may be less than all of it.

        Args:
            program: Its text: plain ASCII.
            name: A new name, of small letters and digits: the answer's file.

        Raises:
            HyperpodError: It was not run, or has failed.
        """
        ...


class RemoteTasks(Protocol):
    """The tasks of one cluster, as its jobs."""

    def task(self, settings: TaskSettings) -> RemoteTask:
        """What runs them.

        Raises:
            InvalidInputError: Something is missing or wrong in the settings.
        """
        ...

    async def find_uid(self, name: str) -> int | None:
        """The number of a user of the cluster; None where there is no such user.

        Raises:
            UnsupportedError: It cannot be known from here.
        """
        ...
