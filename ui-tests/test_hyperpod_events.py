"""Events of a HyperPod cluster and logs of its nodes, in JupyterLab, on the testbed's AWS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hyperpod_lab import REGION, hyperpod_lab
from lab_page import CLUSTER_PAGE, execute, open_lab, use_theme, violations
from lab_server import LabServer
from playwright.sync_api import Locator, Page, expect

from testbed.aws.endpoint import Endpoint
from testbed.aws.example_telemetry import add_telemetry
from testbed.aws.state import Cluster, Event, Node
from testbed.aws.telemetry import cluster_log_group, milliseconds

LOGS = ".jp-HyperPod-NodeLogPage"
EVENTS, DETAILS = "sagemaker:ListClusterEvents", "sagemaker:DescribeClusterEvent"
LINES = "logs:GetLogEvents"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LabServer, Endpoint]]:
    """One account with logs, and a Lab with its credentials, for all tests here."""
    with hyperpod_lab(tmp_path_factory.mktemp("aws") / "home") as (server, endpoint):
        add_telemetry(endpoint.account, REGION, hours=1)
        yield server, endpoint


@pytest.fixture
def aws(account: tuple[LabServer, Endpoint]) -> Iterator[Endpoint]:
    """The account; what went wrong is right again after the test."""
    yield account[1]
    account[1].faults.denied.clear()
    account[1].faults.throttled.clear()


@pytest.fixture
def eks(aws: Endpoint) -> Cluster:
    """The cluster with continuous provisioning: a group grows, a node fails, which AWS tells twice."""
    cluster = aws.account.clusters[REGION][1]
    now = datetime.now(UTC).replace(microsecond=0)
    why = {"Instance": {"FailureMessage": "Lifecycle script exited with code 1"}}
    failed = {
        "level": "Error",
        "resource": "Instance",
        "group": "accelerated",
        "instance": cluster.nodes[0].instance_id,
        "metadata": why,
    }
    cluster.events = [
        Event(now - timedelta(hours=3), "Scaling up.", resource="InstanceGroup", group="general"),
        Event(now - timedelta(hours=2), "Node is unhealthy.", **failed),
        Event(now - timedelta(hours=2, seconds=-1), "Node is unhealthy.", **failed),
        Event(now - timedelta(hours=1), "Lost orchestration-ready.", level="Warn"),
    ]
    return cluster


@pytest.fixture
def node(aws: Endpoint) -> Node:
    """The node of the cluster with Slurm that has failed, so that it has both logs."""
    nodes = aws.account.clusters[REGION][0].nodes
    return next(node for node in nodes if node.status == "Failure")


def open_events(account: tuple[LabServer, Endpoint], page: Page, cluster: str) -> Locator:
    """The tab of a cluster's events."""
    open_lab(page, account[0])
    execute(page, "hyperpod:open-cluster", {"cluster": cluster})
    shown = page.locator(CLUSTER_PAGE)
    shown.get_by_role("tab", name="Events", exact=True).click()
    return shown


def open_logs(account: tuple[LabServer, Endpoint], page: Page, node: str) -> Locator:
    """The logs of a node of the cluster with Slurm."""
    open_lab(page, account[0])
    execute(page, "hyperpod:open-node-logs", {"cluster": "ml-cluster", "node": node})
    return page.locator(LOGS)


def write(aws: Endpoint, stream: str, *texts: str) -> None:
    """Lines that are written now."""
    cluster = aws.account.clusters[REGION][0]
    now = milliseconds(datetime.now(UTC))
    lines = [(now + at, text) for at, text in enumerate(texts)]
    aws.account.telemetry.write(REGION, cluster_log_group(cluster.name, cluster.arn), stream, lines)


def asked(aws: Endpoint, action: str) -> int:
    """How often an action was asked for."""
    return [call.action for call in aws.calls].count(action)


def sound(page: Page, part: str, console: list[str]) -> None:
    """Nobody is kept out, in light and dark, and nothing of ours is wrong in the console."""
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        use_theme(page, theme)
        page.wait_for_timeout(300)
        assert violations(page, part) == []
    assert [line for line in console if "hyperpod/api" in line or "exception" in line] == []


