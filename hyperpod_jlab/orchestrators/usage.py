"""What a run used by its own records: for engines without an accounting, and where the accounting says nothing."""

from __future__ import annotations

from hyperpod_jlab.model.ranges import parse_array
from hyperpod_jlab.model.records import RunRecords
from hyperpod_jlab.model.spec import Accelerators
from hyperpod_jlab.model.usage import Usage, usage_of_records
from hyperpod_jlab.storage.records import BundleReader, DamagedBundleError


def journal_usage(bundle: BundleReader) -> Usage:
    """What the records of a run, or of an array's children, say.

    Raises:
        DamagedBundleError: They cannot be read.
    """
    return usage_of_records(records_of(bundle), accelerators_of(bundle))


def records_of(bundle: BundleReader) -> list[RunRecords]:
    """The records of a run; of an array those of its children that have some: what exists, whatever the array's record claims."""
    records = bundle.read()
    if records.head.array is None or bundle.index is not None:
        return [records]
    indices = frozenset(parse_array(records.head.array).indices)
    there = (index for index in bundle.child_indices() if index in indices)
    return [bundle.child(index, records).read() for index in there]


def accelerators_of(bundle: BundleReader) -> Accelerators | None:
    """What a run has on each node; None where its spec does not tell, as that of a file in the scheduler's own form."""
    try:
        spec = bundle.spec()
    except DamagedBundleError:
        return None
    return None if spec.source.kind == "native" else spec.resources.accelerator
