"""``hpj admin``: what administrators do."""

from __future__ import annotations

import click

from hyperpod_jlab.cli.group import Entry, LazyGroup, Section

_HELP = """\
What administrators do: give the people of a Studio domain the file system of a cluster, make clusters, and rights at AWS.
"""

_COMMANDS = (
    Section(
        "A file system for the people of a Studio domain",
        (
            Entry("plan", "wiring", "Say what is to be done, and change nothing."),
            Entry("apply", "wiring", "Do it."),
            Entry("status", "wiring", "Say what is not as it is to be."),
            Entry("destroy", "taking_back", "Take back what was set; the data stay."),
        ),
    ),
    Section(
        "Scripts that run when a space starts",
        (Entry("lifecycle", "lifecycle", "Show a script, or an example of the file for it."),),
    ),
    Section(
        "HyperPod clusters",
        (
            Entry("validate", "admin_clusters", "Check a cluster's configuration."),
            Entry("create-cluster", "admin_clusters", "Make a cluster, after checking it."),
            Entry("update-cluster", "admin_clusters", "Change a cluster to what a file says."),
            Entry("delete-cluster", "admin_clusters", "Delete a cluster; its data stay."),
        ),
    ),
    Section(
        "Rights",
        (Entry("policy", "policy", "Print the IAM policy that the features need."),),
    ),
    Section(
        "What could not be tried",
        (Entry("verify-aws", "verify_aws", "Check on this account what is believed of AWS."),),
    ),
)


@click.group(
    cls=LazyGroup,
    sections=_COMMANDS,
    help=_HELP,
    examples=(
        "hpj admin plan --domain d-abc123 --cluster ml-cluster --partition-mode per-user",
        "hpj admin policy > policy.json",
    ),
)
def admin() -> None:
    """What administrators do."""
