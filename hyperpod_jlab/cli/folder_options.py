"""Options that say who looks at the folders of a file system, makes and deletes them."""

from __future__ import annotations

from typing import Any

import click

from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.services.folder_keepers import By, FolderPlace, misfit

PLACE_OPTIONS = (
    click.option(
        "--image",
        metavar="REF",
        help="With --folders kubernetes: the image, with a python3 in it, by its digest. Default: the cluster's of the configuration.",
    ),
    click.option(
        "--claim",
        metavar="NAME",
        help="With --folders kubernetes: the claim of the whole file system. Default: the same.",
    ),
    click.option(
        "--namespace",
        metavar="NAME",
        help="With --folders kubernetes: where the claim is. Default: the same.",
    ),
    click.option(
        "--queue", metavar="NAME", help="With --folders slurm: the partition for the job."
    ),
    click.option(
        "--mounted-at",
        metavar="PATH",
        help="Where the whole file system is mounted: on this machine, or with --folders slurm on the nodes (default there: where AWS says that the cluster mounts it, else /fsx).",
    ),
    click.option(
        "--folders",
        "by",
        type=click.Choice(["here", "slurm", "kubernetes", "none"]),
        help="Who looks at folders and makes them: this machine, a job of the Slurm cluster, a Job of the Kubernetes cluster, or nobody. "
        "Default: this machine with --mounted-at, else nobody.",
    ),
)
"""Who looks at folders. In the order in which click takes decorators: from the last to the first."""

FOLDER_OPTIONS = (
    click.option(
        "--cluster-user",
        metavar="UID|NAME|none",
        help="Whom the cluster's jobs run as: let into the folders, and into what is made there, by access lists (ACLs). None: nobody is let into private "
        "folders. Default: who is let in already stays so.",
    ),
    *PLACE_OPTIONS,
)
"""The same, and who is let into folders besides."""


def folder_place(options: dict[str, Any]) -> FolderPlace:
    """What the options say.

    Raises:
        InvalidInputError: They do not go together.
    """
    by: By = options["by"] or ("none" if options["mounted_at"] is None else "here")
    place = FolderPlace(
        by,
        options["mounted_at"],
        options["cluster"],
        options["queue"],
        options["namespace"],
        options["claim"],
        options["image"],
        options.get("cluster_user"),
    )
    found = misfit(place)
    if found is not None:
        name, known = found
        raise InvalidInputError(
            f"--{name.replace('_', '-')} goes with --folders {' or '.join(known)} only",
            detail={"field": name},
        )
    return place
