"""Reading the lifecycle configurations of an account that are ours, and those that are called as ours are to be."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from typing import Any

from hyperpod_jlab.admin.fsx.aws import MARK, PatientAws
from hyperpod_jlab.admin.lifecycle.models import LifecycleConfig
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError

PREFIX = "hyperpod-jlab"
"""What the names of ours begin with, so that no other's tags are asked for (`scripts.name_of`)."""

DOMAIN_MARK = f"{MARK}-domain-"
"""Begin of the tag by which a lifecycle configuration says for which domain it was made: its end is the domain's id, so that two admins never write the same tag."""


async def read_configs(aws: Aws, names: Collection[str]) -> tuple[LifecycleConfig, ...]:
    """Lifecycle configurations that may be ours, of this region.

    Args:
        aws: AWS in the domain's region.
        names: Those that are wanted: of these the text is read too.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    patient = PatientAws(aws)
    found = await patient.listed(
        "sagemaker", "ListStudioLifecycleConfigs", "StudioLifecycleConfigs", NameContains=PREFIX
    )
    read = [await _config(patient, told, names) for told in found]
    return tuple(one for one in read if one is not None)


async def _config(
    aws: PatientAws, told: Mapping[str, Any], names: Collection[str]
) -> LifecycleConfig | None:
    """One of the list; None: it was deleted since the list was made."""
    name, arn = str(told["StudioLifecycleConfigName"]), str(told["StudioLifecycleConfigArn"])
    try:
        tags = await _tags(aws, name, arn)
        text = await read_text(aws, name) if name in names else None
    except NotFoundError:
        return None
    domains = frozenset(
        key.removeprefix(DOMAIN_MARK) for key in tags if key.startswith(DOMAIN_MARK)
    )
    return LifecycleConfig(
        name,
        arn,
        str(told.get("StudioLifecycleConfigAppType") or ""),
        MARK in tags,
        domains,
        text,
    )


async def _tags(aws: PatientAws, name: str, arn: str) -> Mapping[str, str]:
    try:
        return await aws.tags(arn)
    except InvalidInputError:
        # So is it said of tags of what has been deleted; asked for itself, it is not found.
        await read_text(aws, name)
        raise


async def read_text(aws: PatientAws, name: str) -> str | None:
    """The script of a lifecycle configuration; None: what is there is no text.

    Raises:
        NotFoundError: There is none of this name.
        HyperpodError: See `aws.errors`.
    """
    told = await aws.call(
        "sagemaker", "DescribeStudioLifecycleConfig", StudioLifecycleConfigName=name
    )
    try:
        return base64.b64decode(told["StudioLifecycleConfigContent"], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
