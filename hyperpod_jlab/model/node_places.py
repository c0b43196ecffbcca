"""The places of a cluster's instances: who comes into one has replaced who was there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hyperpod_jlab.model.hyperpod import Instance
from hyperpod_jlab.model.node_join import rank

LATELY = 3600.0
"""Seconds since its start for which an instance is told to be a new one."""


class Places:
    """Which instance had each place of a cluster when its instances were last listed.

    A place is what stays the same in a replacement: the logical id where AWS tells it, else the host's name.
    """

    def __init__(self) -> None:
        self._holders: dict[str, Instance] = {}
        self._before: dict[str, str] = {}

    def note(self, instances: Iterable[Instance]) -> None:
        """All instances as they are listed now."""
        listed: dict[str, Instance] = {}
        for one in sorted(instances, key=rank):
            place = one.logical_id or one.host
            if place is None:
                continue
            earlier = listed.get(place) or self._holders.get(place)
            if earlier is not None and earlier.name != one.name:
                self._before[one.name] = earlier.name
            listed[place] = one
        self._holders |= listed
        names = {one.name for one in self._holders.values()}
        self._before = {new: old for new, old in self._before.items() if new in names}

    def told(self, instances: Sequence[Instance], now: float) -> list[Instance]:
        """The same instances, those that have lately come into the place of another with that one's id.

        Args:
            instances: The instances.
            now: The time (Unix seconds).
        """
        return [
            replace(one, replaces=self._before[one.name])
            if one.name in self._before and now - (one.launched_at or 0.0) < LATELY
            else one
            for one in instances
        ]
