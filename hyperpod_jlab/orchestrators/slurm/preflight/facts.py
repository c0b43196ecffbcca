"""What is known of a cluster and of this user on it, each asked for once and kept for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hyperpod_jlab.model.errors import HyperpodError, UnreachableError
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.orchestrators.slurm.client import SlurmClient
from hyperpod_jlab.orchestrators.slurm.preflight.accounts import (
    Accounts,
    Settings,
    accounts_command,
    parse_accounts,
    parse_settings,
)
from hyperpod_jlab.orchestrators.slurm.preflight.limits import Limits, limits_command, parse_limits
from hyperpod_jlab.orchestrators.slurm.watch import Watch

_LOOK = """\
id -un 2>/dev/null || echo
id -u
for path; do
  word=
  if [ -e "$path" ]; then word=e; fi
  if [ -r "$path" ]; then word=${word}r; fi
  if [ -w "$path" ]; then word=${word}w; fi
  if [ -x "$path" ]; then word=${word}x; fi
  echo "=$word"
done
"""

_AWAY = ("down", "drain", "fail", "future", "maint", "power", "reboot", "unk")
"""Beginnings of the states of nodes that take no jobs now (man sinfo, NODE STATE CODES)."""

_MINUTE = 60.0

_VERDICT_COUNTS = 15.0
"""Seconds for which the controller's verdict on a script counts."""


@dataclass(frozen=True)
class Seen:
    """What the machine with Slurm's commands sees, as the user whose jobs they send.

    Attributes:
        user: The user's name there, or empty.
        uid: The user's number there, or None.
        paths: For each path that was asked about letters of: e exists, r readable, w writable, x executable or to be entered.
    """

    user: str
    uid: int | None
    paths: tuple[str, ...]


class Facts:
    """The cluster's limits and settings, and what its user may name. All methods may raise `UnreachableError`."""

    def __init__(self, client: SlurmClient) -> None:
        self._client = client
        self._limits = Watch(self._look_at_limits)
        self._settings = Watch(self._look_at_settings)
        self._accounts = Watch(self._look_at_accounts)
        self._containers = Watch(self._look_at_containers)
        self._user = Watch(self.look)
        self._uid: int | None = None
        self._fine: dict[str, float] = {}
        self._verdict: tuple[float, tuple[bytes, tuple[str, ...]], HyperpodError | None] = (
            float("-inf"),
            (b"", ()),
            None,
        )

    async def limits(self) -> Limits:
        """The queues with their limits."""
        return await self._limits.get(_MINUTE)

    async def settings(self) -> Settings:
        """What the controller's configuration says."""
        return await self._settings.get(60 * _MINUTE)

    async def accounts(self) -> Accounts | None:
        """What this user may charge; None without accounting, or when the user has no name there."""
        return await self._accounts.get(5 * _MINUTE)

    async def containers(self) -> bool:
        """Whether srun knows containers: the plug-in Pyxis adds its options to the help."""
        return await self._containers.get(10 * _MINUTE)

    async def choices(self) -> dict[str, list[str]]:
        """Names that this user may give as queue, account and qos; a field is left out where they cannot be known."""
        found = {"queue": list(await self.limits())}
        accounts = await self.accounts()
        if accounts is not None and accounts.names:
            found |= {"account": accounts.names, "qos": accounts.qos_of(None)}
        return found

    async def unless_fine(
        self, about: str, look: Callable[[], Awaitable[list[Finding]]]
    ) -> list[Finding]:
        """What a look finds; for a minute it is not taken again when it found nothing. What is mended is seen at once."""
        if time.monotonic() - self._fine.get(about, float("-inf")) < _MINUTE:
            return []
        found = await look()
        if not found:
            self._fine[about] = time.monotonic()
        return found

    async def nodes_missing(self) -> bool:
        """Whether nodes are away that may come back: down, drained, or not heard of since the controller's start."""
        said = await self._client.ask(["sinfo", "--noheader", "--format=%T"])
        return any(state.endswith("*") or state.startswith(_AWAY) for state in said.lower().split())

    async def uid(self) -> int | None:
        """The user's number where the commands run; None when it cannot be known. No scheduler call."""
        return self._uid if self._uid is not None else (await self.look()).uid

    async def look(self, *paths: str) -> Seen:
        """What is at these paths, seen from where the commands run. No scheduler call."""
        output = await self._client.transport.run(["/bin/sh", "-c", _LOOK, "sh", *paths])
        user, _, rest = output.out.partition("\n")
        uid, _, rest = rest.partition("\n")
        words = tuple(line[1:] for line in rest.split("\n") if line.startswith("="))
        self._uid = int(uid) if uid.isdecimal() else None
        return Seen(user.strip(), self._uid, words)

    async def verdict(self, script: bytes, options: tuple[str, ...] = ()) -> HyperpodError | None:
        """The controller's own verdict on a script with options of sbatch, which is not sent; None when it would be taken (man sbatch, --test-only).

        Kept for a moment: who has just been shown what was found sends the same.

        Raises:
            UnreachableError: Nobody answered.
        """
        moment, known, error = self._verdict
        if known == (script, options) and time.monotonic() - moment < _VERDICT_COUNTS:
            return error
        error = None
        try:
            await self._client.ask(["sbatch", "--test-only", *options], stdin=script)
        except UnreachableError:
            raise
        except HyperpodError as refusal:
            error = refusal
        self._verdict = time.monotonic(), (script, options), error
        return error

    async def _look_at_limits(self) -> Limits:
        argv, mark = limits_command()
        text = await self._client.ask(argv)
        return await asyncio.to_thread(parse_limits, text, mark)

    async def _look_at_settings(self) -> Settings:
        return parse_settings(await self._client.ask(["scontrol", "show", "config"]))

    async def _look_at_accounts(self) -> Accounts | None:
        settings = await self.settings()
        if not settings.accounting:
            return None
        user = (await self._user.get(60 * _MINUTE)).user
        if not user:
            return None
        text = await self._client.ask(accounts_command(user, settings.cluster))
        return parse_accounts(user, text)

    async def _look_at_containers(self) -> bool:
        output = await self._client.transport.run(["srun", "--help"])
        return "--container-image" in output.out
