"""One further user is let into private folders, and nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hyperpod_jlab.storage import acl

JOB, OTHER = 40_001, 40_002


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A private folder, in one that everybody may go through."""
    for parent in [tmp_path, *tmp_path.parents]:
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "run").mkdir(mode=0o700)
    (private / "run" / "code.py").write_text("code")
    (private / "run" / "code.py").chmod(0o400)
    return private


def by(uid: int, script: str) -> int:
    """The exit code of a shell script that a user runs; the umask is as narrow as can be."""
    words = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    return subprocess.run([*words, "sh", "-c", f"umask 077; {script}"], check=False).returncode


def test_the_job_reads_and_writes_and_nobody_else_does(folder: Path) -> None:
    acl.grant_traversal(folder, JOB)
    acl.grant_tree(folder / "run", JOB)
    assert by(JOB, f"cat {folder}/run/code.py && echo x > {folder}/run/made") == 0
    assert by(JOB, f"ls {folder}") != 0
    assert by(JOB, f"echo x > {folder}/run/code.py") != 0
    for script in ("cat {}/run/code.py", "ls {}/run", "cat {}/run/made", "touch {}/run/x"):
        assert by(OTHER, script.format(folder)) != 0, script


def test_what_either_makes_later_is_usable_by_both(folder: Path) -> None:
    acl.grant_traversal(folder, JOB)
    acl.grant_tree(folder / "run", JOB)
    assert by(JOB, f"mkdir -m 770 {folder}/run/logs; (umask 0; echo a > {folder}/run/logs/a)") == 0
    (folder / "run" / "logs" / "b").write_text("b")
    (folder / "run" / "logs" / "b").chmod(0o660)
    assert by(JOB, f"cat {folder}/run/logs/b && echo more >> {folder}/run/logs/b") == 0
    assert by(OTHER, f"cat {folder}/run/logs/b") != 0
    entries = os.getxattr(folder / "run" / "logs" / "a", "system.posix_acl_access")
    assert os.getuid().to_bytes(4, "little") in entries


def test_a_second_user_takes_nothing_from_the_first(folder: Path) -> None:
    for uid in (JOB, OTHER):
        acl.grant_traversal(folder, uid)
        acl.grant_tree(folder / "run", uid)
    assert [by(uid, f"cat {folder}/run/code.py") for uid in (JOB, OTHER)] == [0, 0]


def test_a_folder_that_all_may_pass_needs_none(folder: Path) -> None:
    folder.chmod(0o711)
    acl.grant_traversal(folder, JOB)
    assert not acl.has_acl(folder)


def test_on_a_shared_partition_all_may_read_what_the_job_makes(folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "run").chmod(0o755)
    acl.grant_tree(folder / "run", JOB)
    assert by(JOB, f"umask 022; echo a > {folder}/run/a") == 0
    assert by(OTHER, f"cat {folder}/run/a") == 0
    assert by(OTHER, f"echo b > {folder}/run/a") != 0


def test_a_file_system_without_acls_is_told(tmp_path: Path) -> None:
    """As ramfs is."""
    script = (
        "from pathlib import Path; from hyperpod_jlab.storage.acl import grant_traversal;"
        "from hyperpod_jlab.core.errors import StorageError\n"
        "try: grant_traversal(Path('there'), 40001)\n"
        "except StorageError as error: print(error.code, error.hint)"
    )
    (tmp_path / "there").mkdir()
    shell = f'mount -t ramfs none there && chmod 700 there && exec "{sys.executable}" -c "$0"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", shell, script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(acl.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("no_acl ")
    assert "with the uid of this machine" in done.stdout
