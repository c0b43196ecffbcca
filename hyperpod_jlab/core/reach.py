"""Whether you can submit to a HyperPod cluster from this machine, and if not, what is missing.

Pure rules: the facts are passed in, nothing is queried here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hyperpod_jlab.core.scheduler import KUBERNETES, SLURM

if TYPE_CHECKING:
    from hyperpod_jlab.core.errors import HyperpodError
    from hyperpod_jlab.core.hyperpod import HyperpodCluster

READY = "ready"
"""You can submit once the cluster is in the configuration."""

NOT_CHECKED = "not-looked"
"""Not checked yet."""

REACH_STATES = (
    *("configured", READY, NOT_CHECKED, "not-described", "not-in-service", "unknown-orchestrator"),
    *("no-file-system", "other-partition", "no-login-node", "no-controller", "no-right"),
    *("not-there", "no-way", "not-let-in", "no-namespace", "no-package", "not-known"),
)
"""The values of `Reach.word`."""

_ADD_COMMAND = "hpj config add {name}"
_UNAVAILABLE_STATES = {"creating", "deleting", "failed"}
_MOUNT_HINT = (
    "ask the administrator of the domain to add it to the custom file systems of the space, then restart the space"
)


@dataclass(frozen=True)
class Reach:
    """Whether you can submit to a cluster from this machine.

    Attributes:
        word: One of `REACH_STATES`.
        sentence: The same as a sentence.
        next_step: What to do next.
        config: What to add to the configuration file, in TOML; a comment in it says what to fill in.
    """

    word: str
    sentence: str
    next_step: str | None = None
    config: str | None = None


@dataclass(frozen=True)
class SubmitTarget:
    """Where runs are submitted, as one cluster sees it.

    Attributes:
        here: The storage partition on this machine.
        there: The same on the cluster's nodes; None if AWS does not report it.
        mount: Where the cluster's file system is mounted here, if the partition is elsewhere.
    """

    here: str
    there: str | None = None
    mount: str | None = None


@dataclass(frozen=True)
class ReachFacts:
    """Facts from a connection attempt to a cluster's scheduler.

    Attributes:
        problem: Why the attempt failed; None: the scheduler answered.
        commands: Folder of Slurm's commands, if they are not on the PATH.
        nodes: Instances of the cluster that were looked up in the Slurm cluster that answers here.
        known: How many of them it knows.
        private: Whether the EKS cluster's API server is only reachable within its VPC.
        allowed: Whether this user has permission to create pods in the namespace ``default``.
    """

    problem: HyperpodError | None = None
    commands: str | None = None
    nodes: int = 0
    known: int = 0
    private: bool = False
    allowed: bool = True


def reach_of(
    cluster: HyperpodCluster, facts: ReachFacts | None, target: SubmitTarget, name: str | None = None
) -> Reach:
    """Whether you can submit to a cluster from this machine.

    Args:
        cluster: The cluster, with its names in the configuration and the mount points of its file systems.
        facts: Facts from the connection attempt; None: not checked yet.
        target: Where runs are submitted.
        name: A free name for it in the configuration; default: its own.
    """
    name = name or cluster.name
    if cluster.configured_as:
        configured_name = cluster.configured_as[0]
        return Reach(
            "configured",
            f"it is in the configuration as {', '.join(cluster.configured_as)}",
            f"hpj submit FILE --cluster {configured_name}",
        )
    reach = _reach_from_description(cluster)
    if reach is not None:
        return reach
    if cluster.on_slurm:
        return _slurm(cluster, facts, target, name)
    return _kubernetes(cluster, facts, name)


def _reach_from_description(cluster: HyperpodCluster) -> Reach | None:
    """What AWS' description alone rules out."""
    if cluster.groups is None:
        return Reach(
            "not-described",
            "AWS did not describe it" + (f": {cluster.reason}" if cluster.reason else ""),
            f"hpj show {cluster.name}",
        )
    if cluster.state in _UNAVAILABLE_STATES:
        steps = {
            "creating": "wait until it is in service",
            "failed": f"see why: hpj node-logs --cluster {cluster.name}",
        }
        condition = cluster.state if cluster.state != "failed" else "in the state failed"
        return Reach("not-in-service", f"it is {condition}", steps.get(cluster.state))
    if cluster.orchestrator is None:
        return Reach(
            "unknown-orchestrator",
            cluster.reason or "AWS names no orchestrator that this version supports",
            "update the package: pip install --upgrade hyperpod-jlab",
        )
    return None


