"""User numbers in a user namespace, as in a space of Studio, where everybody is 1000 inside and somebody else outside."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.storage import acl as numbers
from hyperpod_jlab.storage.acl import host_uid, is_uid, own_uid
from hyperpod_jlab.storage.index import RunIndex, Session
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.storage.bundles import make_bundle
from tests.storage.users import AS_ROOT, as_other, common_folder

ALICE, BOB = 20001, 20002
_NEW_USER_NAMESPACE, _SET_DUMPABLE = 0x10000000, 4


def as_profile(number: int, work: Callable[[], Any]) -> Any:
    """What `work` returns as user 1000 of a namespace who has another number outside."""

    def inside() -> Any:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0) or libc.unshare(_NEW_USER_NAMESPACE):
            raise OSError(ctypes.get_errno(), "no user namespace")
        Path("/proc/self/uid_map").write_text(f"1000 {number} 1")
        numbers._mapping.cache_clear()
        assert (os.getuid(), own_uid()) == (1000, number)
        return work()

    return as_other(inside, uid=number)


def test_outside_of_a_namespace_a_number_is_itself():
    assert (own_uid(), host_uid(ALICE)) == (os.getuid(), ALICE)
    assert is_uid(ALICE, ALICE)
    assert not is_uid(numbers.OVERFLOW_UID, ALICE)


def test_in_a_namespace_a_number_is_told_as_it_is_outside(tmp_path: Path, monkeypatch):
    table = tmp_path / "uid_map"
    table.write_text("         0     100000       1000\n      1000     200001          1\n")
    monkeypatch.setattr(numbers, "_UID_MAP", table)
    numbers._mapping.cache_clear()
    try:
        told = [host_uid(uid) for uid in (0, 999, 1000, 1001)]
        assert told == [100000, 100999, 200001, 1001]
    finally:
        numbers._mapping.cache_clear()


@AS_ROOT
@pytest.mark.parametrize("others", [BOB, ALICE])
def test_two_spaces_of_studio_on_one_shared_partition(others):
    """With numbers of their own two profiles have folders of their own; with one number for all they have one in common, and nothing can keep them apart."""
    with common_folder() as root:
        partition = Partition(root, shared=True)

        def listed() -> list[tuple[str, bool]]:
            def read(session: Session) -> list[str]:
                session.refresh(everyone=True)
                rows = session._db.execute("SELECT run_id FROM runs ORDER BY run_id")
                return [row[0] for row in rows]

            found = RunIndex(partition, None).use(read)
            return [(run_id, BundleReader(partition, run_id).is_own) for run_id in found]

        made = as_profile(ALICE, lambda: str(make_bundle(partition, "alices").folder))
        assert f".hyperpod-{ALICE}/" in made
        made = as_profile(others, lambda: str(make_bundle(partition, "others").folder))
        assert f".hyperpod-{others}/" in made
        assert as_profile(ALICE, listed) == [("alices", True), ("others", others == ALICE)]
