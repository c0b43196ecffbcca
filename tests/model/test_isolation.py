"""The honest level of isolation: a table of what is seen, and what it may be called."""

from __future__ import annotations

import pytest

from hyperpod_jlab.core.isolation import FolderFacts, Grant, Identity, isolation_of
from hyperpod_jlab.core.wire import to_plain

OWN, COMMON = Identity(True, "mine"), Identity(False, "everybody's")
OPEN = (Grant("everybody", None, read=True, write=False, enter=True),)
PASSING = (Grant("everybody", None, read=False, write=False, enter=True),)
GROUP = (Grant("group", "team", read=True, write=True, enter=True),)


@pytest.mark.parametrize(
    ("network", "folder", "grants", "identity", "kerberos", "level"),
    [
        # A partition of Studio as it is set up by default: one uid for everybody.
        (True, "/alice", (), COMMON, None, "mount_path_only"),
        (True, "/alice", OPEN, COMMON, None, "mount_path_only"),
        # Open modes are open, whoever one is.
        (True, "/alice", OPEN, OWN, None, "mount_path_only"),
        (True, "/alice", PASSING, OWN, None, "mount_path_only"),
        (True, "/", OPEN, OWN, None, "none"),
        (True, "/", (), COMMON, None, "none"),
        # Modes and a number of one's own.
        (True, "/alice", (), OWN, None, "posix"),
        (True, "/", (), OWN, None, "posix"),
        (True, "/", GROUP, OWN, None, "posix"),
        (True, None, (), OWN, None, "posix"),
        # Who one is is proved.
        (True, None, (), OWN, "krb5p", "real_identity"),
        (True, None, OPEN, OWN, "krb5p", "none"),
        (False, None, (), OWN, None, "real_identity"),
        (False, None, OPEN, OWN, None, "none"),
        (False, None, (), COMMON, None, "none"),
    ],
)
def test_the_level(network, folder, grants, identity, kerberos, level):
    found = isolation_of(FolderFacts(network, folder, grants, ("mode 0700",), identity, kerberos))
    assert found.level == level
    assert found.evidence[:2] == ("mode 0700", identity.evidence)
    assert found.readers == tuple(grant.words for grant in grants)


def test_the_evidence_says_which_folder_is_mounted_and_what_is_elsewhere():
    seen = FolderFacts(True, "/alice", (), (), COMMON)
    assert "only /alice of the file system is mounted here" in isolation_of(seen).evidence[-1]
    told = to_plain(isolation_of(seen))
    assert (told["level"], told["words"]) == ("mount_path_only", "mount path only")


@pytest.mark.parametrize(
    ("grant", "words"),
    [
        (Grant("everybody", None, True, True), "everybody may read and write"),
        (Grant("group", "team", True, False), "group team may read"),
        (Grant("user", "bob", False, True), "user bob may write"),
        (Grant("everybody", None, False, False, True), "everybody may open files by name"),
    ],
)
def test_grants_in_words(grant, words):
    assert grant.words == words
