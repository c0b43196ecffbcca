"""A space of Studio for the doctor: fixtures of its tests."""

from __future__ import annotations

import pytest

from testbed.aws.example import example_account
from testbed.aws.studio import SimulatedStudio
from tests.aws.conftest import REGION


@pytest.fixture
def space(endpoint, no_aws, tmp_path, home):
    """A space of Studio in whose configuration the Slurm cluster is; its partition is on the file system of that."""
    endpoint.account = example_account(REGION)
    made = SimulatedStudio(tmp_path, REGION)
    made.write(endpoint.account)
    made.mount_point.mkdir(parents=True)
    for name, value in made.environment.items():
        no_aws.setenv(name, value)
    configure(home, made.mount_point)
    return made


def configure(home, partition, storage="/fsx/alice"):
    home.config.write_text(
        f'[storage]\npath = "{partition}"\n[clusters.ml]\norchestrator = "slurm"\n'
        f'hyperpod = "ml-cluster"\nstorage = "{storage}"\ncommands = "/nowhere"\n'
    )


@pytest.fixture
def network(endpoint, space):
    return endpoint.account.networks[REGION]


@pytest.fixture
def checks(hpj):
    def found(*words):
        told = hpj("doctor", "--json", *words).json["checks"]
        return {one["key"]: one for one in told}

    return found


def seen(check):
    return check["level"], check["evidence"]
