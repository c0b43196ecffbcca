"""Whether what a manifest names as its images can be names of images, which the API server does not look at.

The grammar is that of distribution/reference, by which the nodes' kubelets read them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.orchestrators.kubernetes.sending.patch import templates

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_ALGORITHM = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_HOST}/)?{_PART}(?:/{_PART})*)(?::{_TAG})?(?:@{_ALGORITHM}:[0-9a-fA-F]{{32,}})?"
)
_LONGEST_NAME = 255
_LONGEST = 2000
"""Characters of what is looked at: nothing longer can be a name with its tag and digest."""


def is_image_name(text: str) -> bool:
    """Whether it can be the name of an image: ``registry:port/name/name:tag@digest``, most of it optional."""
    found = _REFERENCE.fullmatch(text) if len(text) <= _LONGEST else None
    return found is not None and len(found["name"]) <= _LONGEST_NAME


def image_findings(document: Mapping[str, Any], field: str | None) -> Iterator[Finding]:
    """An error for each image of an object that can be none.

    Args:
        document: The object.
        field: The field of the spec that the images come from.
    """
    for image in dict.fromkeys(_images(document)):
        if not is_image_name(image):
            yield Finding(
                level="error",
                code="image_name",
                message=f"'{image[:100]}' is no name of an image: it is written registry/name:tag, the name in small letters",
                hint="look at what your registry, or docker images, calls it",
                field=field,
            )


def _images(document: Mapping[str, Any]) -> Iterator[str]:
    for template in templates(dict(document)):
        spec = template.get("spec")
        for kind in ("containers", "initContainers"):
            named = spec.get(kind) if isinstance(spec, dict) else None
            yield from _of(named if isinstance(named, list) else [])
    spec = document.get("spec")
    yield from _of([spec.get("trainer")] if isinstance(spec, dict) else [])


def _of(containers: list[Any]) -> Iterator[str]:
    for one in containers:
        image = one.get("image") if isinstance(one, dict) else None
        if isinstance(image, str) and image:  # without one, the API server has its word to say
            yield image
