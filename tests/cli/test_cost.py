"""What runs cost, on the command line, with runs on the local cluster."""

from __future__ import annotations

import csv
import io
import time
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import pytest

from .conftest import Home, Hpj

pytestmark = pytest.mark.local

PRICE = """
[cost]
currency = "EUR"
{limits}
[clusters.local.cost]
node_price = 3600.0
"""


def configure(home: Home, limits: str = "") -> None:
    home.config.write_text(PRICE.format(limits=limits))


def seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def test_a_run_costs_its_nodes_for_its_time(home: Home, hpj: Hpj) -> None:
    configure(home)
    options = ("--nodes", "2", "--launcher", "python", "--max-restarts", "1", "--wait")
    fails_once = "sleep 0.5; [ $HYPERPOD_ATTEMPT = 2 ]"
    hpj("submit", "-c", fails_once, "--run-id", "one", *options, "--no-project-files").ok()
    cost = hpj("cost", "one", "--json").ok().json
    assert {"run_id", "currency", "amount", "node_hours", "gpu_hours", "wasted_node_hours", "prices"} <= set(cost)  # fmt: skip
    assert (cost["run_id"], cost["currency"], cost["source"]) == ("one", "EUR", "records")
    assert 4 * 0.5 <= cost["node_hours"] * 3600 < 4 * 15
    assert 0 < cost["wasted_node_hours"] < cost["node_hours"]
    assert [(price["instance_type"], price["source"]) for price in cost["prices"]] == [(None, "configuration")]
    assert 0 < cost["amount"] <= cost["node_hours"] * 3600 + 0.01
    text = hpj("cost", "one").ok().out
    assert "EUR (3,600.00 EUR an hour of a node, from the configuration)" in text
    (wasted,) = [line for line in text.splitlines() if line.startswith("wasted")]
    shown = hpj("show", "one").ok()
    assert wasted.split(None, 1)[1] in shown.out
    assert shown.err == hpj("cost", "one").ok().err == "".join(f"note: {n}\n" for n in cost["notes"])
    assert hpj("show", "one", "--json").ok().json["cost"]["amount"] == cost["amount"]
    assert "EUR" in hpj("runs").ok().out
    (row,) = hpj("runs", "--json").ok().json["runs"]
    assert row["cost"]["currency"] == "EUR"
    # The list goes by attempts: both nodes count from the first start to the last end.
    run = hpj("show", "one", "--json").ok().json
    spans = [seconds(one["ended_at"]) - seconds(one["started_at"]) for one in run["attempts"]]
    most = 2 * sum(spans)
    assert cost["amount"] * 0.99 <= row["cost"]["amount"] <= most + 0.01
    usage = hpj("usage", "--by", "user", "--since", "1d", "--json").ok().json
    (used,) = usage["rows"]
    assert used["runs"] == 1
    assert cost["node_hours"] * 0.99 <= used["node_hours"] <= most / 3600 + 0.01
    rows = list(csv.DictReader(io.StringIO(hpj("usage", "--by", "cluster", "--csv").ok().out)))
    assert {row["cluster"] for row in rows} == {"local"}


def test_arrays_count_and_a_cluster_that_is_named_twice_counts_once(home: Home, hpj: Hpj) -> None:
    configure(home)
    options = ("--array", "0-2", "--time-limit", "5m", "--wait", "--no-project-files")
    hpj("submit", "-c", "sleep 0.3", "--run-id", "many", *options).ok()
    cost = hpj("cost", "many", "--json").ok().json
    listed = hpj("runs").ok().out.splitlines()[1]
    assert f"{cost['amount']:,.2f} EUR" in listed
    once, twice = (hpj("usage", *("--cluster", "local") * times, "--json").ok().json["rows"] for times in (1, 2))
    assert once == twice
    assert [(row["runs"], row["node_hours"]) for row in once] == [(3, pytest.approx(cost["node_hours"], rel=0.2))]
    ended = hpj("jobs", "--ended", "--json").ok().json["jobs"]
    assert [(job["scheduler_id"], job["time_limit"]) for job in ended] == [("many", 300)]
    user = ended[0]["user"]
    assert "many" in hpj("jobs", "--ended", "--user", user).ok().out
    assert hpj("jobs", "--ended", "--user", f"not-{user}", "--json").ok().json["jobs"] == []


