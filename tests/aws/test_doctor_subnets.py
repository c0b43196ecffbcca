"""``hpj doctor`` between subnets: network ACLs and routes that keep Lustre from getting through, and what mends them."""

from __future__ import annotations

import shlex

from testbed.aws.example import FILE_SYSTEM
from testbed.aws.network import OTHER_SUBNET, SUBNET, NetworkAcl, acl_entry
from tests.aws.conftest import REGION
from tests.aws.doctor_space import *  # noqa: F403
from tests.aws.doctor_space import seen


def split(network, space):
    """The file system gets a network ACL of its own; it is not mounted."""
    space.mount(None)
    acl = NetworkAcl("acl-0000000000000dead", subnets=[SUBNET])
    network.acls["acl-0123456789abcdef0"].subnets.remove(SUBNET)
    network.add(acl)
    return acl


def test_a_network_acl_that_lets_lustre_in_but_no_answer_out(network, space, checks):
    acl = split(network, space)
    acl.entries = [one for one in acl.entries if not one["Egress"]]
    answer = {"Protocol": "6", "PortRange": {"From": 1024, "To": 65535}}
    acl.entries += [acl_entry(200, "allow", egress=True, **answer), acl_entry(32767, "deny", egress=True)]
    check = checks()["network-acls"]
    assert (check["level"], check["who"]) == ("fail", "admin")
    assert check["evidence"] == (
        f"the domain d-example and {FILE_SYSTEM}: Lustre traffic is blocked: {acl.acl_id} of {SUBNET} does not allow TCP 988, 1018-1023 out to 10.0.2.0/24 ({OTHER_SUBNET})"
    )
    for line in check["fix"].splitlines():
        words = shlex.split(line)
        assert words[:5] == ["aws", "ec2", "create-network-acl-entry", "--region", REGION]
        given = dict(zip(words[5::2], words[6::2], strict=False))
        first, last = (int(one.partition("=")[2]) for one in words[words.index("--port-range") + 1].split(","))
        number = int(words[words.index("--rule-number") + 1])
        assert given["--network-acl-id"] == acl.acl_id
        acl.entries.append(
            acl_entry(
                number,
                "allow",
                egress="--egress" in words,
                Protocol="6",
                CidrBlock="10.0.2.0/24",
                PortRange={"From": first, "To": last},
            )
        )
    assert checks()["network-acls"]["level"] == "ok"


def test_a_network_acl_that_denies_some_of_the_clients_addresses(network, space, checks):
    acl = split(network, space)
    acl.entries.append(acl_entry(50, "deny", egress=False, CidrBlock="10.0.2.128/25"))
    level, words = seen(checks()["network-acls"])
    assert (level, "does not allow TCP 988, 1018-1023 in from 10.0.2.0/24" in words) == ("fail", True)
    space.mount("rw")
    level, words = seen(checks()["network-acls"])
    assert (level, "it is mounted, but" in words) == ("warn", True)


def test_a_route_that_leads_out_or_to_nothing(endpoint, network, space, checks):
    space.mount(None)
    network.subnets[OTHER_SUBNET].addresses = "10.7.0.0/24"  # as in a VPC that was peered
    network.subnets[OTHER_SUBNET].gateway = "nat-0123456789abcdef0"
    check = checks()["routes"]
    assert check["level"] == "fail"
    assert "routes traffic for 10.7.0.0/24" in check["evidence"]
    assert "--destination-cidr-block 10.7.0.0/24 --vpc-peering-connection-id ID" in check["fix"]
    peering = {"DestinationCidrBlock": "10.7.0.0/16", "VpcPeeringConnectionId": "pcx-0123456789abcdef0"}
    network.routes[SUBNET] = [{**peering, "State": "blackhole"}]
    level, words = seen(checks()["routes"])
    assert (level, "goes to pcx-0123456789abcdef0, which no longer exists" in words) == ("fail", True)
    network.routes[SUBNET] = [{**peering, "State": "active"}]
    assert checks()["routes"]["level"] == "ok"
