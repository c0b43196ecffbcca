"""Facts of instance types from EC2. What it says of one is kept in the user's cache directory, so that no submit waits for it twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.instance_types import InstanceType, ec2_name, instance_type, of_ec2
from hyperpod_jlab.storage.presence import own_cache

_NAME = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")

_KEPT = 30 * 86400.0
"""Seconds for which an answer counts: types do not change."""

_SILENT = 3600.0
"""Seconds for which EC2 is not asked again, where it could not say and the table can."""


async def described_types(aws: Aws, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """EC2's descriptions of types, all by EC2's names; those that it does not know in this region are left out.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    wanted = [{"Name": "instance-type", "Values": sorted(names)}]
    # By a filter, for by names one that is not there hides all others.
    told = await aws.call("ec2", "DescribeInstanceTypes", Filters=wanted)
    return {str(one["InstanceType"]): one for one in told.get("InstanceTypes") or ()}


async def asked_type(name: str) -> InstanceType | HyperpodError | None:
    """What EC2 says of a type, else what the table has of it. EC2 has few seconds to say it.

    Args:
        name: The type, with or without SageMaker's ``ml.`` before it.

    Returns:
        Its facts. Where neither knows it: why EC2 could not be asked, or None when it could.
    """
    name = ec2_name(name)
    known = instance_type(name)
    if not _NAME.fullmatch(name):
        return known
    seen = await asyncio.to_thread(_read)
    facts, when = seen.get(name, (None, 0.0))
    age = time.time() - when
    if 0 <= age < _KEPT and facts is not None:
        return facts
    if 0 <= age < _SILENT and known is not None:
        return known
    refusal = None
    try:
        told = (await described_types(Aws(hasty=True), [name])).get(name)
        facts = of_ec2(told) if told is not None else None
    except HyperpodError as error:
        facts, refusal = None, error
    await asyncio.to_thread(_write, {**seen, name: (facts, time.time())})
    return facts or known or refusal


def _file() -> Path | None:
    folder = own_cache()
    return None if folder is None else folder / "instance-types.json"


def _read() -> dict[str, tuple[InstanceType | None, float]]:
    """What EC2 has said, and when; None where it could not."""
    file = _file()
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file is not None else {}
        return {
            str(name): (InstanceType(**facts) if facts is not None else None, float(when))
            for name, (facts, when) in found.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(seen: Mapping[str, tuple[InstanceType | None, float]]) -> None:
    file = _file()
    if file is None:
        return
    rows = {
        name: (asdict(facts) if facts is not None else None, when)
        for name, (facts, when) in seen.items()
    }
    new = file.with_name(f"{file.name}.{os.getpid()}")
    with contextlib.suppress(OSError):  # EC2 is asked again then
        new.write_text(json.dumps(rows), encoding="utf-8")
        new.replace(file)
