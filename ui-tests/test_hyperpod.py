"""What AWS knows of HyperPod clusters, in the panel and on their pages, on the testbed's AWS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hyperpod_lab import hyperpod_lab
from lab_page import CLUSTER_PAGE, CLUSTERS, PANEL, execute, open_lab, row, use_theme, violations
from lab_server import LabServer
from playwright.sync_api import Locator, Page, expect

from testbed.aws.endpoint import Endpoint

LIST, DESCRIBE = "sagemaker:ListClusters", "sagemaker:DescribeCluster"
#: A second look at AWS.
REFRESH = "Refresh clusters and runs"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LabServer, Endpoint]]:
    """One account, and a Lab with its credentials, for all tests here."""
    with hyperpod_lab(tmp_path_factory.mktemp("aws") / "home") as both:
        yield both


@pytest.fixture
def aws(account: tuple[LabServer, Endpoint]) -> Iterator[Endpoint]:
    """The account; what went wrong is right again after the test."""
    yield account[1]
    account[1].faults.denied.clear()


@pytest.fixture
def section(account: tuple[LabServer, Endpoint], page: Page) -> Locator:
    """The panel's clusters: this machine, and all that AWS tells of four."""
    open_lab(page, account[0])
    execute(page, "hyperpod:show-panel")
    found = page.locator(CLUSTERS)
    expect(found.get_by_role("listitem")).to_have_count(5)
    expect(found.get_by_text("g5.8xlarge")).to_be_visible()
    return found


def item(section: Locator, name: str) -> Locator:
    """A cluster in the section."""
    return section.get_by_role("listitem").filter(has_text=name)


def open_cluster(section: Locator, name: str) -> Locator:
    """A cluster's page, by a click in the section."""
    item(section, name).get_by_text(name, exact=True).click()
    return section.page.locator(CLUSTER_PAGE)


def sound(page: Page, console: list[str]) -> None:
    """Nobody is kept out, in light and dark, and nothing of ours is wrong in the console."""
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        use_theme(page, theme)
        page.wait_for_timeout(300)
        for part in (CLUSTER_PAGE, CLUSTERS):
            assert violations(page, part) == []
    assert [line for line in console if "hyperpod/api" in line or "exception" in line] == []


def test_from_the_panel_to_the_instances_of_a_cluster(section: Locator, page: Page, console: list[str]) -> None:
    expect(item(section, "ml-cluster").get_by_role("img").first).to_have_accessible_name("not connected")
    expect(item(section, "first-try")).to_contain_text("Lifecycle scripts did not run successfully")
    shown = open_cluster(section, "ml-cluster")
    expect(shown.locator(".jp-HyperPod-PageHead")).to_contain_text("in service")
    workers = row(shown, "worker-group-1")
    for words in ("4 of 4", "ml.p5.48xlarge", "on demand", "on_create.sh"):
        expect(workers).to_contain_text(words)
    expect(shown.get_by_text("vision")).to_be_visible()
    console_link = shown.get_by_role("link", name="Cluster in the SageMaker console")
    expect(console_link).to_have_attribute(
        "href",
        "https://us-west-2.console.aws.amazon.com/sagemaker/home?region=us-west-2#/cluster-management/ml-cluster",
    )
    sound(page, console)
    shown.get_by_role("tab", name="Overview").focus()
    page.keyboard.press("ArrowRight")
    expect(shown.get_by_text("5 rows")).to_be_visible()
    failed = row(shown, "failed")
    expect(failed).to_contain_text("EC2 health check failed; the instance is being replaced")
    shown.get_by_role("searchbox").fill("controller")
    expect(shown.get_by_text("1 row")).to_be_visible()
    sound(page, console)


def test_the_rows_stay_when_a_right_is_taken_away(section: Locator, page: Page, aws: Endpoint) -> None:
    aws.faults.deny(LIST)
    section.page.get_by_role("button", name=REFRESH).click()
    expect(section.get_by_text(f"you do not have the permission {LIST}")).to_be_visible()
    expect(section.get_by_text("AWS, updated ")).to_be_visible()
    expect(section.get_by_role("listitem")).to_have_count(5)
    aws.faults.denied.clear()
    page.get_by_role("button", name=REFRESH).click()
    expect(section.get_by_text(f"you do not have the permission {LIST}")).to_have_count(0)


def test_nothing_is_asked_while_the_section_is_folded(section: Locator, page: Page, aws: Endpoint) -> None:
    section.get_by_role("button", name="Clusters", exact=True).click()
    expect(section.get_by_role("listitem")).to_have_count(0)
    before = len(aws.calls)
    page.wait_for_timeout(3000)
    assert len(aws.calls) == before


def test_without_an_account_nothing_is_said_of_aws(lab: LabServer, page: Page, console: list[str]) -> None:
    open_lab(page, lab)
    execute(page, "hyperpod:show-panel")
    expect(page.locator(PANEL).get_by_text("Only this machine is configured")).to_be_visible()
    section = page.locator(CLUSTERS)
    expect(section.get_by_role("listitem")).to_have_count(1)
    expect(section.get_by_label("Region")).to_have_count(0)
    expect(section).not_to_contain_text("AWS")
    expect(section.get_by_role("alert")).to_have_count(0)
    assert [text for text in console if "hyperpod/api" in text] == []


def line(table: Locator, name: str) -> Locator:
    """The row that has this name."""
    head = table.page.get_by_role("rowheader", name=name, exact=True)
    return table.get_by_role("row").filter(has=head)


def test_what_is_missing_to_submit_and_the_task_governance_of_a_cluster(
    section: Locator, page: Page, aws: Endpoint, console: list[str]
) -> None:
    expect(item(section, "ml-cluster")).to_contain_text("file system not mounted here")
    shown = open_cluster(section, "research-eks")
    reach = shown.get_by_role("region", name="Submit from here")
    expect(reach).to_contain_text("the EKS cluster research has no address yet")
    reach.get_by_text("Configuration file entry").click()
    expect(reach.locator("pre")).to_contain_text('eks = "research"')
    settings = shown.get_by_role("region", name="Settings", exact=True)
    expect(settings).to_contain_text("HyperPod reboots or replaces failed nodes")
    expect(settings).to_contain_text("Enable by Karpenter")
    sound(page, console)
    asked = "sagemaker:ListComputeQuotas"
    assert asked not in [call.action for call in aws.calls]
    shown.get_by_role("tab", name="Settings").click()
    teams = shown.get_by_role("region", name="Teams")
    vision = line(teams, "vision")
    for words in ("active", "ml.g5.8xlarge", "lends and borrows", "borrows up to 50 %", "70"):
        expect(vision).to_contain_text(words)
    expect(line(teams, "robots")).to_contain_text("The cluster has no instance group")
    classes = shown.get_by_role("region", name="Priority classes")
    expect(line(classes, "training")).to_contain_text("training-priority")
    expect(shown.get_by_text("so its usage is unknown")).to_be_visible()
    sound(page, console)
    aws.faults.deny(asked)
    shown.get_by_role("button", name="Refresh", exact=True).click()
    expect(shown.get_by_text(f"you do not have the permission {asked}")).to_be_visible()
    expect(line(classes, "training")).to_be_visible()
