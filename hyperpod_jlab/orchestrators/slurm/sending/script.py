"""The sbatch script of a run, as it lies in its bundle."""

from __future__ import annotations

from hyperpod_jlab.orchestrators.slurm.sending.render import FILENAME
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.atomic import storage_errors
from hyperpod_jlab.storage.records import BundleReader

_LARGEST = 16 << 20


def read_script(bundle: BundleReader) -> bytes:
    """The script's bytes. Blocking.

    Raises:
        StorageError: It cannot be read.
    """
    path = bundle.folder / FILENAME
    with storage_errors(path):
        return descent.read(path, _LARGEST)
