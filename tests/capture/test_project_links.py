"""Project files behind links, and ignore files that are none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hyperpod_jlab.capture import project as listing

from .test_project import collect, either, finding, git, lay, paths, root

__all__ = ["either", "root"]


@pytest.mark.parametrize(
    "pattern",
    ["way/file.txt", "way/*", "way/deep/*.txt", "way/**/*.txt", "w*/file.txt", "*/deep", "inner/way/file.txt", "way"],
)
def test_no_pattern_leaves_the_project_by_a_linked_folder(either: Path, tmp_path: Path, pattern: str):
    lay(either, "a.py", "inner/b.py")
    lay(tmp_path, "outside/file.txt", "outside/deep/secret.txt")
    (either / "way").symlink_to(tmp_path / "outside")
    (either / "inner" / "way").symlink_to("../../outside")
    project = collect(either, include=[pattern])
    assert paths(project) == ["a.py", "inner/b.py"]
    assert "way" in finding(project, "outside_links").message


def test_what_lies_behind_a_link_to_outside_is_not_even_listed(root: Path, tmp_path: Path, monkeypatch):
    lay(root, "a.py")
    lay(tmp_path, *(f"outside/{number}/x" for number in range(60)))
    (root / "way").symlink_to(tmp_path / "outside")
    monkeypatch.setattr(listing, "MAX_FILES", 50)
    project = collect(root, include=["way/*", "way/**/x"])
    assert paths(project) == ["a.py"]
    assert "these files are links to outside the project and are not copied: way" in (
        finding(project, "outside_links").message
    )


def test_a_file_that_git_knows_is_not_followed_when_its_folder_has_become_a_link(root: Path, tmp_path: Path):
    lay(root, "a.py", "conf/file.txt")
    git(root, "init")
    git(root, "add", ".")
    shutil.rmtree(root / "conf")
    lay(tmp_path, "outside/file.txt")
    (root / "conf").symlink_to(tmp_path / "outside")
    project = collect(root)
    assert paths(project) == ["a.py"]
    assert "conf/file.txt" in finding(project, "outside_links").message


def test_a_pattern_may_go_by_a_link_within_the_project_but_not_to_secrets(either: Path):
    lay(either, "folder/a.csv", "keys/.aws/config", "b.py")
    (either / ".gitignore").write_text("folder\nkeys\nlinked\n")
    (either / "linked").symlink_to("folder")
    (either / "harmless").symlink_to("keys/.aws")
    project = collect(either, include=["linked/*.csv", "harmless/*"])
    assert paths(project) == [".gitignore", "b.py", "linked/a.csv"]
    linked = next(file for file in project.files if file.path == "linked/a.csv")
    assert linked.source == (either / "folder/a.csv").resolve()
    assert "harmless/config" in finding(project, "secret_files").message


def test_a_pattern_behind_a_broken_link_names_nothing(root: Path):
    lay(root, "a.py")
    (root / "broken").symlink_to("nothing")
    (root / "loop").symlink_to("loop")
    assert paths(collect(root, include=["broken/x", "loop/x/*", "broken"])) == ["a.py"]


def test_a_pattern_for_more_than_a_project_is_refused_in_words(root: Path, monkeypatch):
    lay(root, "a.py", *(f"data/{number}" for number in range(60)))
    (root / ".gitignore").write_text("data\n")
    monkeypatch.setattr(listing, "MAX_FILES", 50)
    assert finding(collect(root, include=["data"]), "project_too_many_files").level == "error"


@pytest.mark.parametrize("name", [".gitignore", ".hyperpodignore"])
def test_ignore_files_that_are_none_are_not_waited_for(root: Path, name: str):
    lay(root, "a.py", "sub/b.py", "sub2/c.py")
    os.mkfifo(root / name)
    os.mkfifo(root / "sub" / name)
    (root / "sub2" / name).symlink_to("/dev/zero")
    assert {"a.py", "sub/b.py", "sub2/c.py"} <= set(paths(collect(root)))
