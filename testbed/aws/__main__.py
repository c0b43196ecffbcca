"""``python -m testbed.aws``: serve an example account until Ctrl-C, and print what lets a shell use it."""

import argparse
import contextlib
import threading

from testbed.aws.endpoint import Endpoint
from testbed.aws.example import DOMAIN, FILE_SYSTEM, add_people, client_environment, example_account
from testbed.aws.example_telemetry import add_telemetry
from testbed.aws.server import AwsServer
from testbed.aws.state import Profile
from testbed.aws.timeline import Timeline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--region", default="us-west-2")
    parser.add_argument("--pace", type=float, default=0.01, help="how long clusters take, of what they take on AWS")
    given = parser.parse_args()
    account = example_account(given.region)
    account.timeline = Timeline(runs=True)
    account.ground.pace = given.pace
    add_telemetry(account, given.region)
    add_people(account)
    account.profiles[DOMAIN, "grace"] = Profile(status="Failed")
    cluster = account.clusters[given.region][0].name
    with AwsServer(Endpoint(account), given.port) as server:
        for name, value in client_environment(server.url, given.region).items():
            print(f"export {name}={value}")
        print(f"# domain {DOMAIN}, cluster {cluster}, file system {FILE_SYSTEM}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


main()
