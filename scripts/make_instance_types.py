"""Write hyperpod_jlab/core/instance_types.json, the table of the instance types that HyperPod has: `make_instance_types.py SOURCE`.

Which types HyperPod has is what the installed botocore says (ClusterInstanceType). Their facts are EC2's own (`--from-ec2 REGION ...`, which needs
ec2:DescribeInstanceTypes), or those of two files that others have made of EC2's answers (`--published REFERENCE LIMITS`):

- REFERENCE: website/content/en/preview/reference/instance-types.md of github.com/aws/karpenter-provider-aws
- LIMITS: pkg/vpc/vpc_ip_resource_limit.go of github.com/aws/amazon-vpc-cni-k8s

It fails when a type of HyperPod has no facts. With `--check` nothing is written: it fails when the table lacks a type that botocore knows.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path

from hyperpod_jlab.core.instance_types import TABLE_FILE, InstanceType, ec2_name, from_ec2, table

ELSEWHERE = {
    # Not in REFERENCE. EC2's "Specifications for accelerated computing instances"; sagemaker-hyperpod-cli's constants.py (1 EFA).
    "trn2.3xlarge": InstanceType(12, 131072, 1, "trainium2", 8, 1, 1, 15),
    # In neither file: it is in capacity blocks only. The same page; how many EFA interfaces HyperPod gives it, of up to 16 ("EFA configuration for
    # P6e-GB200 instances" has several numbers, sagemaker-hyperpod-cli has 0), is said nowhere.
    "p6e-gb200.36xlarge": InstanceType(144, 983040, 4, "gb200", 0, None, 17, 50),
}
"""Types of HyperPod that the published files lack."""

_SECTION = re.compile(r"^### `([^`]+)`$", re.MULTILINE)
_ROW = re.compile(r"^ \|([a-z0-9./-]+)\|([^|]+)\|$", re.MULTILINE)
_LIMITS = re.compile(r'^\t"([a-z0-9.-]+)": \{(.*?)^\t\},', re.MULTILINE | re.DOTALL)


def hyperpod_types() -> list[str]:
    """The types that HyperPod has, by EC2's names, as the installed botocore knows them."""
    import botocore.session

    model = botocore.session.get_session().get_service_model("sagemaker")
    return sorted(map(ec2_name, model.shape_for("ClusterInstanceType").enum))


def published(reference: str, limits: str) -> dict[str, InstanceType]:
    """Facts by the texts of the two published files."""
    network = dict(_limits(limits))
    found = {}
    parts = _SECTION.split(reference)[1:]
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        if name in network:
            found[name] = _published(dict(_ROW.findall(text)), *network[name])
    return found


def _limits(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Network cards of each type, and addresses of an interface."""
    for name, body in _LIMITS.findall(text):
        addresses = re.search(r"IPv4Limit: +(\d+),", body)
        assert addresses is not None, name
        yield name, (len(re.findall(r"\bNetworkCardIndex:", body)), int(addresses[1]))


def _published(rows: Mapping[str, str], cards: int, addresses: int) -> InstanceType:
    def label(name: str) -> str | None:
        return rows.get(f"karpenter.k8s.aws/instance-{name}")

    def count(name: str) -> int:
        return int(rows.get(name) or 0)

    neurons = count("aws.amazon.com/neuron")
    return InstanceType(
        vcpus=int(label("cpu") or 0),
        memory=int(label("memory") or 0),
        accelerators=neurons or int(label("gpu-count") or 0),
        model=label("accelerator-name") if neurons else label("gpu-name"),
        cores=count("aws.amazon.com/neuroncore") // neurons if neurons else 0,
        efa=count("vpc.amazonaws.com/efa"),
        cards=cards,
        addresses=addresses,
    )


def collect_from_ec2(regions: Iterable[str], wanted: list[str]) -> dict[str, InstanceType]:
    """Facts as EC2 tells them in some regions: not every type is in each."""
    import boto3

    found: dict[str, InstanceType] = {}
    for region in regions:
        pages = boto3.client("ec2", region_name=region).get_paginator("describe_instance_types")
        for page in pages.paginate(Filters=[{"Name": "instance-type", "Values": wanted}]):
            found |= {one["InstanceType"]: from_ec2(one) for one in page["InstanceTypes"]}
    return found


def written(types: Mapping[str, InstanceType]) -> str:
    """The table's text: a line for each type, without what is as it is by default."""
    usual = {one.name: one.default for one in fields(InstanceType)}
    lines = []
    for name, facts in types.items():
        row = {key: value for key, value in asdict(facts).items() if value != usual[key]}
        lines.append(f"  {json.dumps(name)}: {json.dumps(row)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--check", action="store_true")
    source.add_argument("--published", nargs=2, type=Path, metavar=("REFERENCE", "LIMITS"))
    source.add_argument("--from-ec2", nargs="+", metavar="REGION")
    given = parser.parse_args()
    wanted = hyperpod_types()
    if given.check:
        found = table()
    elif given.published:
        reference, limits = (path.read_text(encoding="utf-8") for path in given.published)
        found = ELSEWHERE | published(reference, limits)
    else:
        found = ELSEWHERE | collect_from_ec2(given.from_ec2, wanted)
    if missing := [name for name in wanted if name not in found]:
        print(f"no facts of: {' '.join(missing)}")
        return 1
    if not given.check:
        TABLE_FILE.write_text(written({name: found[name] for name in wanted}), encoding="utf-8")
    print(f"{len(wanted)} instance types")
    return 0


if __name__ == "__main__":
    sys.exit(main())
