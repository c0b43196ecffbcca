"""Options that name AWS resources: invalid names are refused before AWS is called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.validation import DOMAIN_ID, FILE_SYSTEM_ID, LABEL, REGION

if TYPE_CHECKING:
    TextParam = click.ParamType[Any]  # newer versions of click are generic in a type's result
else:
    TextParam = click.ParamType


_NAMES = {
    "domain": (DOMAIN_ID, "the id of a Studio domain", "such as d-abc123"),
    "file_system": (FILE_SYSTEM_ID, "the id of a file system", "such as fs-0123456789abcdef0"),
    "cluster": (LABEL, "the name of a cluster", "'hpj clusters' lists them"),
    "region": (REGION, "an AWS region", "such as us-west-2"),
}
"""Patterns by option name, with a description and examples."""


def aws_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse invalid names: a callback of an option.

    Raises:
        InvalidInputError: The name is invalid.
    """
    del context
    field = str(parameter.name)
    pattern, description, hint = _NAMES[field]
    if value is not None and re.fullmatch(pattern, value, re.ASCII) is None:
        option = f"--{field.replace('_', '-')}"
        problem = f"'{value[:60]}' is not {description}" if value else f"{description} is missing"
        raise InvalidInputError(f"{option}: {problem}", hint=hint, detail={"field": field})
    return value
