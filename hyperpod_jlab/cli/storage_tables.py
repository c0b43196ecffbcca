"""File systems, partitions and their paths on each side, for people."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hyperpod_jlab.cli.output import Table, print_fields, print_table
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.file_system import Association, FileSystem
from hyperpod_jlab.model.quantities import format_size
from hyperpod_jlab.services.separation import Separation
from hyperpod_jlab.services.storage import Overview, PathView, Side
from hyperpod_jlab.services.storage_places import Place

_FILE_SYSTEM_TITLES = (
    *("MOUNTED AT", "KIND", "FOLDER", "FREE", "SIZE", "ACCESS", "RUNS", "ISOLATION"),
    "OTHERS",
)


def print_overview(overview: Overview) -> None:
    """All storage here."""
    partition = overview.partition
    print_fields(
        [
            ("path", partition.path),
            ("chosen by", overview.chosen_by),
            ("runs and code", overview.folder),
            ("shared", "yes" if overview.runs_shared else "no"),
            *_file_system_fields(partition),
            ("index", overview.index or "in memory only"),
            ("problem", partition.problem),
        ]
    )
    print()
    rows = [_row(place) for place in overview.file_systems]
    print_table(Table(_FILE_SYSTEM_TITLES, rows))
    _print_aws(overview.file_systems)
    print()
    _print_sides(overview.sides, in_studio=overview.in_studio)
    _print_evidence(partition)
    _print_separation(overview.separation)
    separation = overview.separation
    _print_notes([*(separation.sentences if separation else ()), *overview.notes])


def _print_separation(found: Separation | None) -> None:
    """Who owns the folders above our own, and whether that keeps other users out."""
    if found is None:
        return
    print()
    rows = [
        (str(one.path), str(one.uid), f"{one.mode:04o}", one.reason if one.problem else "ok")
        for one in found.parents
    ]
    print_table(Table(("FOLDER ABOVE", "OWNER", "MODE", ""), rows))


def print_path(view: PathView) -> None:
    """One path."""
    place = view.place
    print_fields(
        [
            ("path", place.path),
            ("runs go here", "yes" if place.runs_go_here else "no"),
            *_file_system_fields(place),
            ("on the file system", place.path_there),
            ("problem", place.problem),
        ]
    )
    _print_aws([place])
    print()
    _print_sides(view.sides, in_studio=view.in_studio)
    _print_evidence(place)
    _print_notes(view.notes)


def _file_system_fields(place: Place) -> list[tuple[str, str | None]]:
    isolation = place.isolation
    others = None if isolation is None else ", ".join(isolation.readers) or "no rights"
    return [
        ("file system", f"{place.kind or 'unknown'} at {place.mount}"),
        ("mounted from", place.source),
        ("access", _access(place)),
        ("free", f"{_free(place)} of {_size(place)}" if place.room else None),
        ("isolation", isolation.words if isolation else None),
        ("others", others),
    ]


def _row(place: Place) -> Sequence[str]:
    isolation = place.isolation
    others = ", ".join(isolation.readers) if isolation else ""
    return (
        place.path,
        place.kind or "-",
        place.mounted_folder or "-",
        _free(place),
        _size(place),
        _access(place),
        "go here" if place.runs_go_here else "-",
        isolation.words if isolation else "-",
        place.problem or others or ("no rights" if isolation else "-"),
    )


def _access(place: Place) -> str:
    if place.read_only:
        return "read only"
    if place.writable is None:
        return "not there yet" if not place.exists and place.problem is None else "-"
    return "read and write" if place.writable else "not yours to write"


def _free(place: Place) -> str:
    return format_size(place.room.free) if place.room else "-"


def _size(place: Place) -> str:
    return format_size(place.room.total) if place.room else "-"


def _print_aws(places: Sequence[Place]) -> None:
    for found in dict.fromkeys(place.aws for place in places if place.aws is not None):
        print()
        print_fields(
            [
                ("at AWS", found.name),
                ("state", ": ".join(filter(None, (found.state, found.problem)))),
                ("type", _type(found)),
                ("capacity", format_size(found.capacity) if found.capacity else None),
                ("throughput", found.throughput),
                ("maintenance", found.maintenance),
                ("root of a client", _squash(found)),
                *(("linked", _association(link)) for link in found.associations or ()),
            ]
        )


def _type(found: FileSystem) -> str:
    version = f"Lustre {found.version}" if found.version else None
    return " ".join(filter(None, (found.deployment, found.storage_type, version)))


def _squash(found: FileSystem) -> str:
    return f"is taken as {found.root_squash}" if found.root_squash else "may read everything"


def _association(link: Association) -> str:
    parts = [f"{link.folder} with {link.repository}", link.state, link.problem]
    if link.imports:
        parts.append(f"imports {' '.join(link.imports)}")
    if link.exports:
        parts.append(f"exports {' '.join(link.exports)}")
    return ", ".join(part for part in parts if part)


def _print_sides(sides: Sequence[Side], *, in_studio: bool) -> None:
    here = "STUDIO" if in_studio else "HERE"
    rows = [
        (
            side.cluster,
            side.orchestrator,
            side.side,
            side.here or "-",
            side.there or "-",
            side.reason or "",
        )
        for side in sides
    ]
    print_table(Table(("CLUSTER", "KIND", "SIDE", here, "THERE", "REASON"), rows))


def _print_evidence(place: Place) -> None:
    if place.isolation is None:
        return
    print(f"\nisolation: {place.isolation.words}, for")
    for line in place.isolation.evidence:
        print(f"  - {printable(line)}")


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"note: {printable(note)}", file=sys.stderr)
