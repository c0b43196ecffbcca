"""Who else may read a path: what is said is held against what another user of this machine really can."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.storage import acl
from hyperpod_jlab.storage.owners import rights_on
from tests.storage.users import AS_ROOT, OTHER, as_other, common_folder

pytestmark = AS_ROOT


@pytest.fixture
def folder():
    with common_folder() as made:
        made.chmod(0o755)
        yield made


def make(path: Path, mode: int, *, file: bool = False) -> Path:
    if file:
        path.write_text("x")
    else:
        path.mkdir()
    path.chmod(mode)
    return path


def told(path: Path, top: Path = Path("/")) -> list[str]:
    return [grant.words for grant in rights_on(path, top).grants]


def others_can(path: Path) -> bool:
    """Whether another user sees what is in it."""
    look = (lambda: sorted(path.iterdir())) if path.is_dir() else path.read_text
    return not str(as_other(look)).startswith("PermissionError")


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (0o700, []),
        (0o755, ["group root may read", "everybody may read"]),
        (0o777, ["group root may read and write", "everybody may read and write"]),
        (0o711, ["group root may open files by name", "everybody may open files by name"]),
        (0o750, ["group root may read"]),
    ],
)  # fmt: skip
def test_modes_of_a_folder(folder, mode, words):
    path = make(folder / "here", mode)
    assert told(path) == words
    assert others_can(path) == ("everybody may read" in " ".join(words))
    rights = rights_on(path, Path("/"))
    assert (rights.owner, rights.uid, rights.mode) == ("root", 0, mode)
    assert rights.evidence[0] == f"{path} has mode {mode:04o} and belongs to root (uid 0)"


def test_a_file_behind_a_closed_folder_is_closed(folder):
    closed = make(folder / "closed", 0o700)
    path = make(closed / "data", 0o644, file=True)
    assert told(path) == []
    assert not others_can(path)
    assert f"{closed} is not accessible for all users" in rights_on(path, Path("/")).evidence
    closed.chmod(0o711)
    assert told(path) == ["group root may read", "everybody may read"]
    assert others_can(path)


def test_what_lies_above_the_mount_point_stops_nobody_elsewhere(folder):
    above = make(folder / "above", 0o700)
    point = make(above / "mounted", 0o755)
    path = make(point / "data", 0o644, file=True)
    assert told(path) == []
    assert told(path, point) == ["group root may read", "everybody may read"]


def test_open_to_everybody_behind_a_folder_of_a_group_is_open_to_the_group(folder):
    team = make(folder / "team", 0o750)
    os.chown(team, 0, OTHER)
    path = make(team / "data", 0o604, file=True)
    assert [grant.whom for grant in rights_on(path, Path("/")).grants] == ["group"]
    assert others_can(path)


def test_an_access_list_names_whom_it_lets_in(folder):
    path = make(folder / "here", 0o700)
    acl.grant_tree(path, OTHER)
    (grant,) = [one for one in rights_on(path, Path("/")).grants if one.whom == "user"]
    assert (grant.read, grant.write) == (True, True)
    assert others_can(path)
    assert f"{path} has an ACL" in rights_on(path, Path("/")).evidence
    # The mask takes it away again.
    path.chmod(0o700)
    assert told(path) == []
    assert not others_can(path)


def test_through_a_link_it_is_the_rights_of_what_it_leads_to(folder):
    path = make(folder / "here", 0o700)
    (folder / "link").symlink_to(path)
    assert told(folder / "link") == []
    with pytest.raises(StorageError):
        rights_on(folder / "nothing", Path("/"))


def test_what_this_user_may_not_look_at_is_denied_in_words(folder):
    closed = make(folder / "closed", 0o700)
    path = make(closed / "data", 0o644, file=True)

    def look() -> str:
        try:
            return str(rights_on(path, Path("/")))
        except StorageError as error:
            return error.code

    assert as_other(look) == "storage_denied"
