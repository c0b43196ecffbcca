"""Who beside its owner may read a file or folder, by modes and access lists from the file system's root down to it."""

from __future__ import annotations

import grp
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.model.isolation import Grant, Whom
from hyperpod_jlab.storage.acl import Person, permissions
from hyperpod_jlab.storage.atomic import storage_errors

_READ, _WRITE, _ENTER = 4, 2, 1
_EVERYBODY: Person = ("everybody", None)


@dataclass(frozen=True)
class Rights:
    """The rights on a path.

    Attributes:
        owner: Its owner's name, or number where it has none here.
        uid: Its owner's number.
        mode: Its mode's lower twelve bits.
        grants: What others may do, as far as the folders above let them through.
        evidence: That in words.
    """

    owner: str
    uid: int
    mode: int
    grants: tuple[Grant, ...]
    evidence: tuple[str, ...]


def rights_on(path: Path, top: Path) -> Rights:
    """The rights on a path.

    Args:
        path: A file or folder that exists.
        top: The folder above it from which others come: the mount point of what other machines mount too, else ``/``.

    Raises:
        StorageError: It cannot be looked at.
    """
    with storage_errors(path):
        real = path.resolve(strict=True)
        found = real.stat()
        above = list(_above(real, top.resolve()))
        held = permissions(real)
        passing = [(folder, permissions(folder)) for folder in above]
    is_folder = stat.S_ISDIR(found.st_mode)
    grants: list[Grant] = []
    stopped: list[dict[Person, int]] = []
    for person, bits in held.items():
        rights = bits if is_folder else bits & ~_ENTER
        if not rights or person == ("user", found.st_uid):
            continue
        if all(_may_enter(person, their) for _, their in passing):
            grants.append(_grant(person, rights))
        elif person == _EVERYBODY:
            stopped = [their for _, their in passing if not _may_enter(person, their)]
            grants += [_grant(one, rights) for one in _let_through(stopped) - held.keys()]
    mode = stat.S_IMODE(found.st_mode)
    owner = _user(found.st_uid)
    evidence = [f"{real} has mode {mode:04o} and belongs to {owner} (uid {found.st_uid})"]
    if len(held) > 2:
        evidence.append(f"{real} has an access list")
    if stopped:
        bar = next(folder for folder, their in passing if their is stopped[0])
        evidence.append(f"{bar} does not let everybody through")
    return Rights(owner, found.st_uid, mode, tuple(grants), tuple(evidence))


def _above(path: Path, top: Path) -> Iterator[Path]:
    """The folders above a path, from the top down, the top included."""
    return (folder for folder in reversed(path.parents) if folder.is_relative_to(top))


def _may_enter(person: Person, rights: dict[Person, int]) -> bool:
    return bool((rights.get(person, 0) | rights.get(_EVERYBODY, 0)) & _ENTER)


def _let_through(bars: list[dict[Person, int]]) -> set[Person]:
    """Whom every one of these folders, which do not let everybody through, lets through by name."""
    each = ({person for person, bits in bar.items() if bits & _ENTER} for bar in bars)
    return set.intersection(*each)


def _grant(person: Person, bits: int) -> Grant:
    whom: Whom = person[0]
    number = person[1]
    name = None
    if number is not None:
        name = _user(number) if whom == "user" else _group(number)
    return Grant(whom, name, bool(bits & _READ), bool(bits & _WRITE), bool(bits & _ENTER))


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
