"""``hpj admin plan`` and ``apply`` of a domain with 500 user profiles, beside plain boto3 that makes the same calls one after the other.

AWS is the testbed's on loopback, in a process of its own, which takes a time for each call, a time for each update, and so many updates a second.

python benchmarks/bench_admin.py [--json] [--quick] [--latency SECONDS] [--rate UPDATES-A-SECOND]
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from log_fixtures import arguments, report  # noqa: E402

from hyperpod_jlab.storage.mounts import VARIABLE  # noqa: E402
from testbed.aws.studio import ROOT_MOUNT, whole_file_system  # noqa: E402

REGION, DOMAIN, FILE_SYSTEM = "us-west-2", "d-example", "fs-0123456789abcdef0"
UPDATE_S = 0.2
WHERE = ("--domain", DOMAIN, "--file-system", FILE_SYSTEM)
PER_USER = (*WHERE, "--partition-mode", "per-user", "--mounted-at", "fsx")

AWS = """
import json, sys, threading, time
from datetime import timedelta
from testbed.aws.endpoint import Endpoint
from testbed.aws.example import client_environment
from testbed.aws.replies import ApiError
from testbed.aws.server import AwsServer
from testbed.aws.state import Profile
from tests.admin.conftest import DOMAIN, domain_account
count, latency, rate, update = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
account = domain_account()
account.add_caller("AKIATESTBEDEXAMPLE01")
account.update_time = timedelta(seconds=update)
account.profiles.clear()
for number in range(count):
    own = [{"EFSFileSystemConfig": {"FileSystemId": "fs-0efefefefefefefef"}}] * (sys.argv[6] == "lists")
    account.profiles[DOMAIN, f"user{number:03d}"] = Profile(file_systems=own)
endpoint = Endpoint(account)
lock, room, last, refused = threading.Lock(), rate, time.monotonic(), 0

def interrupt(action, when):
    global room, last, refused
    if when == "after":
        return
    time.sleep(latency)
    if rate and action == "sagemaker:UpdateUserProfile":
        with lock:
            now = time.monotonic()
            room, last = min(rate, room + (now - last) * rate), now
            if room < 1:
                refused += 1
                raise ApiError("ThrottlingException", "Rate exceeded")
            room -= 1

endpoint.faults.interrupt = interrupt
with AwsServer(endpoint) as server:
    print(json.dumps(client_environment(server.url, sys.argv[5])), flush=True)
    for _ in sys.stdin:
        wired = sum(bool(one.file_systems) for one in account.profiles.values())
        print(json.dumps([len(endpoint.calls), refused, wired]), flush=True)
"""
"""The account; a line in is answered by the calls so far, those that were too many, and the profiles that have a file system."""

PEER = """
import os, sys, time
import boto3
domain, name, what = sys.argv[1:4]
client = boto3.client("sagemaker", region_name=os.environ["AWS_REGION"])
found = client.describe_domain(DomainId=domain)
client.list_tags(ResourceArn=found["DomainArn"])
for operation in ("list_apps", "list_spaces"):
    list(client.get_paginator(operation).paginate(DomainIdEquals=domain))
names = [one["UserProfileName"]
         for page in client.get_paginator("list_user_profiles").paginate(DomainIdEquals=domain, PaginationConfig={"PageSize": 100})
         for one in page["UserProfiles"]]
for one in names:
    told = client.describe_user_profile(DomainId=domain, UserProfileName=one)
    if what == "plan":
        continue
    client.add_tags(ResourceArn=told["UserProfileArn"], Tags=[{"Key": "peer", "Value": one}])
    entry = {"FSxLustreFileSystemConfig": {"FileSystemId": name, "FileSystemPath": "/" + one}}
    client.update_user_profile(DomainId=domain, UserProfileName=one, UserSettings={"CustomFileSystemConfigs": [entry]})
    while client.describe_user_profile(DomainId=domain, UserProfileName=one)["Status"] != "InService":
        time.sleep(0.1)