def test_records_that_cannot_be_read_give_no_amount(home: Home, hpj: Hpj) -> None:
    configure(home)
    hpj("submit", "-c", "true", "--run-id", "torn", "--wait", "--no-project-files").ok()
    (record,) = home.root.rglob("torn/status/attempt-1/node-0.json")
    record.chmod(0o600)
    record.write_text("{")
    cost = hpj("cost", "torn", "--json").ok().json
    assert cost["amount"] is None
    assert "cannot be read" in " ".join(cost["notes"])


def test_without_a_price_there_are_hours_only(home: Home, hpj: Hpj) -> None:
    hpj("submit", "-c", "true", "--run-id", "free", "--wait", "--no-project-files").ok()
    cost = hpj("cost", "free", "--json").ok().json
    assert (cost["amount"], cost["prices"]) == (None, [])
    assert cost["notes"] == []
    dry = hpj("submit", "-c", "true", "--time-limit", "1h", "--dry-run", "--json").ok().json
    assert (dry["cost"], dry["gpu_hours"]) == (None, 0)


def test_a_dry_run_tells_what_it_costs_at_most(home: Home, hpj: Hpj) -> None:
    configure(home)
    size = ("--cpus", "4096", "--time-limit", "2h")
    dry = hpj("submit", "-c", "true", *size, "--dry-run", "--json").json
    assert (dry["cost"]["per_hour"], dry["cost"]["at_most"]) == (3600, 7200)
    assert dry["cost"]["currency"] == "EUR"


@pytest.mark.parametrize(
    ("limits", "options", "code", "accepted"),
    [
        ("confirm_over = 100.0", ("--time-limit", "1h"), "cost_not_confirmed", True),
        ("confirm_over = 100.0", (), "cost_not_confirmed", True),
        ("refuse_over = 100.0", ("--time-limit", "1h"), "cost_refused", False),
    ],
)
def test_a_cost_over_the_limit_is_confirmed_or_refused(
    home: Home, hpj: Hpj, limits: str, options: tuple[str, ...], code: str, accepted: bool
) -> None:
    configure(home, limits)
    command = ("submit", "-c", "true", "--run-id", "dear", "--no-project-files", *options)
    dry = hpj(*command, "--dry-run")
    assert (dry.code, "may cost" in dry.out) == (2, True)
    assert ("needs a confirmation of its cost" in dry.err) is accepted
    assert ("would be rejected" in dry.err) is not accepted
    assert (hpj(*command, "--dry-run", "--accept-cost").code == 0) is accepted
    refused = hpj("--json", *command)
    assert (refused.code != 0, refused.error["code"]) == (True, code)
    assert hpj("--json", "runs").ok().json["runs"] == []
    again = hpj("--json", *command, "--accept-cost", "--wait")
    assert (again.code == 0) is accepted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[cost.prices]\n"ml.p5.48xlarge" = -1', "at least 0"),
        ('[cost.prices]\n"ml.p5.48xlarge" = nan', "finite"),
        ('[cost.prices]\n"ml.p5.48xlarge" = "98"', "number"),
        ('[cost.prices]\n"no such type" = 1.0', "no such type"),
        ('[cost]\ncurrency = "dollar"', "three capital letters such as USD, not 'dollar'"),
        (
            '[cost.prices]\n"ml.p5.48xlarge" = [{ price = 1, since = "tomorrow" }]',
            "must be a date such as 2026-11-01, not 'tomorrow'",
        ),
        ('[cost.discounts]\n"ml.p5.48xlarge" = 120', "100"),
        ("[cost.prices]\nml.p5.48xlarge = 98.32", "put the instance type in quotes"),
        ('[cost.prices]\n"ml.p5.48xlarge" = [{ price = 1 }, { price = 2 }]', "same day"),
        ('[cost.prices]\n"ml.p5.48xlarge" = []', "1"),
        ("[cost]\nconfirm_over = 50\nrefuse_over = 5", "must be more than confirm_over"),
    ],
)
def test_a_wrong_price_is_named_with_its_place(home: Home, hpj: Hpj, text: str, message: str) -> None:
    home.config.write_text(text)
    error = hpj("runs").err
    assert "config.toml:" in error
    assert message in error


