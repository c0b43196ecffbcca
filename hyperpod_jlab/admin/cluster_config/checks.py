"""The table of rules for a cluster's configuration. No rule hides the findings of another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from hyperpod_jlab.admin.cluster_config import aws_rules, file_rules
from hyperpod_jlab.admin.cluster_config.document import ClusterConfigFiles
from hyperpod_jlab.admin.cluster_config.facts import Facts
from hyperpod_jlab.admin.cluster_config.results import Report, RuleResult
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError


class Check(NamedTuple):
    """A check: its title, its message if it found nothing, its rules for the files, and its rules that ask AWS."""

    title: str
    ok_message: str
    file_rules: Sequence[Callable[[ClusterConfigFiles], file_rules.RuleResults]]
    ask: Callable[[Facts], aws_rules.Items] | None = None


CHECKS = {
    "files": Check("The files", "files are readable and have no placeholders left", (file_rules.check_placeholders,)),
    "schema": Check(
        "Members and values",
        "members and values match the AWS API",
        (file_rules.check_schema, file_rules.check_one_orchestrator),
    ),
    "groups": Check(
        "Instance groups",
        "each group is placed",
        (
            file_rules.check_group_names,
            file_rules.check_slurm_on_eks,
            file_rules.check_roles_are_set_once,
            file_rules.check_roles_by_slurm_config,
            file_rules.check_second_file_members,
            file_rules.check_roles_by_second_file,
        ),
    ),
    "scripts": Check("Lifecycle scripts", "scripts found", (file_rules.check_script_names,), aws_rules.ask_scripts),
    "storage": Check(
        "File systems",
        "found and reachable",
        (file_rules.check_mount_paths, file_rules.check_mount_names),
        aws_rules.ask_storage,
    ),
    "network": Check(
        "Network",
        "subnets are private and large enough, and security groups allow the traffic that is needed",
        (file_rules.check_subnets_are_named,),
        aws_rules.ask_network,
    ),
}
"""Checks in their order."""


def check(documents: ClusterConfigFiles) -> Report:
    """Check the files alone.

    Raises:
        UnsupportedError: boto3 is not installed; the check needs its model.
    """
    return _report(documents, _check_files(documents), with_aws=False)


async def check_with_aws(aws: Aws, documents: ClusterConfigFiles) -> Report:
    """Check the files with AWS' data.

    Raises:
        UnsupportedError: boto3 is not installed.
        InvalidInputError: The region is unknown.
    """
    facts = Facts(aws, await aws.region(), documents)
    rule_results = _check_files(documents)
    answers = await asyncio.gather(
        *(
            _collect(name, path, results)
            for name, row in CHECKS.items()
            for path, results in (row.ask(facts) if row.ask else ())
        )
    )
    return _report(documents, [*rule_results, *(one for found in answers for one in found)])


def _check_files(documents: ClusterConfigFiles) -> list[RuleResult]:
    return [
        replace(rule_result, check=name)
        for name, row in CHECKS.items()
        for run in row.file_rules
        for rule_result in run(documents)
    ]


async def _collect(name: str, path: str, results: aws_rules.RuleResults) -> list[RuleResult]:
    """What a rule finds at a place, or why AWS did not answer."""
    rule_results = list[RuleResult]()
    try:
        async for rule_result in results:
            rule_results += [replace(rule_result, check=name)]
    except NotFoundError as missing:
        rule_results += [RuleResult(name, "error", missing.message, missing.hint, path)]
    except HyperpodError as failure:
        message = f"could not be checked: {failure.message}"
        rule_results += [RuleResult(name, "unknown", message, failure.hint, path)]
    return rule_results


def _report(documents: ClusterConfigFiles, rule_results: Sequence[RuleResult], *, with_aws: bool = True) -> Report:
    # One message is enough if several items of a check failed for the same reason.
    by_key: dict[object, RuleResult] = {}
    for rule_result in rule_results:
        is_unknown = rule_result.level == "unknown"
        key = (rule_result.check, rule_result.message) if is_unknown else rule_result
        by_key.setdefault(key, rule_result)
    results = list(by_key.values())
    names = {rule_result.check for rule_result in results}
    for name, row in CHECKS.items():
        if row.ask and not with_aws:
            results.append(RuleResult(name, "unknown", f"{row.title}: skipped (--offline)"))
        elif name not in names:
            results.append(RuleResult(name, "ok", _ok_message(name, documents)))
    order = list(CHECKS)
    return Report(tuple(sorted(results, key=lambda rule_result: order.index(rule_result.check))))


def _ok_message(name: str, documents: ClusterConfigFiles) -> str:
    if name == "storage" and not any(documents.mounts):
        return "the configuration names no file system"
    if name == "scripts" and not any(group.script_folder for group in documents.groups):
        return "the configuration names none"
    return CHECKS[name].ok_message
