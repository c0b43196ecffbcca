"""``hpj admin``: commands for administrators."""

from __future__ import annotations

import click

from hyperpod_jlab.cli.group import Entry, LazyGroup, Section

_HELP = """\
Tasks of administrators: mount a file system in the spaces of a Studio domain, check and create HyperPod clusters, and print IAM policies.
"""

_COMMANDS = (
    Section(
        "File system of a Studio domain",
        (
            Entry("plan", "admin.fsx.commands", "Show what would change. Change nothing."),
            Entry("apply", "admin.fsx.commands", "Apply the changes."),
            Entry("status", "admin.fsx.commands", "Show drift from the desired state."),
            Entry("destroy", "admin.fsx.commands", "Remove what was set up; keep the data."),
        ),
    ),
    Section(
        "Lifecycle configurations",
        (Entry("lifecycle", "admin.lifecycle.commands", "Print the script or an example of its settings file."),),
    ),
    Section(
        "HyperPod clusters",
        (
            Entry("validate", "admin.cluster_config.commands", "Check a cluster's configuration."),
            Entry("create-cluster", "admin.cluster_config.commands", "Create a cluster from a file."),
        ),
    ),
    Section("IAM", (Entry("policy", "admin.permissions.commands", "Print the IAM policy that features need."),)),
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
