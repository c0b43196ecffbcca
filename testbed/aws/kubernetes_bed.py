"""A real Kubernetes of the testbed as a HyperPod cluster's on EKS: each node's machine is that of an instance.

Nodes are called ``hyperpod-i-...`` and have HyperPod's labels; a node that is repaired says so in its label and by a taint, a replaced one is
another object of another name. EKS' DescribeCluster tells where the API server is, and it takes EKS' tokens (`eks_tokens`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import ssl
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from testbed.aws.attached import GROUP, Attached, BedError, order
from testbed.aws.control_plane import AccessEntry, ControlPlane
from testbed.aws.eks_tokens import TokenAuthenticator
from testbed.aws.endpoint import Endpoint
from testbed.aws.lifecycle import Timings
from testbed.aws.state import Node

SCRIPT = Path(__file__).parent.parent / "kubernetes-testbed.sh"
PREFIX = "hyperpod-"
"""What the name of a node has before its instance id."""

LABELS = "sagemaker.amazonaws.com/"
HEALTH = f"{LABELS}node-health-status"
"""The label by which HyperPod says how a node is, and is told to repair it."""

_WEBHOOK = SCRIPT.parent / "kubernetes" / "etc" / "token-webhook.kubeconfig"
_ASKED = {"UnschedulablePendingReplacement": "replace", "UnschedulablePendingReboot": "reboot"}
"""What somebody orders who gives a node that label."""


@contextmanager
def kubernetes_bed(folder: Path, *options: str, nodes: int = 2) -> Iterator[Path]:
    """A Kubernetes of the testbed in a folder, whose API server asks whose EKS' tokens are; stopped and removed at the end, also when this process is killed.

    Args:
        folder: Where it lies; it must be empty or not there.
        options: Options of ``kubernetes-testbed.sh start``, besides number and names of the nodes.
        nodes: How many nodes it has.

    Raises:
        BedError: It does not start.
    """
    ids = [hashlib.sha256(f"{folder}/{number}".encode()).hexdigest()[:17] for number in range(nodes)]
    names = ",".join(f"{PREFIX}i-{one}" for one in ids)
    flags = {"config-file": _WEBHOOK, "version": "v1", "cache-ttl": "1s"}
    words = [f"--authentication-token-webhook-{name}={value}" for name, value in flags.items()]
    known = ["--nodes", str(nodes), "--names", names, "--owner", str(os.getpid())]
    variables = {"APISERVER_ARGS": " ".join(words)}
    try:
        order(SCRIPT, folder, "start", *known, *options, variables=variables)
        yield folder
    finally:
        subprocess.run([SCRIPT, "stop", folder], capture_output=True, check=False)


def names_of(folder: Path) -> list[str]:
    """What a testbed's nodes are called in Kubernetes, in the order of their machines.

    Raises:
        BedError: There is none, or its nodes are not named as HyperPod names them.
    """
    machines = folder.glob("machines/node*")
    files = sorted(machines, key=lambda one: int(one.name.removeprefix("node")))
    names = [(one / "name").read_text().strip() for one in files if (one / "name").exists()]
    if not names or any(not re.fullmatch(rf"{PREFIX}i-[0-9a-f]{{17}}", name) for name in names):
        raise BedError(f"{folder} is no testbed that was started with --names {PREFIX}i-...")
    return names


def pinned_image(folder: Path) -> str:
    """The image with Python by its digest: nodes have it under that name too."""
    with tarfile.open(folder / "images" / "python.tar") as archive:
        index = archive.extractfile("index.json")
        assert index is not None
        (found,) = json.load(index)["manifests"]
    name = str(found["annotations"]["io.containerd.image.name"])
    return f"{name.rpartition(':')[0]}@{found['digest']}"


class AttachedKubernetes(Attached):
    """A HyperPod cluster on EKS over a testbed, while it is entered.

    Args:
        endpoint: The account's endpoint.
        sts: Where that serves, as ``http://127.0.0.1:8080``: tokens are shown there.
        folder: The testbed's folder; made by `kubernetes_bed`.
        region: The cluster's region.
        name: The HyperPod cluster's name.
        eks: The EKS cluster's name.
        entries: Whom the EKS cluster lets in, by the name of their role.
        timings: How long things take.
        more: What else the instance group has, such as its ``storage``.

    Raises:
        BedError: There is no such testbed.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        sts: str,
        folder: Path,
        region: str,
        name: str = "research-eks",
        eks: str = "research",
        *,
        entries: dict[str, AccessEntry] | None = None,
        timings: Timings | None = None,
        **more: Any,
    ) -> None:
        self.folder = folder
        account = endpoint.account
        names = names_of(folder)
        cluster = account.add_cluster(
            name,
            region,
            orchestrator=account.eks(eks, region),
            provisioning="Continuous",
            salt="".join(names),  # no node has a name again that one had before, on the same testbed
        )
        group = cluster.add_group(GROUP, "ml.p5.48xlarge", 0, **more)
        for number, node in enumerate(names, 1):
            address = f"10.88.6.{10 + number}"
            cluster.add_node(group, address=address).instance_id = node.removeprefix(PREFIX)
        group.target = len(cluster.nodes)
        server, authority, token = _way_in(folder)
        roles = {account.role_arn(role): entry for role, entry in (entries or {}).items()}
        self.plane = ControlPlane(server, authority, roles)
        account.control_planes[region, eks] = self.plane
        self.authenticator = TokenAuthenticator(eks, self.plane, sts, _machine(folder, "control"))
        context = ssl.create_default_context(cafile=str(folder / "pki" / "ca.crt"))
        bearer = {"Authorization": f"Bearer {token}"}
        self._api = httpx.Client(base_url=server, verify=context, headers=bearer, trust_env=False)
        self._told: dict[str, str] = {}
        self._silent: set[str] = set()
        self._stack = ExitStack()
        super().__init__(endpoint, cluster, timings)

    def __enter__(self) -> Self:
        self._stack.enter_context(self._api)
        self._stack.enter_context(self.authenticator)
        self.tell()
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._stack.close()

    def is_up(self, node: Node) -> bool:
        """Whether the node's kubelet runs, and the API server has heard from it."""
        if _name(node) in self._silent:
            return False
        machine, folder = _machine_of(node), self.folder
        try:
            number = (folder / "machines" / machine / "components" / "kubelet.pid").read_text()
            proc = Path("/proc", str(_machine(folder, machine)), "root/proc", number.strip())
            name, state = re.findall(r"\((.*)\) (\w)", (proc / "stat").read_text())[0]
        except (BedError, OSError, IndexError):
            return False
        return bool(name == "knode" and state not in "ZX")

    def switch_on(self, node: Node) -> None:
        """Start the node's machine, which joins the cluster under the node's name."""
        order(SCRIPT, self.folder, "node-start", _machine_of(node), _name(node))

    def switch_off(self, node: Node) -> None:
        """End the node's machine, and all that runs there."""
        try:
            _machine(self.folder, _machine_of(node))
        except BedError:
            return
        order(SCRIPT, self.folder, "node-kill", _machine_of(node))

    # ------------------------------------------------------------------------------ labels

    def tell(self) -> None:
        """Nodes get HyperPod's labels and its taint, those whose instances are gone are removed; who labels one orders its repair."""
        try:
            listed = self._api.get("/api/v1/nodes", timeout=5).raise_for_status().json()["items"]
        except httpx.HTTPError:
            return  # the API server is away: later
        self._silent = {str(one["metadata"]["name"]) for one in listed if _is_silent(one)}
        with self.endpoint.changing():
            nodes = {_name(node): node for node in self.cluster.nodes}
            for one in listed:
                name = str(one["metadata"]["name"])
                if name in nodes:
                    self._heed(one, nodes[name])
            said = {name: _health(node) for name, node in nodes.items()}
        for one in listed:
            name = str(one["metadata"]["name"])
            if name in nodes:
                self._label(one, nodes[name], said[name])
            elif name.startswith(PREFIX):
                self._ask("DELETE", name)

    def _heed(self, one: dict[str, Any], node: Node) -> None:
        """Begin the repair that somebody ordered by a node's label."""
        found = (one["metadata"].get("labels") or {}).get(HEALTH)
        known = self._told.get(node.instance_id)
        if known is None or found == known or node.status != "Running" or found not in _ASKED:
            return
        if _ASKED[found] == "replace":
            self.lifecycle.replace(node)
        else:
            node.status, node.message = "Pending", "The instance is being rebooted."

    def _label(self, one: dict[str, Any], node: Node, health: str) -> None:
        labels = one["metadata"].get("labels") or {}
        wanted = {
            HEALTH: health,
            f"{LABELS}instance-group-name": node.group,
            f"{LABELS}cluster-name": self.cluster.name,
            f"{LABELS}compute-type": "hyperpod",
            "node.kubernetes.io/instance-type": self.cluster.group_of(node).instance_type,
        }
        given = (one.get("spec") or {}).get("taints") or []
        taints = [taint for taint in given if taint["key"] != HEALTH]
        if health != "Schedulable":
            taints.append({"key": HEALTH, "value": health, "effect": "NoSchedule"})
        self._told[node.instance_id] = health
        if wanted.items() <= labels.items() and taints == given:
            return
        change = {"metadata": {"labels": wanted}, "spec": {"taints": taints}}
        self._ask("PATCH", str(one["metadata"]["name"]), change)

    def _ask(self, verb: str, name: str, change: Any = None) -> None:
        content = {"Content-Type": "application/merge-patch+json"} if change else {}
        try:
            self._api.request(verb, f"/api/v1/nodes/{name}", json=change, headers=content, timeout=5)
        except httpx.HTTPError:
            return  # it is tried again with the next look


