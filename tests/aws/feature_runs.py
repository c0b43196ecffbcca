"""How to run each feature of `aws.permissions`, as a user does; who adds a feature adds its line here."""

from __future__ import annotations

from collections.abc import Mapping

RUNS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "clusters": (("clusters", "--hyperpod"), ("doctor",)),
    "nodes": (("nodes", "--hyperpod", "ml-cluster"),),
    "space": (("doctor",),),
}
"""Command lines by feature, for the account of `testbed.aws.example` seen from a space of Studio."""
