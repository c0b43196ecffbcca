"""Whether a spec fits into a queue: pure rules, over rows as sinfo 22.05 and 24.11 write them."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.slurm.facts import Limits, parse_accounts, parse_limits, parse_settings
from hyperpod_jlab.engines.slurm.preflight import default_limit, fitting_findings

MARK = "\x1emark"

ROWS = (
    "dev*|dev|up|n/a|infinite|1-infinite|8|16|64000|(null)|(null)",
    "dev*|dev|up|n/a|infinite|1-infinite|2|192|2000000|gpu:h100:8(S:0-1)|p5,efa",
    "p5|p5|up|30:00|2-00:00:00|1-1|2|192|2000000|gpu:h100:8(S:0-1)|p5,efa",
    "mig|mig|up|1:00:00|1:00:00|1-infinite|1|96|1000000|gpu:1g.10gb:14,gpu:a100:2|(null)",
    "trn|trn|up|n/a|4:00:00|1-infinite|4|128|500000|neuron:16|trn1",
    "old|old|inact|n/a|infinite|1-infinite|1|4|8000|(null)|(null)",
    "empty|empty|up|n/a|infinite|1-infinite|0|0|0|(null)|(null)",
)


def _limits(*rows: str) -> Limits:
    return parse_limits("".join(f"{MARK}|{row}\n".replace("|", "\x1f") for row in rows), MARK)


def _spec(**spec: Any) -> JobSpec:
    return JobSpec.model_validate({"source": {"kind": "command", "command": "true"}, **spec})


def _codes(**spec: Any) -> list[str]:
    return [found.code for found in fitting_findings(_spec(**spec), LIMITS, hyperpod=False)]


LIMITS = _limits(*ROWS)


def test_queues_are_read_with_their_kinds_of_nodes():
    assert list(LIMITS) == ["dev", "p5", "mig", "trn", "old", "empty"]
    assert LIMITS["dev"].default
    assert LIMITS["dev"].nodes == 10
    assert [group.count("gpu") for group in LIMITS["dev"].groups] == [0, 8]
    assert LIMITS["p5"].max_nodes == 1
    assert (LIMITS["p5"].default_time, LIMITS["p5"].max_time) == (1800, 172_800)


def test_a_name_with_a_separator_breaks_no_other_row():
    assert list(_limits(ROWS[0], ROWS[1] + "\x1fodd", ROWS[2])) == ["dev", "p5"]


@pytest.mark.parametrize(
    ("spec", "codes"),
    [
        ({"queue": "p5", "resources": {"nodes": 2}}, ["too_many_nodes"]),
        ({"queue": "p5"}, ["unused_gpus"]),
        ({"queue": "p5", "resources": {"gpus_per_node": 1}}, []),
        ({"queue": "p5", "slurm": {"flags": {"gpus": "1"}}}, []),
        ({"queue": "dev", "time_limit": "1h", "resources": {"nodes": 10}}, []),
        ({"queue": "dev", "time_limit": "1h", "resources": {"nodes": 3, "gpus_per_node": 1}}, ["too_many_nodes"]),
        ({"queue": "dev", "time_limit": "1h", "resources": {"cpus": 17, "nodes": 2}}, []),
        ({"queue": "dev", "time_limit": "1h", "resources": {"memory": "1T", "nodes": 3}}, ["too_many_nodes"]),
        ({"queue": "mig", "resources": {"accelerators": {"type": "1g.10gb", "count": 14}}}, []),
        ({"queue": "mig", "resources": {"accelerators": {"type": "1g.10gb", "count": 15}}}, ["too_many_gpus"]),
        ({"queue": "mig", "resources": {"gpus_per_node": 17}}, ["too_many_gpus"]),
        ({"queue": "trn", "resources": {"gpus_per_node": 1}}, ["no_accelerators"]),
        ({"queue": "trn", "resources": {"accelerators": {"kind": "neuron", "count": 16}}}, []),
        ({"queue": "trn", "time_limit": "5h"}, ["time_limit"]),
        ({"queue": "old", "time_limit": "1h"}, ["queue_closed"]),
        ({"queue": "empty", "time_limit": "1h"}, ["too_many_nodes"]),
        ({"queue": "p5,trn", "resources": {"nodes": 4}}, []),
        ({"queue": "p5,trn", "time_limit": "5h"}, []),
        ({"queue": "P5"}, ["unknown_queue"]),
        ({"queue": "trn", "resources": {"gpus_per_node": 1}, "slurm": {"flags": {"gres": "x"}}}, []),
    ],
)
def test_what_is_found(spec: dict[str, Any], codes: list[str]):
    assert _codes(**spec) == codes


def test_fixes_are_changes_of_the_spec():
    def fixes(**spec: Any) -> list[tuple[str, dict[str, str | int | None]]]:
        found = fitting_findings(_spec(**spec), LIMITS, hyperpod=False)
        return [(fix.label, fix.set) for one in found for fix in one.fixes]

    assert fixes(queue="p5") == [
        ("Use 1 GPU", {"resources.gpus_per_node": 1}),
        ("Use 8 GPUs", {"resources.gpus_per_node": 8}),
    ]
    assert fixes(queue="dev", time_limit="1h", resources={"nodes": 12}) == [("Use 10 nodes", {"resources.nodes": 10})]
    assert fixes(queue="trn", time_limit="5h") == [("Use 4h", {"time_limit": 14400})]
    assert fixes(queue="empty", time_limit="1h") == []


def test_no_queue_named_and_no_default_one():
    found = fitting_findings(_spec(), _limits(ROWS[2]), hyperpod=False)
    assert [(one.code, one.hint) for one in found] == [("no_default_queue", "use --queue: p5")]


def test_a_default_queue_with_all_nodes_is_a_trap_on_hyperpod_alone():
    rows = ["all" + row.removeprefix("dev").replace("|dev|", "|all|") for row in ROWS[:2]]
    limits = _limits(*rows, *ROWS[2:])
    trap = "default_queue_has_all"
    spec = _spec(time_limit="1h")
    assert [one.code for one in fitting_findings(spec, limits, hyperpod=True)] == [trap]
    assert fitting_findings(spec, limits, hyperpod=False) == []


@pytest.mark.parametrize(
    ("queue", "limit"), [(None, None), ("p5", 1800), ("mig", 3600), ("trn", 14_400), ("p5,mig", 1800), ("nope", None)]
)
def test_the_limit_of_a_run_without_one(queue: str | None, limit: int | None):
    assert default_limit(_spec(queue=queue), LIMITS) == limit


def test_accounts_with_their_qos():
    accounts = parse_accounts("bob", "physics|high,normal\nresearch|normal\nresearch|low\n|x\n")
    assert accounts.names == ["physics", "research"]
    assert accounts.qos_of("research") == ["low", "normal"]
    assert accounts.qos_of(None) == ["high", "low", "normal"]
    assert accounts.qos_of("nope") == []


@pytest.mark.parametrize(
    ("text", "accounting", "enforced"),
    [
        ("AccountingStorageType   = accounting_storage/none\n", False, set()),
        ("AccountingStorageType = (null)\nAccountingStorageEnforce = none\n", False, set()),
        (
            "AccountingStorageEnforce = associations,limits\nAccountingStorageType = accounting_storage/slurmdbd\n",
            True,
            {"associations", "limits"},
        ),
    ],
)
def test_whether_accounts_are_kept(text: str, accounting: bool, enforced: set[str]):
    settings = parse_settings("Configuration data as of x\nClusterName = ml\n" + text)
    assert settings.cluster == "ml"
    assert settings.accounting is accounting
    assert settings.enforced == enforced
