"""Removing folders that a job has closed, as an ordinary user."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, tempfile
from pathlib import Path
from hyperpod_jlab.storage.removal import Extent, remove_tree
if os.getuid() == 0:
    os.setgid(65534), os.setuid(65534)
root = Path(tempfile.mkdtemp())
tree = root / "tree"
(tree / "closed" / "deep").mkdir(parents=True)
(tree / "closed" / "deep" / "file").write_text("12345")
(tree / "closed" / "other").write_text("123")
os.link(tree / "closed" / "other", tree / "again")
(tree / "closed" / "deep").chmod(0)
(tree / "closed").chmod(0o500)
extent = Extent()
extent.add(tree)
(tree / "closed" / "deep").chmod(0o500)
remove_tree(tree)
print(tree.exists(), extent.files, sum(extent.shared.values()))
remove_tree(tree)
root.rmdir()
"""


def test_closed_folders_are_opened_and_removed():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd="/")
    assert (done.stdout, done.stderr) == ("False 2 2\n", "")
