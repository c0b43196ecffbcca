"""Whether Lustre gets through security groups: a table of rules, and the commands that mend what is missing."""

from __future__ import annotations

import shlex

import pytest

from hyperpod_jlab.core.network import LUSTRE_PORTS, Rule, SecurityGroup, check_lustre_access

ALL = (Rule("-1", ranges=("0.0.0.0/0",)),)
ADDRESSES = ["10.0.1.4", "10.0.1.5"]


def group(name, inbound=(), outbound=ALL, title=""):
    return SecurityGroup(name, "vpc-1", title, tuple(inbound), tuple(outbound))


def lustre(*groups, **more):
    return [Rule("tcp", 988, 988, groups, **more), Rule("tcp", 1018, 1023, groups, **more)]


CLIENT = group("sg-client", lustre("sg-server"))
SERVER = group("sg-server", lustre("sg-client"))


def gaps(client=CLIENT, server=SERVER, addresses=ADDRESSES):
    return [
        (gap.direction, gap.group, gap.peer, gap.ports, gap.is_reply)
        for gap in check_lustre_access([client], [server], addresses).missing_rules
    ]


def test_rules_that_name_each_other_let_it_through():
    assert gaps() == []


@pytest.mark.parametrize(
    "inbound",
    [
        [Rule("-1", groups=("sg-client",))],
        [Rule("tcp", 0, 65535, ("sg-client",))],
        [Rule("6", 988, 1023, ("sg-client",))],
        [Rule("tcp", 988, 988, ranges=("10.0.0.0/16",)), Rule("tcp", 1018, 1023, ("sg-client",))],
        [Rule("tcp", 988, 1020, ("sg-client",)), Rule("tcp", 1021, 1023, ("sg-client",))],
    ],
)
def test_other_rules_that_let_it_through(inbound):
    assert gaps(server=group("sg-server", inbound)) == []


@pytest.mark.parametrize(
    "inbound",
    [
        [],
        lustre("sg-other"),
        [Rule("udp", 0, 65535, ("sg-client",))],
        [Rule("tcp", 988, 1023, ranges=("192.168.0.0/16",))],
        [Rule("tcp", 988, 1023, ranges=("10.0.1.4/32",))],
    ],
)
def test_rules_that_do_not(inbound):
    assert gaps(server=group("sg-server", inbound)) == [("inbound", "sg-server", "sg-client", LUSTRE_PORTS, False)]


def test_only_the_ports_that_are_missing_are_named():
    server = group("sg-server", [Rule("tcp", 988, 988, ("sg-client",))])
    (gap,) = check_lustre_access([CLIENT], [server], ADDRESSES).missing_rules
    assert gap.ports == tuple(range(1018, 1024))
    assert gap.words() == "sg-server has no inbound rule for TCP 1018-1023 from sg-client"
    words = shlex.split(gap.command("eu-west-1"))
    assert words[:3] == ["aws", "ec2", "authorize-security-group-ingress"]
    assert words[words.index("--group-id") + 1] == "sg-server"
    assert words[-1] == ("IpProtocol=tcp,FromPort=1018,ToPort=1023,UserIdGroupPairs=[{GroupId=sg-client}]")


def test_every_direction_has_its_own_gap():
    closed = {
        "client in": (group("sg-client", ()), SERVER, ("inbound", "sg-client", True)),
        "client out": (group("sg-client", CLIENT.inbound, ()), SERVER, ("outbound", "sg-client", False)),
        "server out": (CLIENT, group("sg-server", SERVER.inbound, ()), ("outbound", "sg-server", True)),
    }
    for client, server, (direction, owner, answers) in closed.values():
        ((way, name, _, _, only),) = gaps(client, server)
        assert (way, name, only) == (direction, owner, answers)
    (gap,) = check_lustre_access([group("sg-client", CLIENT.inbound, ())], [SERVER], ADDRESSES).missing_rules
    assert "authorize-security-group-egress" in gap.command("us-west-2")


def test_a_prefix_list_is_not_decided_here():
    server = group("sg-server", [Rule("tcp", 988, 1023, lists=("pl-1",))])
    found = check_lustre_access([CLIENT], [server], ADDRESSES)
    assert (found.missing_rules, found.lists) == ((), ("pl-1",))


def test_several_groups_count_together_and_studios_own_is_not_the_one_to_change():
    studios = group("sg-0", title="security-group-for-inbound-nfs-d-1")
    parts = [Rule("tcp", 988, 988, ("sg-client",))]
    rest = [Rule("tcp", 1018, 1023, ("sg-client",))]
    both = [group("sg-a", parts), group("sg-b", rest)]
    client = group("sg-client", lustre("sg-b"))
    assert check_lustre_access([client], both, ADDRESSES).missing_rules == ()
    (gap, *_) = check_lustre_access([CLIENT], [studios, group("sg-a", parts)], ADDRESSES).missing_rules
    assert (gap.group, gap.ports) == ("sg-a", tuple(range(1018, 1024)))


def test_addresses_that_are_not_known_leave_only_everywhere():
    wide = group("sg-server", [Rule("tcp", 988, 1023, ranges=("0.0.0.0/0",))])
    narrow = group("sg-server", [Rule("tcp", 988, 1023, ranges=("10.0.0.0/8",))])
    assert gaps(server=wide, addresses=[]) == []
    assert gaps(server=narrow, addresses=[])[0][:2] == ("inbound", "sg-server")