def _health(node: Node) -> str:
    """How HyperPod calls the health of a node in this state."""
    if node.status in {"Failure", "ShuttingDown"}:
        return "UnschedulablePendingReplacement"
    if node.status == "Pending":
        return "UnschedulablePendingReboot"
    return "Schedulable" if node.status == "Running" else "Unschedulable"


def _is_silent(one: dict[str, Any]) -> bool:
    """Whether the API server has not heard from a node for a while."""
    conditions = one.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "Unknown" for each in conditions)


def _way_in(folder: Path) -> tuple[str, str, str]:
    """Address, authority and administrator's token of a testbed's API server."""
    text = (folder / "kubeconfig").read_text()
    server = re.findall(r'server: "([^"]+)"', text)
    authority = re.findall(r"certificate-authority-data: ([\w+/=]+)", text)
    token = re.findall(r'token: "([^"]+)"', text)
    return server[0], authority[0], token[0]


def _machine(folder: Path, name: str) -> int:
    """The first process of a machine.

    Raises:
        BedError: It does not run.
    """
    try:
        pid = int((folder / "run" / f"{name}.pid").read_text())
        environment = Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
    except (OSError, ValueError):
        raise BedError(f"{name} does not run") from None
    if f"KUBERNETES_TESTBED={folder}".encode() not in environment:
        raise BedError(f"{name} does not run")
    return pid


def _machine_of(node: Node) -> str:
    """The machine that an instance is: its address says which."""
    return f"node{int(node.address.rpartition('.')[2]) - 10}"


def _name(node: Node) -> str:
    return f"{PREFIX}{node.instance_id}"
