"""The guard, with real users: what others may change is not run, and what is run are the very bytes that were checked."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hyperpod_jlab.engines.launch import ANY_OWNER, EXIT_UNTRUSTED, GuardPolicy, guard_command, guard_source
from hyperpod_jlab.storage.acl import grant_traversal, grant_tree

from .conftest import NODE_PYTHON

ALICE, BOB, CAROL = 43001, 43002, 43003
LAUNCHER = b"import sys; print('ran', __name__, __file__, *sys.argv)\n"
BUNDLE = ".hyperpod/runs/07/run-1"

_BECOME = """
import __future__, ctypes, errno, grp, hashlib, os, pwd, signal, stat, struct, sys, typing
source = sys.argv.pop(1)
os.setgroups([])
os.setresgid({user}, {user}, {user})
os.setresuid({user}, {user}, {user})
mapped = {mapped}
if mapped is not None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(4, 1, 0, 0, 0) or libc.unshare(0x10000000):
        raise OSError(ctypes.get_errno(), "no user namespace")
    with open("/proc/self/uid_map", "w") as file:
        file.write("%d {user} 1" % mapped)
exec(compile(source, "guard", "exec"))
"""
"""Becomes a user only when all modules are there: the tests' own Python may lie where others may not look."""

pytestmark = [pytest.mark.local, pytest.mark.skipif(os.getuid() != 0, reason="needs real users")]


