"""A run's pods from here: a port of one, and the command that opens a shell in one."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import replace

from hyperpod_jlab.model.run_id import split_run_id
from hyperpod_jlab.orchestrators.kubernetes.api.connection import Connection
from hyperpod_jlab.orchestrators.kubernetes.kinds.names import RUN_LABEL
from hyperpod_jlab.orchestrators.kubernetes.ports.channel import PodPort, open_port
from hyperpod_jlab.orchestrators.kubernetes.ports.pods import ReachablePod, by_rank, pod_of
from hyperpod_jlab.orchestrators.kubernetes.sending.adopted import adopted_uid
from hyperpod_jlab.orchestrators.kubernetes.sending.sent import read_sent
from hyperpod_jlab.orchestrators.kubernetes.watching.array_tasks import place_in
from hyperpod_jlab.orchestrators.ports import Shell
from hyperpod_jlab.storage.records import BundleReader

_SHELL = "command -v bash >/dev/null && exec bash || exec sh"


class Forwarder:
    """Ways into the pods of one cluster's runs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def open(self, bundle: BundleReader, node: int, port: int) -> PodPort:
        """Connect to a port of the pod of a node's rank.

        Raises:
            NotFoundError: The run has no such pod.
            ConflictError: It does not run.
            DeniedError: This user may not do so.
            UnreachableError: The API server or the node does not answer.
        """
        pod = pod_of(await self.pods(bundle), node)
        client = await self._connection.client()
        return await open_port(client, pod.namespace, pod.name, port)

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """The commands for those of its pods that run."""
        pods = await self.pods(bundle)
        context = self._connection.config.context
        return [
            Shell(pod.node_rank, pod.node, shell_command(pod, context))
            for pod in pods
            if pod.running
        ]

    async def pods(self, bundle: BundleReader) -> list[ReachablePod]:
        """The run's pods, by rank.

        Raises:
            DeniedError: The run is another user's.
        """
        await asyncio.to_thread(bundle.check_own, "open")
        client = await self._connection.client()
        sent = await asyncio.to_thread(read_sent, bundle)
        adopted = await asyncio.to_thread(adopted_uid, bundle) is not None
        run_id, _ = split_run_id(bundle.run_id)
        labelled = sent.kind.labels_pods and not adopted
        selector = f"{RUN_LABEL}={run_id}" if labelled else sent.kind.pods_selector(sent.name)
        path = f"/api/v1/namespaces/{sent.namespace}/pods"
        found = await client.get(path, labelSelector=selector)
        pods = by_rank(found.get("items") or [], sent.kind)
        if bundle.index is None:
            return pods
        array = (await asyncio.to_thread(bundle.spec)).array or ""
        place = place_in(array, bundle.index)
        return [replace(pod, node_rank=0) for pod in pods if pod.node_rank == place]


def shell_command(pod: ReachablePod, context: str | None) -> str:
    """The command that opens a shell in a pod's container: bash where the image has it, else sh."""
    words = ["kubectl", *([f"--context={context}"] if context else [])]
    words += [
        f"--namespace={pod.namespace}",
        "exec",
        "-it",
        pod.name,
        f"--container={pod.container}",
    ]
    return shlex.join([*words, "--", "sh", "-c", _SHELL])
