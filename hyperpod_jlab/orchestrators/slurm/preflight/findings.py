"""What a Slurm cluster has to say about a spec before it is sent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass
from functools import partial

from hyperpod_jlab.model.config import SlurmCluster
from hyperpod_jlab.model.errors import HyperpodError, UnreachableError, nearest_hint
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.orchestrators.protocol import Rendered, RenderInput
from hyperpod_jlab.orchestrators.seal import Seal
from hyperpod_jlab.orchestrators.slurm.preflight.accounts import Accounts
from hyperpod_jlab.orchestrators.slurm.preflight.facts import Facts
from hyperpod_jlab.orchestrators.slurm.preflight.far_side import python_findings, storage_findings
from hyperpod_jlab.orchestrators.slurm.preflight.fitting import (
    count_findings,
    fitting_findings,
    queues_of,
)
from hyperpod_jlab.orchestrators.slurm.preflight.limits import Limits
from hyperpod_jlab.orchestrators.slurm.sending.native import Sending
from hyperpod_jlab.orchestrators.slurm.sending.render import render
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.translation import PathMap

_SURE = {
    "array_too_large": "array",
    "denied": None,
    "invalid_feature": "slurm.flags.constraint",
    "invalid_gres": "resources.accelerators",
    "invalid_license": "slurm.flags.licenses",
    "invalid_qos": "qos",
    "invalid_reservation": "slurm.flags.reservation",
    "invalid_time_min": "slurm.flags.time-min",
    "no_association": "account",
    "no_such_nodes": "resources",
    "queue_closed": "queue",
    "queue_denied": "queue",
    "reservation_denied": "slurm.flags.reservation",
    "too_many_cpus": "resources.cpus",
    "too_many_nodes": "resources.nodes",
    "unknown_node": "slurm.flags.nodelist",
    "unknown_queue": "queue",
}
"""Verdicts with which sbatch refuses a job for good, by the code of `complaints`, and the field that they are about."""

_IN_PART = frozenset({"accounting_down", "no_accounting", "controller_slow"})
"""Codes of those `UnreachableError` after which sbatch may still be answered."""

_CONTROLLER = "allocation failure: "
"""How sbatch --test-only begins what the controller said (src/sbatch/sbatch.c)."""

_FLAG = re.compile(r"--([a-z][-a-z]+)")

_PRIORITY = re.compile(r"[0-9]{1,10}|TOP", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """What preflight looks at besides the spec.

    Attributes:
        name: The cluster's name in the configuration.
        config: Its configuration.
        facts: What is known of it.
        partition: The storage partition.
        paths: The partition here and there.
        python: The interpreter as the nodes see it, or None for their own.
    """

    name: str
    config: SlurmCluster
    facts: Facts
    partition: Partition
    paths: PathMap
    python: str | None


async def preflight(spec: JobSpec, place: Place) -> list[Finding]:
    """All that was found. What only a part of the cluster does not answer is a warning.

    Raises:
        InvalidInputError: A further flag is unknown, protected or has a wrong value.
        UnreachableError: The cluster does not answer, so that sending the run would only take as long again.
    """
    return [*_words(spec), *await _unless_in_part(_both(spec, place))]


async def native_verdict(given: RenderInput, rendered: Rendered, place: Place) -> list[Finding]:
    """What the cluster says of a user's own script with the options that it is sent with, its ``#SBATCH`` lines read: the number of nodes, and the controller's word.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    return await _unless_in_part(_of_script(given, rendered, place))


async def _of_script(given: RenderInput, rendered: Rendered, place: Place) -> list[Finding]:
    told = rendered.facts
    assert given.native is not None  # it was rendered of it
    assert told is not None
    resources = given.spec.resources.model_copy(update={"nodes": told.nodes})
    spec = given.spec.model_copy(update={"queue": told.queue, "resources": resources})
    found = count_findings(spec, await place.facts.limits())
    if any(finding.level == "error" for finding in found):
        return found
    options = Sending.from_json(rendered.text).options
    return await _judged(spec, place, given.native.data, options)


