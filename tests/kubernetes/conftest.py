"""A real Kubernetes for tests. What is missing of it is built; when that cannot be, the tests fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from uuid import uuid4

import pytest

from tests.kubernetes.cluster import ONE, KubernetesTestbed, of_the_user, running, uses_theirs
from tests.kubernetes.session_fixtures import session, sessions

__all__ = ["session", "sessions"]  # fixtures for all modules here

OURS = {"kubernetes", "start_kubernetes"}
ANY = {*OURS, "kubernetes_cluster"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What needs machines of ours is no test for a cluster of the user's."""

    def takes(item: pytest.Item, names: set[str]) -> bool:
        return not names.isdisjoint(getattr(item, "fixturenames", ()))

    on_cluster = [item for item in items if takes(item, ANY)]
    if on_cluster and uses_theirs():
        ours = [item for item in on_cluster if takes(item, OURS)]
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]


@pytest.fixture(scope="session")
def kubernetes_cluster(request: pytest.FixtureRequest) -> Iterator[KubernetesTestbed]:
    """One for all tests, with the training operator, and with Kubeflow Trainer where long tests run; they leave it as they found it."""
    if theirs := of_the_user():
        yield theirs
        return
    has_long_tests = any(
        ANY & set(getattr(item, "fixturenames", ())) and item.get_closest_marker("full")
        for item in request.session.items
    )
    parts = ("training-operator", *(("trainer",) if has_long_tests else ()))
    with ONE.only(running("--gpus", "8", parts=parts)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kueue_cluster() -> Iterator[KubernetesTestbed]:
    """One with Kueue, for the modules whose ``kubernetes_cluster`` it is."""
    if theirs := of_the_user():
        yield theirs
        return
    with ONE.only(running("--gpus", "8", parts=("training-operator", "kueue"))) as cluster:
        yield cluster


@pytest.fixture
def kubernetes(kubernetes_cluster: KubernetesTestbed) -> Iterator[KubernetesTestbed]:
    """The same for tests that break it, made whole again after each; never a cluster of the user's."""
    yield kubernetes_cluster
    kubernetes_cluster.heal()


@pytest.fixture
def start_kubernetes() -> Callable[..., AbstractContextManager[KubernetesTestbed]]:
    """Starts clusters of the test's own: ``with start_kubernetes("--kwok", "100", nodes=1) as cluster``."""
    return running


@contextmanager
def own_namespace(kubernetes_cluster: KubernetesTestbed) -> Iterator[str]:
    """A namespace, with what a new one gets."""
    name = f"test-{uuid4().hex[:8]}"
    kubernetes_cluster.make_namespace(name)
    yield name
    kubernetes_cluster.delete_namespace(name)


@pytest.fixture
def namespace(kubernetes_cluster: KubernetesTestbed) -> Iterator[str]:
    """A namespace of the test's own."""
    with own_namespace(kubernetes_cluster) as name:
        yield name