def _slurm(cluster: HyperpodCluster, facts: ReachFacts | None, target: SubmitTarget, name: str) -> Reach:
    if cluster.mounted_here == ():
        systems = ", ".join(dict.fromkeys(storage.dns_name.split(".")[0] for storage in cluster.storage))
        message = f"its file system ({systems}) is not mounted here, so runs cannot reach it"
        return Reach("no-file-system", message, _MOUNT_HINT)
    if target.mount is not None:
        return Reach(
            "other-partition",
            f"runs go to {target.here}, which is not on its file system; that one is mounted at {target.mount}",
            "set path under [storage] in the configuration file to a folder there",
            f'[storage]\npath = "{target.mount}"\n',
        )
    has_login_node = any(group.slurm_role in {"Login", "Controller"} for group in cluster.groups or ())
    by_ssh = slurm_block(cluster.name, name, target, login_node="", has_login_node=has_login_node)
    if facts is None:
        return _unchecked(slurm_block(cluster.name, name, target))
    if facts.problem is not None and facts.problem.code == "no_slurm_client":
        message = "its login nodes are not configured, and this machine has no Slurm commands"
        return Reach("no-login-node", message, _login_step(cluster, name), by_ssh)
    if facts.problem is not None:
        return _slurm_problem(facts.problem, slurm_block(cluster.name, name, target, facts.commands))
    if not facts.nodes:
        message = "Slurm responds on this machine, but the cluster has no instances, so it is unknown whether this is the cluster's Slurm"
        step = f"hpj nodes {cluster.name}"
        return Reach("not-known", message, step, slurm_block(cluster.name, name, target))
    if not facts.known or facts.known * 2 < facts.nodes:
        message = "the Slurm on this machine belongs to another cluster, and no login node of this one is configured"
        return Reach("no-login-node", message, _login_step(cluster, name), by_ssh)
    return Reach(
        READY,
        f"Slurm responds on this machine and knows {facts.known} of its {facts.nodes} instances",
        _ADD_COMMAND.format(name=_name_argument(cluster.name, name)),
        slurm_block(cluster.name, name, target, facts.commands),
    )


def _slurm_problem(problem: HyperpodError, block: str) -> Reach:
    if problem.code == "missing_right":
        return Reach("no-right", problem.message, problem.hint, block)
    if problem.code in {"aws_unreachable", "aws_throttled", "aws_failed"}:
        return Reach("not-known", problem.message, problem.hint, block)
    message = f"this machine has Slurm commands, but no controller responds: {problem.message}"
    return Reach("no-controller", message, problem.hint or "scontrol ping", block)


def _login_step(cluster: HyperpodCluster, name: str) -> str:
    groups = [group.name for group in cluster.groups or () if group.slurm_role == "Login"]
    command = _ADD_COMMAND.format(name=_name_argument(cluster.name, name)) + " --login-node USER@HOST"
    if not groups:
        return f"configure a login node that ssh can reach: {command}"
    return f"its login nodes are in the group {', '.join(groups)} (hpj nodes {cluster.name}): {command}"


def _kubernetes(cluster: HyperpodCluster, facts: ReachFacts | None, name: str) -> Reach:
    eks = (cluster.eks_arn or "").rpartition("/")[2]
    block = eks_block(cluster.name, name, eks)
    if facts is None:
        return _unchecked(block)
    step = _ADD_COMMAND.format(name=_name_argument(cluster.name, name))
    if facts.problem is not None:
        word, explain = _EKS_PROBLEMS.get(facts.problem.code, ("not-known", _explain_other))
        sentence, hint = explain(facts, facts.problem, eks)
        return Reach(word, sentence, hint, block)
    if not facts.allowed:
        return Reach(
            "no-namespace",
            "you have access to its API server, but cannot create pods in the namespace default",
            f"use your team's namespace: {step} --namespace NAMESPACE",
            eks_block(cluster.name, name, eks, namespace=""),
        )
    return Reach(READY, f"you can create pods on the EKS cluster {eks}", step, block)


_Explanation = tuple[str, str | None]


def _explain_other(facts: ReachFacts, problem: HyperpodError, eks: str) -> _Explanation:
    del facts, eks
    return problem.message, problem.hint


def _explain_no_network(facts: ReachFacts, problem: HyperpodError, eks: str) -> _Explanation:
    if facts.private:
        message = f"the API server of the EKS cluster {eks} has an address only in its VPC, which this machine cannot reach: {problem.message}"
        return message, (
            "use a space whose domain is in that VPC, or connect the networks; the security group of the EKS cluster must allow port 443"
        )
    return f"the API server of the EKS cluster {eks} cannot be reached: {problem.message}", (
        problem.hint or "check proxies and lists of allowed addresses"
    )


