"""The front end's words in other languages are complete, and JupyterLab finds them."""

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_catalogs_have_every_string_and_no_other():
    command = [sys.executable, "scripts/translations.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"scripts/translations.py helps:\n{done.stdout}{done.stderr}"


def test_jupyterlab_finds_the_german_catalog():
    (entry,) = [
        item for item in entry_points(group="jupyterlab.locale") if item.name == "hyperpod_jlab"
    ]
    folder = Path(entry.load().__file__).parent
    catalog = json.loads(
        (folder / "locale/de_DE/LC_MESSAGES/hyperpod_jlab.json").read_text(encoding="utf-8")
    )
    assert catalog[""]["language"] == "de-DE"
    assert catalog["running"] == ["läuft"]
