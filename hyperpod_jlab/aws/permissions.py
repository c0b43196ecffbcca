"""The smallest policy that grants what features need (see `aws.features`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hyperpod_jlab.aws.feature import Feature, Permission
from hyperpod_jlab.aws.features import FEATURES
from hyperpod_jlab.model.errors import InvalidInputError, nearest_hint

__all__ = ["FEATURES", "Feature", "Permission", "choose", "policy"]


def choose(names: Sequence[str], features: Sequence[Feature] = FEATURES) -> list[Feature]:
    """Features by their names.

    Args:
        names: The names; none: all features that change nothing and are no admin's.
        features: The features to choose from.

    Raises:
        InvalidInputError: There is no feature of a name.
    """
    if not names:
        return [one for one in features if not (one.changes or one.for_admins)]
    known = {feature.name: feature for feature in features}
    for name in names:
        if name not in known:
            raise InvalidInputError(
                f"there is no feature '{name[:60]}'",
                hint=nearest_hint(name, known) or f"there are: {', '.join(known)}",
                detail={"field": "features"},
            )
    return [known[name] for name in names]


def policy(
    features: Iterable[Feature], partition: str = "aws", region: str = "*", account: str = "*"
) -> dict[str, Any]:
    """The smallest IAM policy with which features work: one statement for each kind of resource.

    Args:
        features: The features.
        partition: ``aws``, ``aws-cn`` or ``aws-us-gov``.
        region: A region, or a star for all.
        account: The account's twelve digits, or a star for all.
    """
    granted: dict[str, set[str]] = {}
    for feature in features:
        for one in feature.permissions:
            where = one.resource.format(partition=partition, region=region, account=account)
            granted.setdefault(where, set()).add(one.action)
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": sorted(actions), "Resource": resource}
            for resource, actions in sorted(granted.items())
        ],
    }