def test_the_events_of_a_cluster_and_why_one_of_them_came(
    account: tuple[LabServer, Endpoint], page: Page, aws: Endpoint, eks: Cluster, console: list[str]
) -> None:
    shown = open_events(account, page, "research-eks")
    expect(shown.get_by_text("3 rows")).to_be_visible()
    rows = shown.locator("tbody tr")
    expect(rows.nth(0)).to_contain_text("Lost orchestration-ready.")
    expect(rows.nth(0)).to_contain_text("warning")
    failure = rows.nth(1)
    for words in ("error", "accelerated", eks.nodes[0].instance_id, "(2 times)"):
        expect(failure).to_contain_text(words)
    sound(page, CLUSTER_PAGE, console)
    before = asked(aws, DETAILS)
    failure.get_by_role("button", name="Node is unhealthy.").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Lifecycle script exited with code 1")
    assert asked(aws, DETAILS) == before + 1
    assert violations(page, ".jp-Dialog") == []
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    shown.get_by_label("Level").select_option(label="error")
    expect(shown.get_by_text("1 row", exact=True)).to_be_visible()
    shown.get_by_label("Level").select_option(label="all")
    shown.get_by_role("combobox", name="Instance group").select_option("general")
    expect(rows).to_have_count(1)
    expect(rows.nth(0)).to_contain_text("Scaling up.")
    shown.get_by_role("combobox", name="Instance group").select_option("")
    shown.get_by_role("searchbox").fill("orchestration")
    expect(rows).to_have_count(1)
    expect(rows.nth(0)).to_contain_text("Lost orchestration-ready.")


def test_the_rows_stay_when_aws_refuses(
    account: tuple[LabServer, Endpoint], page: Page, aws: Endpoint, eks: Cluster
) -> None:
    shown = open_events(account, page, "research-eks")
    expect(shown.get_by_text("Scaling up.")).to_be_visible()
    shown.get_by_role("searchbox").fill("scaling")
    # The old rows stay, with their age, where the right is taken away.
    aws.faults.deny(EVENTS)
    shown.get_by_role("button", name="Refresh", exact=True).click()
    expect(shown.get_by_text(f"you do not have the permission {EVENTS}")).to_be_visible()
    expect(shown.get_by_text("Scaling up.")).to_be_visible()


def test_a_cluster_of_which_aws_keeps_no_events_has_no_tab_for_them(
    account: tuple[LabServer, Endpoint], page: Page, aws: Endpoint
) -> None:
    before = asked(aws, EVENTS)
    open_lab(page, account[0])
    execute(page, "hyperpod:open-cluster", {"cluster": "ml-cluster", "tab": "events"})
    shown = page.locator(CLUSTER_PAGE)
    expect(shown.get_by_role("tab", name="Metrics")).to_be_visible()
    expect(shown.get_by_role("tab", name="Events")).to_have_count(0)
    expect(shown.get_by_role("alert")).to_have_count(0)
    assert asked(aws, EVENTS) == before


def test_a_nodes_logs_from_its_row_followed_searched_and_chosen(
    account: tuple[LabServer, Endpoint], page: Page, aws: Endpoint, node: Node, console: list[str]
) -> None:
    write(aws, "DeepHealthCheckResults/check-1", "instance stress passed")
    open_lab(page, account[0])
    execute(page, "hyperpod:open-cluster", {"cluster": "ml-cluster"})
    cluster = page.locator(CLUSTER_PAGE)
    cluster.get_by_role("tab", name="Nodes", exact=True).click()
    cluster.get_by_role("button", name=f"Show the logs of {node.instance_id}").click()
    logs = page.locator(LOGS)
    lines = logs.get_by_role("log")
    expect(lines).to_contain_text("mounted fs-0123456789abcdef0 at /fsx")
    expect(lines).to_contain_text("XidHardwareFailure")
    expect(lines.get_by_text("lifecycle").first).to_be_visible()
    expect(lines.get_by_text("health", exact=True)).to_be_visible()
    # A line has its day and time.
    day = datetime.now().astimezone().strftime("%b")
    expect(lines.locator(".jp-HyperPod-LogRow-time").first).to_have_text(re.compile(rf"{day} \d\d \d\d:\d\d:\d\d"))
    expect(logs).to_contain_text("Following new lines.")
    rest = f"{node.group}/{node.instance_id}"
    write(aws, f"LifecycleConfig/{rest}", "a line that comes while somebody looks")
    expect(lines).to_contain_text("a line that comes while somebody looks", timeout=20_000)
    sound(page, LOGS, console)
    search = logs.get_by_role("searchbox", name="Search in the log")
    logs.get_by_role("button", name="Use regular expression").click()
    search.fill("provisioning_step [12]")
    expect(logs.get_by_text("1 of 2", exact=True)).to_be_visible()
    expect(lines.locator("mark").first).to_have_text("provisioning_step 1")
    logs.get_by_role("combobox", name="Log", exact=True).select_option(label="health")
    expect(lines).not_to_contain_text("mounted")
    expect(lines).to_contain_text("XidHardwareFailure")
    logs.get_by_role("combobox", name="Log", exact=True).select_option(label="check-1")
    expect(lines).to_contain_text("instance stress passed")
    expect(lines).not_to_contain_text("XidHardwareFailure")


