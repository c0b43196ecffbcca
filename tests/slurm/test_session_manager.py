"""Runs on a real cluster whose login nodes are reached by what AWS knows of them: through Session Manager, or by the names that AWS gives them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.features.terminal.service import ssh_config
from hyperpod_jlab.run.services import Hyperpod
from tests.slurm.hyperpod_fixtures import SlurmSession, make_hyperpod
from tests.slurm.login_fixtures import cluster, endpoint, names

__all__ = ["cluster", "endpoint"]

AWS_CLI = Path(__file__).parents[1] / "aws" / "aws_cli.py"


@pytest.fixture
def at_aws(slurm, cluster, tmp_path, monkeypatch):
    """The testbed's login nodes as instances of the cluster, an ``aws`` on the PATH that leads to them, and ssh's configuration without their addresses."""
    ids = sorted(one.instance_id for one in cluster.nodes if one.group == "doors")
    known, places = [], {}
    for ident, host in zip(ids, slurm.login_hosts, strict=True):
        said = subprocess.run(["ssh", "-F", slurm.ssh_config, "-G", host], capture_output=True, text=True, check=True)  # fmt: skip
        told = dict(line.partition(" ")[::2] for line in said.stdout.splitlines())
        places[ident] = (told["hostname"], int(told["port"]))
        key = (slurm.folder / "ssh" / host / "host_key.pub").read_text()
        known.append(f"{ident} {' '.join(key.split()[:2])}\n")
    (tmp_path / "known_hosts").write_text("".join(known))
    (tmp_path / "places.json").write_text(json.dumps(places))
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "aws"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{AWS_CLI}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("TESTBED_SSH", str(tmp_path / "places.json"))
    keys = (
        f"Host *\n  IdentityFile {slurm.ssh_key}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {tmp_path}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
    )
    return {"places": places, "keys": keys}


@pytest.fixture
async def start(slurm, tmp_path):
    """Makes sessions over ssh that are closed after the test."""
    made = []

    def make(**more) -> SlurmSession:
        made.append(SlurmSession(slurm, make_hyperpod(slurm, "ssh", **more), tmp_path))
        return made[-1]

    yield make
    for session in made:
        await session.hyperpod.close()


async def test_a_run_is_sent_by_ssh_through_session_manager(start, at_aws, cluster, endpoint, tmp_path):
    blocks = await ssh_config(Hyperpod(), "ml")
    config = tmp_path / "config"
    config.write_text(blocks.text + at_aws["keys"])
    hosts = [host.name for host in blocks.hosts]
    assert hosts == ["ml-1", "ml-2"]
    session = start(login_nodes=hosts, ssh_config=str(config))
    run = await session.ended(await session.submit("echo through"))
    assert run.state == "succeeded"
    assert session.log(run.run_id) == "through\n"
    begun = [call.given for call in endpoint.calls if call.action == "ssm:StartSession"]
    assert begun
    targets = {f"sagemaker-cluster:{cluster.arn[-12:]}_doors-{ident}" for ident in at_aws["places"]}
    for given in begun:
        assert given["DocumentName"] == "AWS-StartSSHSession"
        assert given["Parameters"] == {"portNumber": ["22"]}
        assert given["Target"] in targets

    endpoint.faults.deny("ssm:StartSession")
    refused = start(login_nodes=hosts, ssh_config=str(config))
    with pytest.raises(HyperpodError, match="not authorized to perform: ssm:StartSession"):
        await refused.hyperpod.engines.get("slurm")._client.transport.run(["true"])


async def test_a_run_is_sent_to_the_login_nodes_that_aws_names(start, slurm, at_aws, cluster, tmp_path):
    placed = sorted(at_aws["places"].items())
    blocks = [
        f"Host {host}\n  HostName {place[0]}\n  Port {place[1]}\n  HostKeyAlias {ident}\n"
        for host, (ident, place) in zip(names(cluster, "doors"), placed, strict=True)
    ]
    config = tmp_path / "config"
    config.write_text("".join(blocks) + at_aws["keys"])
    session = start(login_nodes=[], hyperpod="ml", ssh_config=str(config))
    run = await session.ended(await session.submit("echo found"))
    assert run.state == "succeeded"
    assert session.log(run.run_id) == "found\n"


async def test_the_blocks_name_the_user_and_nothing_that_is_none(endpoint):
    blocks = await ssh_config(Hyperpod(), "ml", "alice")
    assert blocks.text.count("\n  User alice\n") == 2
    for user in ("", "-l", "a b", "a\nProxyCommand id"):
        with pytest.raises(InvalidInputError):
            await ssh_config(Hyperpod(), "ml", user)
