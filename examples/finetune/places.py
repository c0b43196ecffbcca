"""Where the files of the journey are, and what they are."""

import hashlib
import os
from pathlib import Path

PART = 1 << 16
"""Bytes of weights that are read at a time."""


def partition_of(bundle):
    """The storage partition that a run's bundle is on."""
    above = (path.parent for path in Path(bundle).parents if path.name.startswith(".hyperpod"))
    return next(above, Path.cwd())


def folder_of(name):
    """A folder by its path; a relative path begins at the storage partition, which all steps and all nodes see."""
    return partition_of(os.environ.get("HYPERPOD_BUNDLE", "")) / name


def needed(path, script):
    """A file that a script leaves when it is done; without it, an error says which one to run."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing. Run {script} with this --folder first.")
    return path


def quiet():
    """Without transformers' bars and its warnings about itself: in a log they are many lines."""
    import warnings

    from transformers.utils import logging

    logging.disable_progress_bar()
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")


def fingerprint(base):
    """A hash of a model's configuration, and of the names, the sizes and parts of its weights. Reading all of them would take minutes."""
    found = hashlib.sha256((base / "config.json").read_bytes())
    for path in sorted(base.glob("*.safetensors")):
        size = path.stat().st_size
        found.update(f"{path.name} {size}".encode())
        with path.open("rb") as file:
            for begin in range(0, size, max(size // 16, PART)):
                file.seek(begin)
                found.update(file.read(PART))
    return found.hexdigest()


def add_folder(parser):
    """The option that all steps have."""
    parser.add_argument(
        "--folder",
        type=folder_of,
        default=folder_of("finetune"),
        help="folder of all steps; a relative path begins at the storage partition (default: finetune)",
    )