def test_nothing_is_asked_while_the_log_is_not_seen(
    account: tuple[LabServer, Endpoint], page: Page, aws: Endpoint, node: Node
) -> None:
    logs = open_logs(account, page, node.instance_id)
    expect(logs.get_by_role("log")).to_contain_text("mounted")
    execute(page, "launcher:create", keep=False)
    expect(logs).to_be_hidden()
    page.wait_for_timeout(500)
    before = asked(aws, LINES)
    page.wait_for_timeout(6000)
    assert asked(aws, LINES) == before
    write(aws, f"LifecycleConfig/{node.group}/{node.instance_id}", "written unseen")
    execute(page, "hyperpod:open-node-logs", {"cluster": "ml-cluster", "node": node.instance_id})
    expect(logs.get_by_role("log")).to_contain_text("written unseen")


def test_what_is_wrong_is_said_in_the_viewer(
    account: tuple[LabServer, Endpoint], page: Page, aws: Endpoint, node: Node
) -> None:
    aws.faults.deny(LINES)
    logs = open_logs(account, page, node.instance_id)
    expect(logs.get_by_text(f"you do not have the permission {LINES}")).to_be_visible()
    aws.faults.denied.clear()
    logs.get_by_role("button", name="Try again").click()
    expect(logs.get_by_role("log")).to_contain_text("mounted")
    aws.faults.throttled[LINES] = 8  # as often as a call for each of the two logs is tried
    lines = logs.get_by_role("log")
    expect(lines.get_by_text("cannot load new lines").first).to_be_visible(timeout=60_000)
    write(aws, f"LifecycleConfig/{node.group}/{node.instance_id}", "written when it is back")
    expect(lines).to_contain_text("written when it is back", timeout=60_000)
    execute(page, "hyperpod:open-node-logs", {"cluster": "ml-cluster", "node": "nobody"})
    other = page.locator(LOGS).last
    expect(other.get_by_text("has no node nobody")).to_be_visible()


def test_a_cluster_without_logs_says_what_it_needs(
    account: tuple[LabServer, Endpoint], page: Page, aws: Endpoint, eks: Cluster
) -> None:
    group = cluster_log_group(eks.name, eks.arn)
    kept = aws.account.telemetry.logs.pop((REGION, group))
    open_lab(page, account[0])
    where = {"cluster": eks.name, "node": eks.nodes[0].instance_id}
    execute(page, "hyperpod:open-node-logs", where)
    logs = page.locator(LOGS)
    expect(logs.get_by_text(f"CloudWatch has no log group {group}")).to_be_visible()
    expect(logs.get_by_text("logs:CreateLogGroup")).to_be_visible()
    aws.account.telemetry.logs[(REGION, group)] = kept


def test_a_node_that_was_replaced_still_has_its_logs(
    account: tuple[LabServer, Endpoint], page: Page, aws: Endpoint
) -> None:
    cluster = aws.account.clusters[REGION][0]
    gone = cluster.nodes.pop(2)
    logs = open_logs(account, page, gone.instance_id)
    expect(logs.get_by_role("log")).to_contain_text("mounted fs-0123456789abcdef0 at /fsx")
    cluster.nodes.insert(2, gone)
