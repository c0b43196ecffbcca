"""Whose bundle it is that the embedded cluster is to run: the guard's own rules, before a supervisor reads or writes anything in it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from hyperpod_jlab.launcher import guard
from hyperpod_jlab.model.errors import StorageDeniedError
from hyperpod_jlab.orchestrators.seal import UNTRUSTED, refusal
from hyperpod_jlab.storage.atomic import storage_errors
from hyperpod_jlab.storage.partition import Partition


class UntrustedBundleError(StorageDeniedError):
    """A bundle that is not this user's, or that somebody else could change: nothing in it is to be run, and nothing written to it."""

    default_code = UNTRUSTED


def check_bundle(partition: Partition, bundle: Path) -> None:
    """Refuse a bundle that is not this user's, or that somebody else could change.

    Args:
        partition: The partition.
        bundle: The bundle's folder.

    Raises:
        UntrustedBundleError: It is not to be used.
        StorageError: It cannot be opened.
    """
    os.close(_opened(partition, bundle))


def launcher_digest(partition: Partition, bundle: Path) -> str:
    """The SHA-256 of the launcher in a bundle, which is checked as by `check_bundle`.

    Raises:
        UntrustedBundleError: It is not to be used.
        StorageError: It cannot be opened or read.
    """
    descriptor = _opened(partition, bundle)
    try:
        with storage_errors(bundle):
            return hashlib.sha256(guard.read_launcher(descriptor, _users())).hexdigest()
    except guard.UntrustedError as error:
        raise _refused(bundle, error) from error
    finally:
        os.close(descriptor)


def _opened(partition: Partition, bundle: Path) -> int:
    try:
        with storage_errors(bundle):
            below = str(bundle.relative_to(partition.root))
            return guard.open_bundle(str(partition.root), below, _users(), partition.shared)
    except guard.UntrustedError as error:
        raise _refused(bundle, error) from error


def _users() -> set[int]:
    return {0, os.getuid()}


def _refused(bundle: Path, error: guard.UntrustedError) -> UntrustedBundleError:
    return UntrustedBundleError(
        refusal(bundle.name, str(error)),
        hint="see that only you may write to the bundle and to the folders above it, then submit again: hpj doctor",
        detail={"path": str(bundle)},
    )
