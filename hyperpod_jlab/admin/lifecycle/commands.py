"""``hpj admin lifecycle``: print the scripts of lifecycle configurations, to review them before they are attached."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.admin.fsx.reconcile import cluster_facts
from hyperpod_jlab.admin.lifecycle.models import LifecycleFile, read_lifecycle_file, render_scripts
from hyperpod_jlab.admin.lifecycle.scripts import APPS
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.cli.aws_names import aws_name
from hyperpod_jlab.cli.group import CONTEXT, Entry, HpjCommand, LazyGroup, Section
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.slow_steps import slow_steps

if TYPE_CHECKING:
    from hyperpod_jlab.admin.lifecycle.scripts import App

_GROUP = """\
Print lifecycle configurations: scripts that Studio runs when a space starts. 'hpj admin apply --lifecycle-file FILE' attaches them.
"""
_SHOW = """\
Print the script that the settings file produces. Nothing is attached.

With --cluster, settings that are not in the file, such as the orchestrator, are read from AWS.
"""
_EXAMPLE = """\
Print an example file for --lifecycle-file, with comments. Replace each "..."; until then, the file is rejected.
"""

EXAMPLE = """\
# Settings of the scripts that run when a space starts: hpj admin plan ... --lifecycle-file FILE
# Replace each "...". Paths that do not begin with a slash or s3:// are relative to the storage partition.

apps = ["jupyterlab", "code-editor"]   # applications to set up
start = "built-in"                     # runs before any other script; or "default": selected for new spaces, users can select another one

# hyperpod_jlab itself: a wheel or a folder of wheels (with a list SHA256SUMS), or "hyperpod-jlab==VERSION" from the package index.
# In mode per-user, use s3://: users cannot read the partitions of others.
package = "hyperpod-jlab/wheels/"
package_sha256 = "..."                 # sha256sum of the wheel, or of SHA256SUMS

# With --cluster, settings that are missing here are read from AWS: cluster, region, orchestrator ("slurm" or "eks"), eks, file_system.

# Slurm: commands in the space, or ssh to a login node.
login_nodes = ["..."]                  # [USER@]HOST[:PORT]
# slurm_client = "hyperpod-jlab/slurm-client.tar.gz"
# slurm_client_sha256 = "..."
# slurm_auth = "munge"                 # or "jwt", with slurm_token = FILE
# munge_key = "secret:NAME"
# munge_key_sha256 = "..."

# EKS:
# namespace = "research"
# image = "..."
# claim = "fsx"
# kubeconfig = false                   # do not add the cluster to ~/.kube/config; kubectl and helm need it, runs do not

# Programs for terminals (kubectl, helm, session-manager-plugin), in an archive made by lifecycle-configs/make-tools.sh.
# tools = "hyperpod-jlab/tools.tar.gz"
# tools_sha256 = "..."
"""


@click.group(
    "lifecycle",
    cls=LazyGroup,
    sections=(
        Section(
            "Commands",
            (
                Entry("show", "admin.lifecycle.commands", "Print the script of an application."),
                Entry("example", "admin.lifecycle.commands", "Print an example settings file."),
            ),
        ),
    ),
    help=_GROUP,
    context_settings=CONTEXT,
    examples=(
        "hpj admin lifecycle example > lifecycle.toml",
        "hpj admin lifecycle show --app jupyterlab --lifecycle-file lifecycle.toml --cluster ml-cluster",
    ),
)
def lifecycle() -> None:
    """Scripts of lifecycle configurations."""


@click.command(
    "show",
    cls=HpjCommand,
    help=_SHOW,
    examples=(
        "hpj admin lifecycle show --app jupyterlab --lifecycle-file lifecycle.toml --cluster ml-cluster",
        "hpj admin lifecycle show --app code-editor --lifecycle-file lifecycle.toml > script.sh",
    ),
)
@click.option("--app", type=click.Choice(APPS), required=True, help="Application.")
@click.option(
    "--lifecycle-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="Settings of the script (TOML); see 'hpj admin lifecycle example'.",
)
@click.option("--cluster", metavar="NAME", callback=aws_name, help="HyperPod cluster to look up in AWS.")
@click.option(
    "--region", metavar="REGION", callback=aws_name, help="AWS region. Default: the region of the AWS configuration."
)
def show(app: App, lifecycle_file: Path, cluster: str | None, region: str | None) -> None:
    """Print a script."""
    file = read_lifecycle_file(lifecycle_file)

    async def found(_: object) -> Mapping[str, str | None]:
        async with slow_steps("asking AWS"):
            return await cluster_facts(Aws(region), cluster)

    cluster_factss: Mapping[str, str | None] = {"region": region}
    if cluster is not None:
        cluster_factss = with_services(found)
    scripts = render_scripts(LifecycleFile((app,), file.start, file.settings), cluster_factss)[app]
    if invocation().as_json:
        print_json({"name": scripts.name, "app": app, "script": scripts.text})
    else:
        click.echo(scripts.text, nl=False)


@click.command("example", cls=HpjCommand, help=_EXAMPLE, examples=("hpj admin lifecycle example > lifecycle.toml",))
def example() -> None:
    """Print an example."""
    if invocation().as_json:
        print_json({"text": EXAMPLE})
    else:
        click.echo(EXAMPLE, nl=False)