"""
"""The same by boto3 alone, one call after the other."""


class Domain:
    """The account's process.

    Args:
        count: User profiles.
        latency: Seconds that each call takes.
        rate: Updates of profiles a second, beyond which they are refused as too many; 0: any number.
        lists: Whether each profile has a file system of its own already.
    """

    def __init__(self, count: int, latency: float, rate: float = 0, *, lists: bool = False) -> None:
        words = [str(count), str(latency), str(rate), str(UPDATE_S), REGION]
        words.append("lists" if lists else "none")
        self._process = subprocess.Popen(
            [sys.executable, "-c", AWS, *words], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.environment: dict[str, str] = json.loads(self._process.stdout.readline())

    def counts(self) -> tuple[int, int, int]:
        """Calls so far, those that were too many, and profiles that have a file system."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        calls, refused, wired = json.loads(self._process.stdout.readline())
        return calls, refused, wired

    def run(self, *words: str) -> tuple[float, float]:
        """What a command took (s), and how much of it on a processor."""
        with tempfile.TemporaryDirectory(prefix="hyperpod-bench-") as home:
            environment = {**os.environ, **self.environment, "HOME": home}
            environment |= {"HYPERPOD_CONFIG": f"{home}/none.toml"}
            # What is installed has its bytecode beside it.
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            environment[VARIABLE] = f"{home}/mounts"
            Path(home, "none.toml").touch()
            Path(home, "fsx").mkdir()
            Path(home, "mounts").write_text(ROOT_MOUNT + whole_file_system(Path(home, "fsx")))
            begin, before = time.perf_counter(), _processor()
            done = subprocess.run(words, cwd=home, env=environment, capture_output=True, text=True, check=False)
            took = time.perf_counter() - begin
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return took, _processor() - before

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


def _processor() -> float:
    """Seconds that ended commands had of a processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def hpj(domain: Domain, what: str) -> tuple[float, float]:
    """What a command of ours takes (s), and how much of it on a processor."""
    program = str(Path(sys.executable).parent / "hpj")
    words = (*PER_USER, "--json", *(("--yes",) if what == "apply" else ()))
    return domain.run(program, "admin", what, *words)


def peer(domain: Domain, what: str) -> tuple[float, float]:
    """What boto3 alone takes, its import included (s), and how much of it on a processor."""
    return domain.run(sys.executable, "-c", PEER, DOMAIN, FILE_SYSTEM, what)


def planning(count: int) -> float:
    """What the steps and statements alone take, once all is read (ms)."""
    from hyperpod_jlab.admin.fsx.models import ActualState, DesiredState, FsxFileSystem, MountTarget
    from hyperpod_jlab.admin.fsx.planning import plan

    holders = tuple(MountTarget("profile", f"user{n:03d}", "InService") for n in range(count))
    lustre = FsxFileSystem(FILE_SYSTEM, "LUSTRE", "AVAILABLE", "vpc-1", ("subnet-1",))
    there = ActualState(DOMAIN, "vpc-1", ("subnet-1",), "sg-1", lustre, holders)
    begin = time.perf_counter()
    plan(there, DesiredState("per-user"))
    return (time.perf_counter() - begin) * 1000


def plans(count: int, latency: float) -> list[dict[str, Any]]:
    """Plans of a domain of which nothing is wired."""
    domain = Domain(count, latency)
    try:
        hpj(domain, "plan")  # bytecode is written
        before = domain.counts()[0]
        took, used = hpj(domain, "plan")
        calls = domain.counts()[0] - before
        alone, _ = peer(domain, "plan")
    finally:
        domain.end()
    return [
        {"what": f"plan, {latency:g} s a call, s", "value": round(took, 2)},
        {"what": f"plan, {latency:g} s a call, s of a processor", "value": round(used, 2)},
        {"what": f"plan, {latency:g} s a call: calls", "value": calls},
        {"what": f"boto3 alone, {latency:g} s a call, s", "value": round(alone, 2)},
    ]


def applies(count: int, latency: float, rate: float) -> list[dict[str, Any]]:
    """Applies to a domain of which nothing is wired, ours and boto3's."""
    rows: list[dict[str, Any]] = []
    for who, work in (("apply", hpj), ("boto3 alone, apply", peer)):
        for most in (0.0, rate):
            if most and work is peer:
                continue
            domain = Domain(count, latency, most)
            try:
                took, _ = work(domain, "apply")
                calls, refused, wired = domain.counts()
            finally:
                domain.end()
            assert wired == count, (who, wired)
            name = f"{who}, {latency:g} s a call" + (f", {most:g} updates/s" if most else "")
            rows += [
                {"what": f"{name}, s", "value": round(took, 1)},
                {"what": f"{name}: calls, refused", "value": f"{calls}, {refused}"},
            ]
    return rows


def main() -> None:
    """Measure and print."""
    parser_words = [one for one in sys.argv[1:] if one in {"--json", "--quick"}]
    given = dict(zip(sys.argv[1:], sys.argv[2:], strict=False))
    latency, rate = float(given.get("--latency", 0.05)), float(given.get("--rate", 20))
    sys.argv[1:] = parser_words
    options = arguments(__doc__)
    count = 50 if options.quick else 500
    rows = [{"what": "steps and statements alone, ms", "value": round(planning(count), 1)}]
    for one in (0.0, latency):
        rows += plans(count, one)
    rows += applies(count, latency, rate)
    report(options, f"A domain with {count} user profiles", rows)


if __name__ == "__main__":
    main()