@dataclass
class Ground:
    """A partition of alice's in a folder of root's."""

    root: Path
    words: list[str] = field(default_factory=lambda: ["node", "a b"])

    @property
    def bundle(self) -> Path:
        return self.root / BUNDLE

    @property
    def launcher(self) -> Path:
        return self.bundle / "launcher.py"

    def run(
        self,
        *,
        user: int = ALICE,
        owner: int | str = ALICE,
        root: Path | None = None,
        mapped: int | None = None,
        prefix: tuple[str, ...] = (),
        shared: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """The guard as a job's user, who has another number in a user namespace where `mapped` says so."""
        digest = hashlib.sha256(LAUNCHER).hexdigest()
        words = [str(root or self.root), BUNDLE, str(owner), digest]
        words += ["shared" if shared else "private", *self.words]
        words = guard_command(words)
        prelude = _BECOME.format(user=user, mapped=mapped)
        at = words.index("-c") + 1
        return subprocess.run(
            [*prefix, NODE_PYTHON, *words[:at], prelude, words[at], *words[at + 1 :]],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=30,
        )

    def refused(self, *, user: int = ALICE, owner: int | str = ALICE, prefix: tuple[str, ...] = ()) -> str:
        """Why the guard lets nothing run."""
        done = self.run(user=user, owner=owner, prefix=prefix)
        assert (done.returncode, done.stdout) == (EXIT_UNTRUSTED, ""), done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("hyperpod: nothing was run: ")
        return done.stderr.removeprefix("hyperpod: nothing was run: ").strip()


@pytest.fixture
def ground() -> Iterator[Ground]:
    above = Path("/tmp") / f"guard-{os.getpid()}-{os.urandom(4).hex()}"
    root = above / "alice"
    bundle = root / BUNDLE
    bundle.mkdir(parents=True)
    (bundle / "launcher.py").write_bytes(LAUNCHER)
    for path in (root, *root.rglob("*")):
        os.chown(path, ALICE, ALICE)
        path.chmod(0o755 if path.is_dir() else 0o644)
    above.chmod(0o755)
    yield Ground(root)
    shutil.rmtree(above)


def test_the_launcher_of_ones_own_bundle_runs(ground: Ground) -> None:
    done = ground.run()
    assert done.stdout.split() == ["ran", "__main__", *[str(ground.launcher)] * 2, "node", "a", "b"]
    assert (done.returncode, done.stderr) == (0, "")


def test_roots_and_sticky_folders_above_are_no_breach(ground: Ground) -> None:
    os.chown(ground.root, 0, 0)
    ground.root.chmod(0o1777)
    assert ground.run().returncode == 0


def test_a_path_that_may_only_be_passed_is_enough(ground: Ground) -> None:
    os.chown(ground.root.parent, 0, 0)
    ground.root.parent.chmod(0o711)
    assert ground.run().returncode == 0


def test_another_launcher_is_not_run(ground: Ground) -> None:
    ground.launcher.write_bytes(LAUNCHER.replace(b"ran", b"run"))
    assert ground.refused() == "launcher.py was changed after the submit"


def test_without_words_it_only_checks(ground: Ground) -> None:
    ground.words = []
    assert (ground.run().returncode, ground.run().stdout) == (0, "")
    ground.launcher.write_bytes(b"")
    ground.refused()


@pytest.mark.parametrize("depth", range(6))
def test_a_folder_of_another_user_on_the_way(ground: Ground, depth: int) -> None:
    folder = [*ground.launcher.parents][depth]
    os.chown(folder, BOB, BOB)
    assert ground.refused() == f"{folder} belongs to another user (uid {BOB})"


@pytest.mark.parametrize("mode", [0o777, 0o757])
@pytest.mark.parametrize("depth", range(6))
def test_a_folder_that_everybody_may_write_to(ground: Ground, depth: int, mode: int) -> None:
    folder = [*ground.launcher.parents][depth]
    folder.chmod(mode)
    assert ground.refused() == f"other users may write to {folder}"


def test_a_bundle_that_others_may_write_to_is_none_though_it_is_sticky(ground: Ground) -> None:
    ground.bundle.chmod(0o1777)
    assert ground.refused() == f"other users may write to {ground.bundle}"


def test_a_swapped_bundle(ground: Ground) -> None:
    """As one who owns the folder of all runs can do: the same bytes, but the folder is his."""
    ground.bundle.rename(ground.bundle.with_name("old"))
    shutil.copytree(ground.bundle.with_name("old"), ground.bundle)
    os.chown(ground.bundle, BOB, BOB)
    assert ground.refused() == f"{ground.bundle} belongs to another user (uid {BOB})"


def test_a_link_in_the_bundles_place(ground: Ground) -> None:
    """Also one of the owner's own: our folders have no links, so this one is no folder of ours."""
    real = ground.bundle.rename(ground.bundle.with_name("real"))
    ground.bundle.symlink_to(real)
    os.lchown(ground.bundle, ALICE, ALICE)
    assert ground.refused() == f"{ground.bundle} is a link or not a folder"


def test_a_link_above_the_partition_is_followed_where_only_trusted_users_can_have_laid_it(ground: Ground) -> None:
    link = ground.root.with_name("fsx")
    link.symlink_to("../" + ground.root.parent.name + "/alice")
    done = ground.run(root=link)
    assert done.stdout.split()[2] == str(link / BUNDLE / "launcher.py")
    again = ground.root.with_name("again")
    again.symlink_to(link)
    assert ground.run(root=again).returncode == 0
    os.lchown(link, BOB, BOB)
    done = ground.run(root=again)
    assert (done.returncode, done.stdout) == (EXIT_UNTRUSTED, "")
    assert f"{link} is a link of another user (uid {BOB})" in done.stderr


def test_links_in_a_circle_end(ground: Ground) -> None:
    link = ground.root.with_name("circle")
    link.symlink_to("circle")
    assert ground.run(root=link).returncode == EXIT_UNTRUSTED


def test_a_link_in_the_launchers_place(ground: Ground) -> None:
    real = ground.launcher.rename(ground.launcher.with_name("real.py"))
    ground.launcher.symlink_to(real)
    assert ground.refused() == "launcher.py is not a regular file"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_no_file_in_the_launchers_place(ground: Ground, make: Callable[[Path], None]) -> None:
    ground.launcher.unlink()
    make(ground.launcher)
    os.chown(ground.launcher, ALICE, ALICE)
    assert ground.refused() == "launcher.py is not a regular file"


def test_a_launcher_of_another_user_or_that_others_may_write_to(ground: Ground) -> None:
    """It is loaded once more by its path for each rank: the right bytes now are not enough."""
    ground.launcher.chmod(0o666)
    assert ground.refused() == "other users may write to launcher.py"
    ground.launcher.chmod(0o644)
    os.chown(ground.launcher, BOB, BOB)
    assert ground.refused() == f"launcher.py belongs to another user (uid {BOB})"


def test_a_group_without_other_people_may_write(ground: Ground) -> None:
    """As with umask 002, where each user has a group of his own."""
    ground.root.chmod(0o2775)
    assert ground.run().returncode == 0


@pytest.mark.parametrize("how", ["member", "first group"])
def test_a_group_with_other_people_may_not(ground: Ground, how: str) -> None:
    people = ground.root.with_name("passwd")
    people.write_text(f"root:x:0:0::/:\nbob:x:{BOB}:{CAROL if how == 'first group' else BOB}::/:\n")
    groups = ground.root.with_name("group")
    groups.write_text(f"root:x:0:\nteam:x:{CAROL}:{'bob' if how == 'member' else ''}\n")
    mounts = f"mount --bind {people} /etc/passwd && mount --bind {groups} /etc/group"
    there = ("unshare", "--mount", "sh", "-c", f'{mounts} && exec "$0" "$@"')
    os.chown(ground.root, ALICE, CAROL)
    ground.root.chmod(0o2775)
    assert ground.run().returncode == 0  # a number that nobody has here
    assert ground.refused(prefix=there) == f"other users may write to {ground.root}"
    assert ground.run(prefix=there, shared=False).returncode == 0
    ground.root.chmod(0o3775)
    assert ground.run(prefix=there).returncode == 0


def test_a_bundle_that_was_opened_to_the_jobs_user(ground: Ground) -> None:
    """The group bits are the mask of its access list then."""
    ground.root.chmod(0o700)
    for folder in (ground.root, *list(ground.bundle.relative_to(ground.root).parents)[:-1]):
        grant_traversal(ground.root / folder, CAROL)
    _open(ground.bundle, CAROL)
    assert ground.bundle.stat().st_mode & 0o020
    assert ground.run(user=CAROL).returncode == 0
    assert ground.refused() == f"other users may write to {ground.bundle}"  # a job of alice's own
    _open(ground.bundle, BOB)
    assert ground.refused(user=CAROL) == f"other users may write to {ground.bundle}"


def _open(bundle: Path, uid: int) -> None:
    """Let a user into a bundle of alice's, as she does."""
    child = os.fork()
    if child == 0:
        os.setresuid(ALICE, ALICE, ALICE)
        grant_tree(bundle, uid)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_the_job_of_another_user_sees_whose_bundle_it_is(ground: Ground) -> None:
    assert ground.run(user=CAROL, owner=ALICE).returncode == 0
    assert ground.refused(user=CAROL, owner=BOB).endswith(f"(uid {ALICE})")


def test_in_a_container_with_other_numbers_the_digest_decides(ground: Ground) -> None:
    assert ground.run(user=CAROL, mapped=0, owner=ALICE).returncode == EXIT_UNTRUSTED
    assert ground.run(user=CAROL, mapped=0, owner=ANY_OWNER).returncode == 0
    ground.launcher.write_bytes(b"print('other')\n")
    assert ground.run(user=CAROL, mapped=0, owner=ANY_OWNER).returncode == EXIT_UNTRUSTED


def test_in_a_user_namespace_foreign_folders_are_trusted_above_the_bundle_only(ground: Ground) -> None:
    os.chown(ground.root, 0, 0)
    done = ground.run(mapped=1000, owner=1000)
    assert (done.returncode, done.stderr) == (0, "")
    os.chown(ground.bundle.parent, BOB, BOB)
    done = ground.run(mapped=1000, owner=1000)
    assert (done.returncode, done.stdout) == (EXIT_UNTRUSTED, "")


def test_a_bundle_that_is_gone_is_no_breach(ground: Ground) -> None:
    shutil.rmtree(ground.bundle)
    done = ground.run()
    assert done.returncode == 86
    assert done.stderr.startswith("hyperpod: the storage of the bundle failed: ")


def test_the_guard_travels_in_single_quotes() -> None:
    source = guard_source()
    assert "'" not in source
    assert source.isascii()
    assert len(source) < 6000


def test_the_seal_is_that_of_the_launcher_of_this_version() -> None:
    from hyperpod_jlab.launcher import launcher_source

    assert GuardPolicy.current() == GuardPolicy(os.getuid(), hashlib.sha256(launcher_source()).hexdigest())
    assert GuardPolicy.current(200001).owner == 200001