async def _unless_in_part(asked: Awaitable[list[Finding]]) -> list[Finding]:
    """What was found; a warning where only a part of the cluster does not answer."""
    try:
        return await asked
    except HyperpodError as error:
        silent = isinstance(error, UnreachableError) and error.code not in _IN_PART
        if error.code == "invalid_flag" or silent:
            raise
        message = f"the cluster could not be asked about the run: {error.message}"
        return [Finding(level="warning", code="unchecked", message=message, hint=error.hint)]


async def _both(spec: JobSpec, place: Place) -> list[Finding]:
    """What we find and what the controller says, asked for at the same time; its word counts when we find nothing wrong."""
    said = asyncio.create_task(_verdict(spec, place))
    try:
        found = [finding async for finding in _asked(spec, place)]
        refused = any(finding.level == "error" for finding in found)
        return found if refused else [*found, *await said]
    finally:
        said.cancel()
        await asyncio.gather(said, return_exceptions=True)


async def _asked(spec: JobSpec, place: Place) -> AsyncIterator[Finding]:
    """What the cluster and its login node are asked, cheapest first."""
    facts, remote = place.facts, place.config.transport == "ssh"
    python, paths = place.python, place.paths
    if python is not None and spec.environment.image is None:
        given = spec.environment.python is not None
        see = partial(python_findings, python, given, facts, paths, remote)
        for finding in await facts.unless_fine(f"python {given} {python}", see):
            yield finding
    if remote:
        see = partial(storage_findings, facts, place.partition, paths)
        for finding in await facts.unless_fine("storage", see):
            yield finding
    if spec.environment.image is not None and not await facts.containers():
        yield Finding(
            level="error",
            code="unsupported",
            message="the cluster runs no containers: its srun does not know --container-image",
            hint="leave out --image and name a --python, or ask the cluster's admin for Pyxis and Enroot",
            field="environment.image",
        )
    limits = await facts.limits()
    for finding in fitting_findings(spec, limits, hyperpod=place.config.hyperpod is not None):
        yield finding
    for finding in _instances(spec, limits):
        yield finding
    if spec.account is not None or spec.qos is not None:
        accounts = await facts.accounts()
        enforced = (await facts.settings()).enforced
        for finding in _named(spec, accounts, enforced):
            yield finding


def _named(spec: JobSpec, accounts: Accounts | None, enforced: frozenset[str]) -> Iterator[Finding]:
    """Account and QoS. Where the cluster does not enforce them a wrong one does no harm, and counts nothing."""
    if accounts is None:
        for field in ("account", "qos"):
            if getattr(spec, field) is not None:
                yield Finding(
                    level="info",
                    code="ignored",
                    message=f"the cluster keeps no accounts, so {field} is of no use",
                    field=field,
                )
        return
    if spec.account is not None and spec.account not in accounts.qos:
        yield Finding(
            level="error" if "associations" in enforced else "warning",
            code="no_association",
            message=f"{accounts.user} has no account '{spec.account[:60]}' on the cluster",
            hint=nearest_hint(spec.account[:60], accounts.names)
            or "ask the cluster's admin for an account",
            field="account",
        )
        return
    known = accounts.qos_of(spec.account)
    if spec.qos is not None and spec.qos not in known:
        of = f" with the account {spec.account}" if spec.account is not None else ""
        yield Finding(
            level="error" if "qos" in enforced else "warning",
            code="invalid_qos",
            message=f"{accounts.user} may not use the QoS '{spec.qos[:60]}'{of}",
            hint=nearest_hint(spec.qos[:60], known) or "ask the cluster's admin for one",
            field="qos",
        )


