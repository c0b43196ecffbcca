"""Which kind a run becomes: the one that its spec names, else the best that the cluster offers."""

from __future__ import annotations

from dataclasses import dataclass

from hyperpod_jlab.model.errors import RefusedError
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import Kind
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import BY_NAME, KINDS
from hyperpod_jlab.orchestrators.kubernetes.kinds.train_job import Runtime, TrainJob

_BY_NAME_ONLY = frozenset({"HyperPodPyTorchJob"})
"""Not chosen for a run that names no kind: the images must have the agent."""


@dataclass(frozen=True)
class Offers:
    """What a cluster has.

    Attributes:
        kinds: Names of the kinds that it knows; None when it could not be asked, and the usual one is taken.
        runtimes: Training runtimes, the namespace's own first; None when they could not be listed.
        denied: Names of those kinds that this user may not make.
        operator: The version of Kubeflow's training operator; None when it cannot be seen.
    """

    kinds: frozenset[str] | None = None
    runtimes: tuple[Runtime, ...] | None = None
    denied: frozenset[str] = frozenset()
    operator: str | None = None


@dataclass(frozen=True)
class Choice:
    """The kind for a run, and why."""

    kind: Kind
    why: str


def choose(spec: JobSpec, offers: Offers, runtime: str | None) -> Choice:
    """The kind for a spec.

    Args:
        spec: The spec.
        offers: What the cluster has.
        runtime: The training runtime that the configuration names, for a TrainJob.

    Raises:
        RefusedError: The cluster does not offer the kind that the spec names, or not the runtime.
    """
    if spec.array is not None:
        return Choice(BY_NAME["Job"], "the tasks of an array are the pods of a Job")
    named = spec.kubernetes.kind
    if offers.kinds is None:
        kind = BY_NAME[named or KINDS[0].name]
        return Choice(_with_runtime(kind, offers, runtime), "the cluster could not be asked")
    if named is not None:
        if named not in offers.kinds:
            listed = ", ".join(kind.name for kind in KINDS if kind.name in offers.kinds)
            raise RefusedError(
                f"the cluster has no {named}",
                code="no_such_kind",
                hint=f"it has: {listed or 'none that a run can be'}; its operator is the admin's to install",
                detail={"field": "kubernetes.kind", "offered": sorted(offers.kinds)},
            )
        return Choice(_with_runtime(BY_NAME[named], offers, runtime), "the spec says so")
    usable = [kind for kind in KINDS if _is_usable(kind, offers, runtime)]
    for kind in usable:
        if kind.name not in offers.denied:
            better = [one.name for one in usable[: usable.index(kind)]]
            why = f"you may not make a {better[0]}" if better else _WHY[kind.name]
            return Choice(_with_runtime(kind, offers, runtime), why)
    if usable:  # the API server says which right is missing
        return Choice(_with_runtime(usable[0], offers, runtime), _WHY[usable[0].name])
    raise RefusedError(
        "the cluster offers no kind of object that a run can be",
        code="no_such_kind",
        hint="ask its admin for Kubeflow's training operator",
        detail={"field": "kubernetes.kind"},
    )


_WHY = {
    "PyTorchJob": "the cluster has Kubeflow's training operator",
    "TrainJob": "the cluster has Kubeflow Trainer, and no PyTorchJob",
    "Job": "the cluster has no training operator",
}


def _is_usable(kind: Kind, offers: Offers, runtime: str | None) -> bool:
    """Whether a kind may be taken for a run that names none."""
    if kind.name not in (offers.kinds or ()) or kind.name in _BY_NAME_ONLY:
        return False
    return kind.name != "TrainJob" or not _no_runtime(offers, runtime)


def _no_runtime(offers: Offers, runtime: str | None) -> bool:
    return runtime is None and offers.runtimes == ()


def _with_runtime(kind: Kind, offers: Offers, runtime: str | None) -> Kind:
    """A TrainJob of the runtime that is wanted, or of the usual one.

    Raises:
        RefusedError: The cluster does not have it.
    """
    if not isinstance(kind, TrainJob):
        return kind
    found = offers.runtimes
    wanted = runtime or Runtime().name
    match = next((one for one in found or () if one.name == wanted), None)
    if match is None and runtime is None and found is not None and len(found) == 1:
        match = found[0]
    if match is None and found is not None:
        listed = ", ".join(one.name for one in found) or "none"
        raise RefusedError(
            f"the cluster has no training runtime called {wanted}",
            code="no_such_runtime",
            hint=f"it has: {listed}; name one as runtime in the cluster's configuration",
            detail={"field": "kubernetes.kind"},
        )
    return TrainJob(match or Runtime(wanted))
