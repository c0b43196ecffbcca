"""``hpj doctor`` on a Slurm cluster: the commands, the controller, clocks, who this is there, the partition from there, and a queue that takes a job."""

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
"""The step on whether the controller answers."""

_CLIENT = "slurm-client"

_TIMEOUT = 70.0
"""Seconds for the controller: without munge a command of Slurm's gives up after 49 s."""

_SKEW = 60.0
"""Seconds that clocks may differ; munge takes 300, and times in lists are odd before that."""

_VERSION = re.compile(r"\b(\d{2}\.\d{2})(\.\S+)?")
_RELEASES = ("22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11")
"""A client may be of the controller's release or of the two before it (Slurm's upgrade guide)."""

_SCRIPT = b"#!/bin/sh\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --time=1\ntrue\n"
"""The smallest job: what is asked for when a queue is asked whether it would take one."""


class SlurmCheckup:
    """Looks at one cluster.

    Args:
        name: Its name in the configuration.
        config: Its configuration.
        client: Its commands.
        facts: What is known of it.
        partition: The storage partition.
        paths: The partition here and there.
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
        """The steps in order."""
        name = self._name
        first, second = (f"{_CLIENT}:{name}",), (f"{CONTROLLER}:{name}",)
        steps = [
            CheckStep(_CLIENT, "Slurm's commands", "scheduler", self._commands, (), name, 45),
            CheckStep(
                CONTROLLER, "controller", "scheduler", self._controller, first, name, _TIMEOUT
            ),
            CheckStep("identity", "identity", "identity", self._identity, second, name),
            CheckStep("queue", "queues", "queue", self._queues, second, name),
        ]
        if self._config.transport == "ssh":  # on this machine there is no other side to look from
            steps[2:2] = [
                CheckStep("clock", "clock", "scheduler", self._clock, first, name),
                CheckStep("far-side", "partition on", "partition", self._far_side, first, name),
            ]
        return steps

    async def _commands(self) -> CheckResult:
        """The commands are there; over ssh a login node lets us in."""
        output = await self._client.run(["scontrol", "--version"])
        if output.code != 0:
            said = " ".join((output.err or output.out).split())[:200]
            return fail(
                f"scontrol cannot be run: {said}",
                "set commands to the folder of the Slurm commands",
            )
        found = _VERSION.search(output.out)
        self._version = found[1] if found else None
        where = "on a login node" if self._config.transport == "ssh" else "on this machine"
        words = f"{' '.join(output.out.split())} {where}"
        notes = self._client.transport.notes
        return warn("; ".join((words, *notes)), "check the login nodes") if notes else ok(words)

    async def _controller(self) -> CheckResult:
        try:
            text = await self._client.ask(["scontrol", "show", "config"])
        except UnreachableError as error:  # munge and clocks that differ are among what it says
            return from_error(error, "fail", "admin")
        pinged = await self._client.run(["scontrol", "ping"])
        values = _values(text)
        words = " ".join(pinged.out.split()) or "it answers"
        version = values.get("SLURM_VERSION", "")
        words = f"{words}; Slurm {version}, cluster {values.get('ClusterName', '')}, {values.get('AuthType', '')}"
        problem = _versions_apart(self._version, version)
        if problem is not None:
            return warn(
                f"{words}; {problem}", "install the version of the controller here", "admin"
            )
        return ok(words)

    async def _clock(self) -> CheckResult:
        """A login node's clock against this machine's; the controller's own shows in munge only."""
        before = time.time()
        output = await self._client.transport.run(["date", "+%s"])
        after = time.time()
        if not output.out.strip().isdecimal():
            return unknown("the time of the login node is unknown")
        theirs = int(output.out)
        ahead = theirs - after if theirs > after else min(0.0, theirs + 1 - before)
        if abs(ahead) > _SKEW:
            how = "ahead of" if ahead > 0 else "behind"
            words = f"the clock of the login node is {abs(ahead):.0f} s {how} this machine's"
            return warn(
                words, "synchronize the clocks with NTP; munge allows at most 300 s", "admin"
            )
        return ok("the login node has the same time as this machine")

    async def _identity(self) -> CheckResult:
        seen = await self._facts.look()
        who = (
            f"{seen.user or 'a user without a name'} (uid {seen.uid}) there, uid {os.getuid()} here"
        )
        if not seen.user:
            return fail(
                f"{who}: a uid without a user name has no account",
                "create the user where the Slurm commands run (passwd, LDAP)",
                "admin",
            )
        try:
            settings, accounts = await self._facts.settings(), await self._facts.accounts()
        except UnreachableError as error:
            return warn(f"{who}; its accounts could not be read: {error.message}")
        if accounts is None:
            return ok(f"{who}; the cluster has no accounting")
        if accounts.names:
            return self._numbers(f"{who}; accounts: {', '.join(accounts.names)}", seen)
        fix = f"sacctmgr add user {seen.user} account=ACCOUNT cluster={settings.cluster}"
        if "associations" in settings.enforced:
            return fail(f"{who}; it has no account, but the cluster requires one", fix, "admin")
        return ok(f"{who}; it has no account, and the cluster requires none")

    def _numbers(self, words: str, seen: HostFacts) -> CheckResult:
        if seen.uid in {os.getuid(), None}:
            return ok(words)
        return ok(f"{words}; runs are shared with that uid")

    async def _far_side(self) -> CheckResult:
        """What the login node sees of the partition."""
        findings = await storage_findings(self._facts, self._partition, self._paths)
        if findings:
            return fail("; ".join(one.message for one in findings), findings[0].hint)
        return ok(
            f"{self._paths.remote} there is {self._paths.local} here, and runs can be written"
        )

    async def _queues(self) -> CheckResult:
        limits = await self._facts.limits()
        if not limits:
            return fail("there are no queues", "add a partition", "admin")
        states = ", ".join(
            f"{one.name}{' (default)' if one.default else ''} {one.available}"
            for one in limits.values()
        )
        refused: HyperpodError | None = None
        opened = [one for one in limits.values() if one.available == "up" and one.nodes]
        for one in sorted(opened, key=lambda queue: not queue.default)[:5]:
            flag = f"#SBATCH --partition={one.name}\n".encode()
            script = _SCRIPT.replace(b"#SBATCH", flag + b"#SBATCH", 1)
            error = await self._facts.verdict(script)
            if error is None:
                return ok(f"{states}; {one.name} accepts a job of one task (sbatch --test-only)")
            refused = refused or error
        if refused is not None:
            return fail(
                f"{states}; no queue accepts a job: {refused.message}", refused.hint, "admin"
            )
        return fail(
            f"{states}: no queue is up", "scontrol update PartitionName=NAME State=UP", "admin"
        )


def _values(text: str) -> dict[str, str]:
    """Names and values of ``scontrol show config``."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def _versions_apart(client: str | None, controller: str) -> str | None:
    """Why a client of one release and a controller of another do not go together; None when they do, or when one is not known."""
    found = _VERSION.search(controller)
    theirs = found[1] if found else None
    if client not in _RELEASES or theirs not in _RELEASES:
        return None
    behind = _RELEASES.index(theirs) - _RELEASES.index(client)
    if behind < 0:
        return f"the commands here are newer ({client}), which Slurm does not allow"
    if behind > 2:
        return f"the commands here are {behind} releases older ({client}); Slurm allows two"
    return None