def _words(spec: JobSpec) -> Iterator[Finding]:
    """What can be said without asking anybody."""
    if spec.priority is not None and not _PRIORITY.fullmatch(spec.priority):
        yield Finding(
            level="error",
            code="bad_priority",
            message=f"a priority of Slurm is a whole number or TOP, not '{spec.priority[:60]}'",
            hint="leave it out, or name a --qos",
            field="priority",
        )
    own = [name for name in spec.environment.variables if name.startswith(("SLURM_", "SLURMD_"))]
    if own:
        yield Finding(
            level="error",
            code="scheduler_variable",
            message=f"{own[0]} is set by the scheduler, for each job its own",
            hint="leave it out, or give yours another name",
            field="environment.variables",
        )
    given = {
        "resources.instance_group": spec.resources.instance_group,
        "resources.efa": spec.resources.efa,
        "kubernetes.kind": spec.kubernetes.kind,
        "kubernetes.namespace": spec.kubernetes.namespace,
        "kubernetes.service_account": spec.kubernetes.service_account,
        "kubernetes.patch": spec.kubernetes.patch or None,
        "kubernetes.keep_companions": spec.kubernetes.keep_companions or None,
    }
    if spec.environment.image is not None:
        given["environment.python"] = spec.environment.python
    for field, value in given.items():
        if value is not None:
            why = ": the image's python3 is used" if field == "environment.python" else ""
            yield Finding(
                level="info",
                code="ignored",
                message=f"a Slurm cluster has no use for {field}{why}",
                field=field,
            )


def _instances(spec: JobSpec, limits: Limits) -> Iterator[Finding]:
    """Slurm knows no instance types, but queues or features of nodes are often called after them."""
    wanted = spec.resources.instance_type
    if wanted is None:
        return
    features = {
        feature for queue in limits.values() for group in queue.groups for feature in group.features
    }
    queue = next((name for name in limits if name in {wanted, wanted.removeprefix("ml.")}), None)
    if spec.queue is not None and spec.queue == queue:
        return
    hint = None
    if queue is not None:
        hint = f"the cluster has a queue of this name: --queue {queue}"
    elif wanted in features:
        hint = f"nodes have a feature of this name: give the flag constraint={wanted}"
    yield Finding(
        level="warning",
        code="ignored",
        message="a Slurm cluster knows no instance types, so resources.instance_type is not heeded",
        hint=hint or "choose nodes by --queue; see: hpj queues",
        field="resources.instance_type",
    )


async def _verdict(spec: JobSpec, place: Place) -> list[Finding]:
    """What the controller says of the script itself (sbatch --test-only, about 10 ms)."""
    bundle = str(place.partition.bundle("preflight").relative_to(place.partition.root))
    name = spec.name or "preflight"
    given = RenderInput("preflight", name, spec, bundle, place.paths, place.python, Seal.current())
    return await _judged(spec, place, render(given).text.encode())


async def _judged(
    spec: JobSpec, place: Place, script: bytes, options: tuple[str, ...] = ()
) -> list[Finding]:
    error = await place.facts.verdict(script, options)
    if error is None:
        return []
    # Of nodes that are not there just now, as for seconds after the controller's start, it says the same as of those that never were.
    unsure = error.code == "no_such_nodes" and await place.facts.nodes_missing()
    limits = await place.facts.limits()
    return [_verdict_finding(error, spec, limits, sure=not unsure)]


def _verdict_finding(
    error: HyperpodError, spec: JobSpec, limits: Limits, *, sure: bool = True
) -> Finding:
    """A verdict that only says that there is no room now is a warning: the run waits. What sbatch itself complains about, or refuses for good, is an error."""
    of_controller = _CONTROLLER in error.message
    message = error.message.replace(_CONTROLLER, "")
    if of_controller and not (sure and error.code in _SURE):
        names = ", ".join(queue.name for queue in queues_of(spec, limits))
        return Finding(
            level="warning",
            code="would_not_start",
            message=f"it would not start now in the queue {names}: {message}",
            hint=error.hint,
        )
    flag = _FLAG.search(message)
    named = f"slurm.flags.{flag[1]}" if flag and flag[1] in spec.slurm.flags else None
    return Finding(
        level="error",
        code=error.code,
        message=message,
        hint=error.hint,
        field=named or _SURE.get(error.code),
    )
