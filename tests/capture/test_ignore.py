"""The matcher of ignore files says what git says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hyperpod_jlab.capture.ignore import MAX_LINES, IgnoreFile, TooManyPatternsError, build_tree

PARTS = [
    "a",
    "b",
    "ab",
    "a.b",
    "*",
    "?",
    "**",
    "[ab]",
    "[!a]",
    "[a-b]",
    "a*",
    "*b",
    "\\a",
    "a?b",
    "***",
    "[^b]*",
    "[[:alpha:]]",
    "[]a]",
    "a**",
    "**b",
    "[a/b]",
    "[b-a]",
    "[[:no:]]",
    "[a\\]]",
    "[a-]",
    "\\*",
    "\\",
    "[",
    "!",
    "#",
    "\u00e9",
    "a\\ ",
]
PATTERNS = st.builds(
    lambda negated, anchored, parts, folder, end: (
        ("!" if negated else "") + ("/" if anchored else "") + "/".join(parts) + ("/" if folder else "") + end
    ),
    st.booleans(),
    st.booleans(),
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from(["", " ", "  "]),
)
NAMES = st.sampled_from(["a", "b", "ab", "a.b", "axb", "c", "*", "]", "-", "\u00e9", "!", "a "])
FILES = st.lists(st.lists(NAMES, min_size=1, max_size=4).map("/".join), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def by_git(repository: Path, files: list[str]) -> set[str]:
    asked = "\0".join(files) + "\0"
    command = ["git", "-C", str(repository), "check-ignore", "--no-index", "-z", "--stdin"]
    done = subprocess.run(command, input=asked.encode(), capture_output=True)
    return {name for name in done.stdout.decode().split("\0") if name}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(top=st.lists(PATTERNS, max_size=4), inner=st.lists(PATTERNS, max_size=2), files=FILES)
def test_it_agrees_with_git(repository: Path, top: list[str], inner: list[str], files: list[str]):
    (repository / "a").mkdir(exist_ok=True)
    (repository / ".gitignore").write_text("\n".join(top))
    (repository / "a" / ".gitignore").write_text("\n".join(inner))
    # git looks at the disk whether a name is a folder: none of these is there, so each is a file.
    files = [file for file in files if file != "a"]
    tree = build_tree([("", "\n".join(top)), ("a", "\n".join(inner))])
    assert {file for file in files if tree.ignores(file)} == by_git(repository, files)


@pytest.mark.parametrize(
    ("text", "ignored", "kept"),
    [
        ("# comment\n\n\\#file\n", ["#file"], ["# comment"]),
        ("\\!file", ["!file"], ["file"]),
        ("trail\\ ", ["trail "], ["trail"]),
        ("[", [], ["["]),
        ("a\\", [], ["a\\", "a"]),
        ("build/\n!build/keep", ["build/keep", "x/build/y"], ["build"]),
        ("*\n!*.py", ["a.txt"], ["a.py"]),
        ("doc/**/x", ["doc/x", "doc/a/b/x"], ["x"]),
        ("a\r\n", ["a"], []),
        ("\ufeffa", [], ["b"]),
        ("x", ["d/" * 1500 + "x"], ["d/" * 1500 + "y"]),
    ],
)
def test_corners(text: str, ignored: list[str], kept: list[str]):
    tree = build_tree([("", text)])
    assert [path for path in [*ignored, *kept] if tree.ignores(path)] == ignored


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 30 + "*b", "a" * 250),
        ("*a" * 2000 + "*b", "a" * 255),
        ("*?" * 127 + "b", "a" * 255),
        ("*[!b]" * 800 + "[b]", "a" * 255),
        ("**/a/" * 800 + "b", "a/" * 2047 + "a"),
        ("**/" + "a*/" * 1000 + "b", "a/" * 2047 + "a"),
        ("**/*a*a*a*a*a*b/" * 250 + "b", ("a" * 30 + "/") * 130 + "c"),
        ("x/" + "*a" * 2000 + "b", "x/" + "a" * 4000),
        ("*" * 4000 + "b", "a" * 255),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str):
    """The limit of pytest ends it: each of them takes longer than the universe if it goes back over its stars."""
    assert IgnoreFile(pattern).decide(path, folder=False) is None


def test_too_many_lines_are_refused():
    IgnoreFile("a\n" * (MAX_LINES - 1))
    with pytest.raises(TooManyPatternsError):
        IgnoreFile("a\n" * MAX_LINES)


def test_a_pattern_longer_than_any_path_matches_nothing():
    assert IgnoreFile("*" * 5000).decide("a", folder=False) is None
