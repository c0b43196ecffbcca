"""Which folder of a file system each profile and space of a domain mounts in the end, by its own list or the domain's: pure.

A profile that has a list of its own does not see the domain's. A private space that names the file system mounts what its owner does, a shared one
what the domain has for spaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hyperpod_jlab.admin import entries as lists
from hyperpod_jlab.admin.plan import EntryStep, Step
from hyperpod_jlab.admin.there import Holder


def mounts_of(holders: Iterable[Holder], file_system: str) -> Mapping[str, str]:
    """Folders by the words for who mounts them (`Holder.words`); who mounts none is not in it.

    Args:
        holders: The lists of a domain.
        file_system: The file system's id.
    """
    known = list(holders)
    defaults = {one.kind: lists.path_of(one.entries, file_system) for one in known}
    people = {
        one.name: lists.path_of(one.entries, file_system) if one.entries else defaults.get("domain")
        for one in known
        if one.kind == "profile"
    }
    found = {f"profile {name}": path for name, path in people.items()}
    for one in known:
        if one.kind == "space" and lists.is_attached(one.entries, file_system):
            shared = one.owner is None
            found[one.words] = (
                defaults.get("space defaults") if shared else people.get(str(one.owner))
            )
    return {words: path for words, path in found.items() if path is not None}


def holders_after(holders: Iterable[Holder], steps: Iterable[Step]) -> list[Holder]:
    """The lists once all is done that is not blocked; what waits is counted as done."""
    then = {
        step.holder.words: step.entries
        for step in steps
        if isinstance(step, EntryStep) and step.state != "blocked"
    }
    return [replace(one, entries=then.get(one.words, one.entries)) for one in holders]
