"""The services that the steps look through, once the configuration could be read."""

from __future__ import annotations

from hyperpod_jlab.model.check import Told
from hyperpod_jlab.services.hyperpod import Hyperpod

CONFIGURATION = "configuration"
"""The step that reads it; who needs the services needs this one."""


class Opened:
    """The services; `open` makes them."""

    def __init__(self) -> None:
        self._hyperpod: Hyperpod | None = None

    async def open(self) -> Told | None:
        """Read the configuration and make the services; nothing is said when that works.

        Raises:
            HyperpodError: The configuration is wrong.
        """
        self._hyperpod = Hyperpod()
        return None

    @property
    def is_open(self) -> bool:
        """Whether the configuration could be read."""
        return self._hyperpod is not None

    @property
    def hyperpod(self) -> Hyperpod:
        """The services, for steps that need `CONFIGURATION`."""
        assert self._hyperpod is not None, "a step uses the services and does not need them"
        return self._hyperpod

    async def close(self) -> None:
        """Give back what is held open."""
        if self._hyperpod is not None:
            await self._hyperpod.close()
