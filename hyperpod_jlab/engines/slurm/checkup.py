"""``hpj doctor`` checks for a Slurm cluster: commands, controller, clocks, user, storage partition on the login node, and whether a queue accepts a job."""

from __future__ import annotations

import os
import re
import time

from hyperpod_jlab.core.check import CheckResult, CheckStep, fail, from_error, ok, unknown, warn
from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.facts import ClusterFacts, HostFacts
from hyperpod_jlab.engines.slurm.preflight import storage_findings
from hyperpod_jlab.storage.partition import Partition, PathMap

CONTROLLER = "controller"
"""The id of the step that checks whether the controller answers."""

_CLIENT = "slurm-client"

_TIMEOUT = 70.0
"""Timeout in seconds for the controller; without munge, a Slurm command gives up after 49 s."""

_SKEW = 60.0
"""Allowed clock difference in seconds. munge allows 300, but times in lists look wrong before that."""

_VERSION = re.compile(r"\b(\d{2}\.\d{2})(\.\S+)?")
_RELEASES = ("22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11")
"""A client may have the controller's release or one of the two before it (Slurm's upgrade guide)."""

_SCRIPT = b"#!/bin/sh\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --time=1\ntrue\n"
"""The smallest job, used to test whether a queue accepts one."""


class SlurmCheckup:
    """Checks one cluster.

    Args:
        name: The cluster's name in the configuration.
        config: Its configuration.
        client: Its commands.
        facts: Cached facts about it.
        partition: The storage partition.
        paths: The partition's paths on this machine and on the nodes.
    """

    def __init__(
        self,
        name: str,
        config: SlurmCluster,
        client: SlurmClient,
        facts: ClusterFacts,
        partition: Partition,
        paths: PathMap,
    ) -> None:
        self._name = name
        self._config = config
        self._client = client
        self._facts = facts
        self._partition = partition
        self._paths = paths
        self._version: str | None = None

    def steps(self) -> list[CheckStep]:
        """The steps, in order."""
        name = self._name
        first, second = (f"{_CLIENT}:{name}",), (f"{CONTROLLER}:{name}",)
        steps = [
            CheckStep(_CLIENT, "Slurm's commands", "scheduler", self._commands, (), name, 45),
            CheckStep(CONTROLLER, "controller", "scheduler", self._controller, first, name, _TIMEOUT),
            CheckStep("identity", "identity", "identity", self._identity, second, name),
            CheckStep("queue", "queues", "queue", self._queues, second, name),
        ]
        if self._config.transport == "ssh":  # on this machine there is no other side to check from
            steps[2:2] = [
                CheckStep("clock", "clock", "scheduler", self._clock, first, name),
                CheckStep("far-side", "partition on", "partition", self._remote_folder, first, name),
            ]
        return steps

    async def _commands(self) -> CheckResult:
        """Check that the commands exist and, over ssh, that a login node accepts the connection."""
        output = await self._client.run(["scontrol", "--version"])
        if output.code != 0:
            message = " ".join((output.err or output.out).split())[:200]
            return fail(
                f"scontrol cannot be run: {message}",
                "set `commands` in the configuration of the cluster to the folder of the Slurm commands",
            )
        match = _VERSION.search(output.out)
        self._version = match[1] if match else None
        location = "on a login node" if self._config.transport == "ssh" else "on this machine"
        message = f"{' '.join(output.out.split())} {location}"
        notes = self._client.transport.notes
        return warn("; ".join((message, *notes)), "check the login nodes") if notes else ok(message)

    async def _controller(self) -> CheckResult:
        try:
            text = await self._client.query(["scontrol", "show", "config"])
        except UnreachableError as error:  # its causes include munge and clock differences
            return from_error(error, "fail", "admin")
        pinged = await self._client.run(["scontrol", "ping"])
        values = _values(text)
        message = " ".join(pinged.out.split()) or "it answers"
        version = values.get("SLURM_VERSION", "")
        message = f"{message}; Slurm {version}, cluster {values.get('ClusterName', '')}, {values.get('AuthType', '')}"
        problem = _versions_apart(self._version, version)
        if problem is not None:
            return warn(f"{message}; {problem}", "install the version of the controller here", "admin")
        return ok(message)

    async def _clock(self) -> CheckResult:
        """Compare a login node's clock with this machine's; the controller's clock shows only in munge errors."""
        sent_at = time.time()
        output = await self._client.transport.run(["date", "+%s"])
        received_at = time.time()
        if not output.out.strip().isdecimal():
            return unknown("the time of the login node is unknown")
        remote_time = int(output.out)
        drift = remote_time - received_at if remote_time > received_at else min(0.0, remote_time + 1 - sent_at)
        if abs(drift) > _SKEW:
            direction = "ahead of" if drift > 0 else "behind"
            message = f"the clock of the login node is {abs(drift):.0f} s {direction} this machine's"
            return warn(message, "synchronize the clocks with NTP; munge allows at most 300 s", "admin")
        return ok("the login node has the same time as this machine")

    async def _identity(self) -> CheckResult:
        host_facts = await self._facts.probe()
        user_text = f"{host_facts.user or 'a user without a name'} (uid {host_facts.uid}) there, uid {os.getuid()} here"
        if not host_facts.user:
            return fail(
                f"{user_text}: a uid without a user name has no account",
                "create the user where the Slurm commands run (passwd, LDAP)",
                "admin",
            )
        try:
            settings, accounts = await self._facts.settings(), await self._facts.accounts()
        except UnreachableError as error:
            return warn(f"{user_text}; its accounts could not be read: {error.message}")
        if accounts is None:
            return ok(f"{user_text}; the cluster has no accounting")
        if accounts.names:
            return self._uid_result(f"{user_text}; accounts: {', '.join(accounts.names)}", host_facts)
        fix = f"sacctmgr add user {host_facts.user} account=ACCOUNT cluster={settings.cluster}"
        if "associations" in settings.enforced:
            return fail(f"{user_text}; it has no account, but the cluster requires one", fix, "admin")
        return ok(f"{user_text}; it has no account, and the cluster requires none")

    def _uid_result(self, message: str, host_facts: HostFacts) -> CheckResult:
        if host_facts.uid in {os.getuid(), None}:
            return ok(message)
        return ok(f"{message}; runs are shared with that uid")

    async def _remote_folder(self) -> CheckResult:
        """How the login node sees the storage partition."""
        findings = await storage_findings(self._facts, self._partition, self._paths)
        if findings:
            return fail("; ".join(finding.message for finding in findings), findings[0].hint)
        return ok(f"{self._paths.remote} there is {self._paths.local} here, and runs can be written")

    async def _queues(self) -> CheckResult:
        limits = await self._facts.limits()
        if not limits:
            return fail("there are no queues", "add a partition", "admin")
        states = ", ".join(
            f"{queue.name}{' (default)' if queue.default else ''} {queue.available}" for queue in limits.values()
        )
        first_error: HyperpodError | None = None
        usable_queues = [queue for queue in limits.values() if queue.available == "up" and queue.nodes]
        for queue in sorted(usable_queues, key=lambda queue: not queue.default)[:5]:
            flag = f"#SBATCH --partition={queue.name}\n".encode()
            script = _SCRIPT.replace(b"#SBATCH", flag + b"#SBATCH", 1)
            error = await self._facts.dry_run(script)
            if error is None:
                return ok(f"{states}; {queue.name} accepts a job of one task (sbatch --test-only)")
            first_error = first_error or error
        if first_error is not None:
            return fail(f"{states}; no queue accepts a job: {first_error.message}", first_error.hint, "admin")
        return fail(f"{states}: no queue is up", "scontrol update PartitionName=NAME State=UP", "admin")


def _values(text: str) -> dict[str, str]:
    """Names and values from ``scontrol show config``."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def _versions_apart(client: str | None, controller: str) -> str | None:
    """Why the client's and controller's releases are incompatible; None when they are compatible or one is unknown."""
    match = _VERSION.search(controller)
    remote_time = match[1] if match else None
    if client not in _RELEASES or remote_time not in _RELEASES:
        return None
    releases_behind = _RELEASES.index(remote_time) - _RELEASES.index(client)
    if releases_behind < 0:
        return f"the commands here are newer ({client}), which Slurm does not allow"
    if releases_behind > 2:
        return f"the commands here are {releases_behind} releases older ({client}); Slurm allows two"
    return None