def _explain_denied(facts: ReachFacts, problem: HyperpodError, eks: str) -> _Explanation:
    del facts, problem
    return (
        f"the EKS cluster {eks} has no access entry for your AWS identity",
        f"ask an administrator to add one for your role: aws eks create-access-entry --cluster-name {eks} --principal-arn ROLE, then associate-access-policy with AmazonSagemakerHyperpodTrainingPolicy",
    )


def _explain_refused(facts: ReachFacts, problem: HyperpodError, eks: str) -> _Explanation:
    del facts
    return (
        f"the API server of the EKS cluster {eks} denies you access: {problem.message}",
        "ask an administrator to check the access entry of your role and its access policies",
    )


_EKS_PROBLEMS: dict[str, tuple[str, Callable[[ReachFacts, HyperpodError, str], _Explanation]]] = {
    "missing_right": ("no-right", _explain_other),
    "not_found": ("not-there", _explain_other),
    "eks_not_ready": ("not-in-service", _explain_other),
    "boto3_missing": ("no-package", _explain_other),
    "boto3_too_old": ("no-package", _explain_other),
    "kubernetes_missing": ("no-package", _explain_other),
    "unauthorized": ("not-let-in", _explain_denied),
    "denied": ("not-let-in", _explain_refused),
    "unreachable": ("no-way", _explain_no_network),
    "dns": ("no-way", _explain_no_network),
    "certificate": ("no-way", _explain_other),
    "tls": ("no-way", _explain_other),
    "proxy": ("no-way", _explain_other),
}
"""Causes of a failed attempt, by error code: the `Reach.word` and the message."""


def _unchecked(block: str) -> Reach:
    return Reach(NOT_CHECKED, "not checked yet", None, block)


def _name_argument(hyperpod: str, name: str) -> str:
    return name if name == hyperpod else f"{name} --hyperpod {hyperpod}"


def slurm_block(
    hyperpod: str,
    name: str,
    target: SubmitTarget,
    commands: str | None = None,
    login_node: str | None = None,
    has_login_node: bool = False,
) -> str:
    """The configuration of a Slurm cluster, in TOML.

    Args:
        hyperpod: The HyperPod cluster's name.
        name: Its name in the configuration.
        target: Where runs are submitted.
        commands: Folder of Slurm's commands, if they are not on the PATH.
        login_node: A login node for ssh; None: Slurm's commands are installed here; empty: to be filled in.
        has_login_node: Whether AWS lists its login nodes, so that none has to be filled in.
    """
    lines = [_table(name), f"orchestrator = {quoted(SLURM)}", f"hyperpod = {quoted(hyperpod)}"]
    if commands is not None:
        lines.append(f"commands = {quoted(commands)}")
    if login_node is not None:
        lines.append('transport = "ssh"')
        lines.append(
            f"login_nodes = [{quoted(login_node)}]"
            if login_node
            else '# login_nodes = ["USER@HOST"]  # default: those that AWS names'
            if has_login_node
            else '# login_nodes = ["USER@HOST"]  # fill in a login node'
        )
    if target.there is None:
        lines.append('# storage = "/fsx/..."  # path of the storage partition on its nodes, if it differs')
    elif target.there != target.here:
        lines.append(f"storage = {quoted(target.there)}")
    return "\n".join(lines) + "\n"


def eks_block(hyperpod: str, name: str, eks: str, namespace: str | None = None) -> str:
    """The configuration of an EKS cluster, in TOML.

    Args:
        hyperpod: The HyperPod cluster's name.
        name: Its name in the configuration.
        eks: The EKS cluster's name.
        namespace: Namespace of the runs; None: ``default``; empty: to be filled in.
    """
    lines = [
        _table(name),
        f"orchestrator = {quoted(KUBERNETES)}",
        f"hyperpod = {quoted(hyperpod)}",
        f"eks = {quoted(eks)}",
    ]
    if namespace:
        lines.append(f"namespace = {quoted(namespace)}")
    elif namespace is not None:
        lines.append('# namespace = "hyperpod-ns-TEAM"  # fill in your namespace')
    lines.append('# image = "..."  # container image of the runs; otherwise use --image')
    return "\n".join(lines) + "\n"


def configure_command(cluster: HyperpodCluster, name: str, region: str | None = None) -> str:
    """The command that adds a HyperPod cluster to the configuration.

    Args:
        cluster: The cluster.
        name: A free name for it in the configuration.
        region: Its region, if that is not the default one.
    """
    command = _ADD_COMMAND.format(name=_name_argument(cluster.name, name))
    return command if region is None else f"{command} --region {region}"


def _table(name: str) -> str:
    return f"[clusters.{quoted(name) if '.' in name else name}]"


def quoted(text: str) -> str:
    """A string in TOML."""
    plain = "".join(
        f"\\u{ord(character):04x}" if ord(character) < 32 or ord(character) == 127 else character
        for character in text.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{plain}"'