def test_bad_requests(home: Home, hpj: Hpj) -> None:
    for words, message in (
        (("cost", "nothing"), "nothing"),
        (("usage", "--since", "0d"), "duration"),
        (("usage", "--since", "2026-13-01"), "YYYY-MM-DD"),
        (("usage", "--until", "garbage"), "YYYY-MM-DD"),
        (("usage", "--since", "30"), "'30' has no unit"),
        (("usage", "--since", "2026"), "'2026' has no unit"),
        (("usage", "--since", "401d"), "400 days"),
        (("usage", "--since", "2020-01-01"), "400 days"),
        (("logs", "x", "--since", "yesterday"), "a time such as 2026-11-01T10:00"),
        (("usage", "--since", "2999-01-01"), "begin in the past"),
        (("usage", "--since", "3d", "--until", "5d"), "begin in the past"),
        (("usage", "--by", "shoe"), "shoe"),
        (("usage", "--cluster", "moon"), "cluster 'moon' not found"),
        (("jobs", "--ended", "--cursor", "x"), "the cursor is not valid"),
        *(
            (("jobs", *ended, f"--user={user}"), f"'{user}' is not the name of a user")
            for user in ("a,b", "", "*", "--all")
            for ended in ((), ("--ended",))
        ),
    ):
        done = hpj(*words)
        assert done.code != 0
        assert message in done.err


def test_a_second_local_cluster_is_local_and_one_that_is_gone_is_named(home: Home, hpj: Hpj) -> None:
    second = '[clusters.loc2]\norchestrator = "local"\n'
    home.config.write_text(second)
    options = ("--cluster", "loc2", "--wait", "--no-project-files")
    hpj("submit", "-c", "true", "--run-id", "two", *options).ok()
    ended = hpj("jobs", "loc2", "--ended").ok()
    assert "two" in ended.out
    assert ended.err == ""
    counted = hpj("usage", "--cluster", "loc2").ok()
    assert "accounting" not in counted.err
    assert "instance types" not in counted.err
    home.config.write_text("")
    gone = "note: 1 run of a cluster that is not configured is not counted: loc2\n"
    assert gone in hpj("usage").ok().err
    assert "loc2" not in hpj("usage", "--cluster", "local").ok().err
    assert "loc2" not in hpj("usage", "--since", "2d", "--until", "1d").ok().err
    assert "two" in hpj("runs").ok().out
    assert [run["cost"] for run in hpj("runs", "--json").ok().json["runs"]] == [None]
    assert gone[6:-1] in hpj("usage", "--json").ok().json["notes"]


def test_the_days_of_usage_are_those_of_utc(hpj: Hpj, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as there:
        there.setenv("TZ", "America/Los_Angeles")
        time.tzset()
        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        first, last = (f"{today - timedelta(days=days):%Y-%m-%d}" for days in (3, 2))
        until = f"{today - timedelta(days=1):%Y-%m-%d}"
        days = ("usage", "--since", first, "--until", until)
        report = hpj(*days, "--json").ok().json
        assert (report["begin"], report["end"]) == (f"{first}T00:00:00.000Z", f"{until}T00:00:00.000Z")
        assert f"note: counted: {first} to {last} (UTC)" in hpj(*days).ok().err
        hours = hpj("usage", "--since", f"{first}T10:00-08:00", "--until", until).ok()
        assert f"note: counted: {first} 18:00 to {until} 00:00 (UTC)" in hours.err
    time.tzset()
    hpj("usage", "--since", "400d").ok()


@pytest.mark.parametrize(("region", "has_console"), [("us-west-2", True), ("cn-north-1", False)])
def test_usage_links_to_the_costs_with_the_clusters_tag(
    home: Home, hpj: Hpj, monkeypatch: pytest.MonkeyPatch, region: str, *, has_console: bool
) -> None:
    monkeypatch.setenv("AWS_REGION", region)
    with home.config.open("a") as config:
        config.write('[clusters.ml]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\ncommands = "/none"\n')
    bills = hpj("usage", "--json").ok().json["bills"]
    assert [one["cluster"] for one in bills] == ["ml"] * has_console
    for one in bills:
        assert '"values":[{"value":"ml-cluster"' in unquote(one["url"])
        assert '"growableValue":{"value":"ClusterName"' in unquote(one["url"])
        assert one["url"] in hpj("usage").ok().out
