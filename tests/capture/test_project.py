"""Which project files go along."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hyperpod_jlab.capture import project as listing
from hyperpod_jlab.capture.project import Project, collect_project
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.spec import FilesSpec


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, "-C", str(folder), *arguments], check=True, capture_output=True)


def lay(folder: Path, *paths: str, **texts: str) -> None:
    for path in paths:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(texts.get(path, path))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture(params=["git", "plain"])
def either(request, root: Path) -> Path:
    """A folder that is a working tree, and one that is none."""
    if request.param == "git":
        git(root, "init")
    return root


def collect(root: Path, **fields) -> Project:
    return collect_project(FilesSpec(**fields), root)


def paths(project: Project) -> list[str]:
    return [file.path for file in project.files]


def codes(project: Project) -> set[str]:
    return {finding.code for finding in project.findings}


def finding(project: Project, code: str):
    (found,) = [one for one in project.findings if one.code == code]
    return found


def test_tracked_and_new_files_less_the_ignored(root: Path):
    lay(root, "a.py", "pkg/b.py", "new.txt", "data/big.bin", "deleted.py", "logs/x.log", "forced.log")
    (root / ".gitignore").write_text("data/\n*.log\n")
    git(root, "init")
    git(root, "add", "-f", "a.py", "pkg", "deleted.py", "forced.log")
    (root / "deleted.py").unlink()
    assert paths(collect(root)) == [".gitignore", "a.py", "forced.log", "new.txt", "pkg/b.py"]


def test_a_folder_below_the_repositorys_top_is_a_root_too(root: Path):
    lay(root, "top.py", "sub/a.py", "sub/deep/b.py", "sub/no.tmp")
    (root / ".gitignore").write_text("*.tmp\n")
    git(root, "init")
    git(root, "add", "sub/a.py")
    assert paths(collect(root / "sub")) == ["a.py", "deep/b.py"]


def test_ignore_files_hold_with_and_without_git(either: Path):
    lay(either, "a.py", "keep.log", "x.log", "sub/y.log", "sub/b.py", "out/z", "sub/out/z")
    (either / ".gitignore").write_text("*.log\n!keep.log\n/out/\n")
    (either / "sub" / ".gitignore").write_text("b.*\n")
    assert paths(collect(either)) == [".gitignore", "a.py", "keep.log", "sub/.gitignore", "sub/out/z"]


def test_hyperpodignore_leaves_out_tracked_files_too(either: Path):
    lay(either, "a.py", "data/a.csv", "data/b.txt", "sub/c.csv", "sub/d.py", "sub/deep/d.py")
    (either / ".hyperpodignore").write_text("*.csv\n!/data/a.csv\n")
    (either / "sub" / ".hyperpodignore").write_text("/d.py\n")
    if (either / ".git").exists():
        git(either, "add", ".")
    found = [path for path in paths(collect(either)) if "ignore" not in path]
    assert found == ["a.py", "data/a.csv", "data/b.txt", "sub/deep/d.py"]


def test_what_never_belongs_to_a_project_stays(either: Path):
    lay(
        either,
        "a.py",
        "__pycache__/a.pyc",
        ".ipynb_checkpoints/a.ipynb",
        "node_modules/x/y.js",
        ".hyperpod/runs/r/x",
        ".venv/lib/z.py",
        "env/lib/z.py",
    )
    (either / "env" / "pyvenv.cfg").write_text("")
    expected = ["a.py"] if not (either / ".git").exists() else ["a.py", "env/lib/z.py", "env/pyvenv.cfg"]
    assert paths(collect(either)) == expected


def test_without_git_the_walk_finds_the_same(root: Path, monkeypatch):
    lay(root, "a.py", "sub/b.py", "x.log")
    (root / ".gitignore").write_text("*.log\n")
    git(root, "init")
    with_git = paths(collect(root))
    monkeypatch.setenv("PATH", str(root))
    assert shutil.which("git") is None
    assert paths(collect(root)) == with_git


def test_nested_repositories_are_listed_by_their_own_rules(root: Path):
    lay(root, "a.py", "nested/b.py", "nested/c.log", "module/d.py")
    git(root / "nested", "init")
    (root / "nested" / ".gitignore").write_text("*.log\n")
    git(root / "module", "init")
    git(root / "module", "add", ".")
    git(root / "module", "commit", "-m", "x")
    git(root, "init")
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", str(root / "module"), "module")
    assert paths(collect(root)) == [".gitmodules", "a.py", "module/d.py", "nested/.gitignore", "nested/b.py"]


def test_a_folder_that_an_outer_repository_ignores_is_walked(root: Path):
    (root / ".gitignore").write_text("*\n")
    lay(root, "work/a.py")
    git(root, "init")
    assert paths(collect(root / "work")) == ["a.py"]


def test_a_repositorys_configuration_starts_no_program(root: Path):
    lay(root, "a.py")
    git(root, "init")
    mark = root / "started"
    git(root, "config", "core.fsmonitor", f"touch {mark}; false")
    assert "a.py" in paths(collect(root))
    assert not mark.exists()


def test_variables_of_another_git_do_not_mislead(root: Path, tmp_path: Path, monkeypatch):
    lay(root, "a.py")
    git(root, "init")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "none"))
    assert paths(collect(root)) == ["a.py"]


def test_links(either: Path, tmp_path: Path):
    lay(either, "real.py", "folder/a.py", "folder/deep/b.py")
    lay(tmp_path, "outside/secret.txt", "outside/file.txt")
    for link, target in {
        "link.py": "real.py",
        "again": "folder",
        "absolute.py": str(either / "real.py"),
        "out.txt": str(tmp_path / "outside" / "file.txt"),
        "outfolder": str(tmp_path / "outside"),
        "broken": "nothing",
        "loop": "loop",
        "folder/up": "..",
    }.items():
        (either / link).symlink_to(target)
    project = collect(either)
    found = paths(project)
    assert {"link.py", "absolute.py", "again/a.py", "again/deep/b.py"} <= set(found)
    assert not {"out.txt", "broken", "loop"}.intersection(found)
    assert not any("secret" in path for path in found)
    linked = next(file for file in project.files if file.path == "link.py")
    assert linked.source == (either / "real.py").resolve()
    assert "out.txt" in finding(project, "outside_links").message
    assert "outfolder" in finding(project, "outside_links").message


def test_secrets_stay_here(either: Path):
    secret = [".env", "conf/.env.local", "key.pem", "id_rsa", ".aws/credentials", "kaggle.json", ".netrc"]
    lay(either, "a.py", ".env.example", "id_rsa.pub", *secret)
    (either / "linked").symlink_to(".env")
    project = collect(either)
    assert paths(project) == [".env.example", "a.py", "id_rsa.pub"]
    warning = finding(project, "secret_files")
    assert (warning.level, "--secret" in (warning.hint or "")) == ("warning", True)
    asked = collect(either, include=["key.pem", "*"])
    assert "key.pem" in paths(asked)
    assert ".env" not in paths(asked)


def test_further_files_by_pattern(either: Path):
    lay(either, "a.py", "data/1.csv", "data/2.csv", "data/deep/3.csv", "weights/w.bin", "weights/__pycache__/x")
    (either / ".gitignore").write_text("data\nweights\n")
    found = paths(collect(either, include=["data/*.csv", "weights"]))
    assert found == [".gitignore", "a.py", "data/1.csv", "data/2.csv", "weights/w.bin"]


@pytest.mark.parametrize("pattern", ["/etc/passwd", "../x", "a/../../x"])
def test_patterns_stay_in_the_project(root: Path, pattern: str):
    with pytest.raises(InvalidInputError) as caught:
        collect(root, include=[pattern])
    assert caught.value.detail["field"] == "files.include"


def test_sizes_modes_and_the_sum(root: Path):
    lay(root, "a.py")
    (root / "run.sh").write_bytes(b"x" * 2048)
    (root / "run.sh").chmod(0o755)
    project = collect(root)
    assert [(file.path, file.size, file.executable) for file in project.files] == [
        ("a.py", 4, False),
        ("run.sh", 2048, True),
    ]
    assert "2 project files (2.0 KiB)" in finding(project, "project_files").message
    (root / "run.sh").unlink()
    assert "1 project file (4 bytes)" in finding(collect(root), "project_files").message


def test_a_project_that_is_too_large_is_refused_with_its_largest_files(root: Path):
    lay(root, "small.py")
    for name, size in {"middle.bin": 3000, "large.bin": 9000}.items():
        (root / name).write_bytes(b"x" * size)
    error = finding(collect(root, max_bytes=10_000), "project_too_large")
    assert error.level == "error"
    assert error.message.index("large.bin (8.8 KiB)") < error.message.index("middle.bin")
    assert ".hyperpodignore" in (error.hint or "")
    assert "--no-project-files" in (error.hint or "")
    assert "project_too_large" not in codes(collect(root, max_bytes=13_000))


def test_a_tree_that_is_no_project_is_not_walked_to_its_end(either: Path, monkeypatch):
    monkeypatch.setattr(listing, "MAX_FILES", 50)
    for number in range(60):
        lay(either, f"d{number % 7}/f{number}")
    project = collect(either)
    assert project.files == ()
    error = finding(project, "project_too_many_files")
    assert error.level == "error"
    assert "more than 50 files" in error.message


def test_ignoring_helps_where_there_are_too_many(either: Path, monkeypatch):
    monkeypatch.setattr(listing, "MAX_FILES", 20)
    for number in range(30):
        lay(either, f"data/f{number}", f"sub/out/f{number}")
    lay(either, "a.py", "sub/b.py")
    (either / ".hyperpodignore").write_text("/data/\n")
    (either / "sub" / ".hyperpodignore").write_text("out\n")
    if (either / ".git").exists():
        git(either, "add", ".")
    found = [path for path in paths(collect(either)) if "ignore" not in path]
    assert found == ["a.py", "sub/b.py"]


def test_a_slow_tree_ends_in_words(root: Path, monkeypatch):
    monkeypatch.setattr(listing, "MAX_SECONDS", -1.0)
    lay(root, "a.py")
    assert "took longer than" in finding(collect(root), "project_too_many_files").message


def test_the_walk_stops_at_the_cap(root: Path, monkeypatch):
    monkeypatch.setattr(listing, "MAX_FILES", 100)
    for folder in range(40):
        (root / f"d{folder}").mkdir()
        for name in range(20):
            (root / f"d{folder}" / f"f{name}").touch()
    seen: list[str] = []
    real = listing.Lister._entries

    def counted(self, folder):
        seen.append(folder)
        return real(self, folder)

    monkeypatch.setattr(listing.Lister, "_entries", counted)
    assert finding(collect(root), "project_too_many_files")
    assert len(seen) < 10


@pytest.mark.parametrize("kind", ["home", "partition"])
def test_a_home_folder_gives_only_the_modules_beside(root: Path, monkeypatch, kind: str):
    lay(root, "helper.py", "notes.txt", "photos/x.jpg", "code/y.py")
    if kind == "home":
        monkeypatch.setenv("HOME", str(root))
    else:
        (root / ".hyperpod" / "runs").mkdir(parents=True)
    project = collect(root)
    assert paths(project) == ["helper.py"]
    assert finding(project, "broad_root").hint is not None
    # Asked for by name it is taken as any other folder.
    assert "notes.txt" in paths(collect_project(FilesSpec(root=str(root)), root))


def test_the_root_may_be_named(root: Path):
    lay(root, "a.py", "nb/b.py")
    project = collect_project(FilesSpec(root=".."), root / "nb", root / "nb")
    assert paths(project) == ["a.py", "nb/b.py"]
    assert str(project.relative_to_root(root / "nb" / ".." / "nb" / "x.py")) == "nb/x.py"
    assert project.relative_to_root(root / "..") is None
    with pytest.raises(InvalidInputError) as caught:
        collect_project(FilesSpec(root="none"), root, root)
    assert caught.value.detail["field"] == "files.root"


def test_no_project_files(root: Path):
    lay(root, "a.py")
    project = collect(root, project=False)
    assert (project.files, project.findings) == ((), ())


def test_a_missing_folder_is_no_failure(tmp_path: Path):
    project = collect(tmp_path / "unsaved")
    assert (project.files, codes(project)) == ((), {"no_project"})


def test_pipes_odd_names_and_unreadable_files(either: Path):
    lay(either, "a.py", "new\nline.txt", "sp ace \u00e9.txt")
    os.mkfifo(either / "pipe")
    (either / os.fsdecode(b"\xff.txt")).write_text("x")
    project = collect(either)
    assert paths(project) == ["a.py", "new\nline.txt", "sp ace \u00e9.txt"]
    assert "odd_names" in codes(project)


@pytest.mark.parametrize("name", [".gitignore", ".hyperpodignore"])
@pytest.mark.parametrize("text", ["x\n" * 20_000, "x" * (2 << 20)])
def test_an_ignore_file_that_is_too_large_is_an_error(root: Path, name: str, text: str):
    lay(root, "a.py")
    (root / name).write_text(text)
    assert name in finding(collect(root), "project_too_many_files").message


def test_names_in_an_index_that_git_never_writes_lead_nowhere(root: Path):
    """Such as ``..`` and the folder itself, which would be listed without end."""
    lay(root, "inner/a.py")
    (root.parent / "outside").mkdir()
    lay(root.parent / "outside", "b.py")
    git(root, "init")
    git(root, "add", ".")
    index = root / ".git" / "index"
    (root / "inner" / "up").symlink_to("..")
    data = bytearray(index.read_bytes())
    for name in (b"../outside", b"up/../x/yz", b"./inner/ab", b"/etc/hosts"):
        changed = data.replace(b"inner/a.py", name)
        sum_ = hashlib.sha1(changed[:-20]).digest()
        index.write_bytes(changed[:-20] + sum_)
        assert paths(collect(root)) in ([], ["inner/a.py"])


def test_nested_repositories_that_link_to_each_other_are_listed_once(root: Path):
    lay(root, "a.py", "x/b.py")
    git(root, "init")
    git(root / "x", "init")
    (root / "x" / "up").symlink_to("..")
    one = "1" * 40
    git(root / "x", "update-index", "--add", "--cacheinfo", f"160000,{one},up")
    (root / "y").mkdir()
    (root / "y" / "x").symlink_to("../x")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{one},x")
    assert {"a.py", "x/b.py"} <= set(paths(collect(root)))


def test_a_slow_git_is_an_error(root: Path, tmp_path: Path, monkeypatch):
    lay(root, "a.py")
    lay(tmp_path, "bin/git", **{"bin/git": "#!/bin/sh\nexec sleep 1000\n"})
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (root / ".git").mkdir()
    monkeypatch.setattr(listing, "MAX_SECONDS", 0.5)
    assert "git" in finding(collect(root), "project_too_many_files").message


def test_a_huge_answer_of_git_is_an_error(root: Path, tmp_path: Path, monkeypatch):
    lay(root, "a.py")
    lay(tmp_path, "bin/git", **{"bin/git": "#!/bin/sh\nexec cat /dev/zero\n"})
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (root / ".git").mkdir()
    assert "64 MiB" in finding(collect(root), "project_too_many_files").message
