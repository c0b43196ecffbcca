"""Users of a real Kubernetes, for benchmarks."""

from __future__ import annotations

import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT)]

from bench_log_socket import places  # noqa: E402

from tests.kubernetes.cluster import KubernetesTestbed  # noqa: E402
from tests.kubernetes.session_fixtures import settings_for  # noqa: E402
from tests.session import write_config  # noqa: E402


@contextmanager
def user_of(cluster: KubernetesTestbed, **more: Any) -> Iterator[tuple[Path, dict[str, str], str]]:
    """The home, the environment and the namespace of a user whose default cluster is this one.

    Args:
        cluster: The cluster.
        more: Further fields of the cluster's configuration.
    """
    namespace = f"bench-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    cluster.claim(namespace)
    assert cluster.partition is not None
    partition = cluster.partition / namespace
    partition.mkdir()
    with tempfile.TemporaryDirectory(prefix="hyperpod-bench-") as name:
        home = Path(name)
        config = home / "config.toml"
        write_config(settings_for(cluster, namespace, partition, sub_path=namespace, **more), config)
        environment = places(home) | cluster.environment | {"HYPERPOD_CONFIG": str(config)}
        try:
            yield home, environment, namespace
        finally:
            cluster.kubectl("delete", "namespace", namespace, "--wait=false")
