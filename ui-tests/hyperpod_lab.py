"""JupyterLab of a user with an AWS account, which the testbed plays on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab_server import PYTHON, LabServer, lab_server

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hyperpod_jlab.storage.mounts import VARIABLE
from testbed.aws.endpoint import Endpoint
from testbed.aws.example import ACCESS_KEY, example_account
from testbed.aws.server import AwsServer

REGION = "us-west-2"


@contextmanager
def hyperpod_lab(
    home: Path,
    config: str | None = None,
    programs: Path | None = None,
    mounts: Path | None = None,
    started_by: tuple[str, ...] = (),
) -> Iterator[tuple[LabServer, Endpoint]]:
    """A server with credentials of the testbed's example account, and that account; no answer of it may leave botocore's model.

    Args:
        home: The user's home.
        config: The configuration, in place of one with only the embedded cluster.
        programs: A folder whose programs the user has before all others.
        mounts: The table of mounts; default: this machine's.
        started_by: What the server is started by, such as setpriv.
    """
    endpoint = Endpoint(example_account(REGION))
    with AwsServer(endpoint) as aws:
        environment = {
            "AWS_ENDPOINT_URL": aws.url,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": "of-the-testbed",
        }
        if programs is not None:
            environment["PATH"] = f"{programs}:{Path(PYTHON).parent}:/usr/bin:/bin"
        if mounts is not None:
            environment[VARIABLE] = str(mounts)
        with lab_server(home, config=config, environment=environment, started_by=started_by) as server:
            yield server, endpoint
    assert endpoint.drift == []
