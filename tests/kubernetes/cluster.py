"""A real Kubernetes for tests: the testbed's script as an object, or a cluster that the user has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tests.kubernetes.administrator import Administrator, path_of
from tests.shared import OneAtATime

TESTBED = Path(__file__).parent.parent.parent / "testbed"
SCRIPT = TESTBED / "kubernetes-testbed.sh"

#: The kubeconfig of a cluster (of kind, minikube, ...) that the tests use instead of one of their own.
KUBECONFIG_VARIABLE = "HYPERPOD_TEST_KUBECONFIG"
#: The image of its pods, with sh and python3.
IMAGE_VARIABLE = "HYPERPOD_TEST_IMAGE"
#: A folder of this machine that its nodes have at the same path.
PARTITION_VARIABLE = "HYPERPOD_TEST_PARTITION"

ONE = OneAtATime()
"""All clusters of a test run start by it."""

# As they are before any test gives itself another cache folder or kubeconfig.
_ENVIRONMENT = dict(os.environ)
_IMAGE = "localhost/testbed/python:3.11"


@dataclass(frozen=True)
class KubernetesTestbed:
    """A running cluster, with the rights of its administrator."""

    kubeconfig: Path
    image: str
    """An image with sh and python3 that all nodes have, or may pull."""
    nodes: tuple[str, ...]
    partition: Path | None
    """The storage partition on this machine; pods see it through ``claim``. None: there is none."""
    folder: Path | None = None
    """Where all state of a testbed is; None: the cluster is not ours."""

    # ------------------------------------------------------------------------------ clients

    @property
    def environment(self) -> dict[str, str]:
        """What a process on this machine needs in its environment to be a client of the cluster."""
        path = _ENVIRONMENT["PATH"]
        if self.folder is not None:
            path = f"{_programs(self.folder)}{os.pathsep}{path}"
        return {"KUBECONFIG": str(self.kubeconfig), "PATH": path}

    def run(
        self,
        *args: str | Path,
        namespace: str | None = None,
        kubeconfig: Path | None = None,
        input: str | None = None,  # noqa: A002
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Runs kubectl, as the administrator or with another kubeconfig."""
        environment = {**_ENVIRONMENT, **self.environment}
        program = shutil.which("kubectl", path=environment["PATH"])
        if program is None:
            raise RuntimeError(f"With {KUBECONFIG_VARIABLE}, kubectl must be in PATH")
        where = ["--namespace", namespace] if namespace else []
        return subprocess.run(
            [program, f"--kubeconfig={kubeconfig or self.kubeconfig}", *where, *args],
            input=input,
            stdin=None if input is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment,
            timeout=timeout,
        )

    def kubectl(self, *args: str | Path, timeout: float = 60, **options: Any) -> str:
        """The same; returns what it prints, raises with its complaint when it fails."""
        done = self.run(*args, timeout=timeout, **options)
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {args}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def create(self, *objects: Mapping[str, Any], namespace: str | None = None) -> None:
        """Creates objects, unknown fields are errors."""
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.kubectl("create", "-f", "-", namespace=namespace, input=json.dumps(items))

    def get(self, kind: str, name: str = "", namespace: str | None = None) -> dict[str, Any]:
        """One object, or a list of them without a name."""
        if self._direct and (path := path_of(kind, namespace)):
            return self._direct.get(f"{path}/{name}".rstrip("/"))
        words = [kind, *([name] if name else [])]
        found: dict[str, Any] = json.loads(self.kubectl("get", *words, "-o", "json", namespace=namespace))
        return found

    def conditions(self, kind: str, name: str, namespace: str | None = None) -> dict[str, str]:
        """The conditions in an object's status: type to ``True``, ``False`` or ``Unknown``."""
        status = self.get(kind, name, namespace).get("status", {})
        return {each["type"]: each["status"] for each in status.get("conditions", [])}

    def make_namespace(self, name: str) -> None:
        """Makes a namespace; returns when it has its service account."""
        if self._direct:
            self._direct.make_namespace(name)
            return
        self.kubectl("create", "namespace", name)
        end = time.monotonic() + 110
        while self.run("get", "serviceaccount", "default", namespace=name).returncode:
            assert time.monotonic() < end, "no service account"
            time.sleep(0.1)

    def delete_namespace(self, name: str) -> None:
        """Deletes it with all that is in it, which goes on after the return."""
        if self._direct:
            self._direct.delete_namespace(name)
        else:
            self.kubectl("delete", "namespace", name, "--wait=false")

    @cached_property
    def _direct(self) -> Administrator | None:
        """Of a testbed; a cluster of the user's may let in kubectl only."""
        return Administrator(self.kubeconfig) if self.folder is not None else None

    def user(
        self, name: str, namespace: str, *, rules: Sequence[Mapping[str, Any]] | None = None, certificate: bool = False
    ) -> Path:
        """The kubeconfig of someone who may do what the rules of a Role say, in this namespace only.

        Without rules: PyTorchJobs, and reading pods, their logs and events. Known by a token, or by a certificate.
        The file goes with the testbed; on a cluster of the user's it is the caller's to delete.
        """
        words = ["--certificate"] if certificate else []
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            if rules is not None:
                file.write(json.dumps(rules))
                file.flush()
                words += ["--rules", file.name]
            if self.folder is not None:
                return Path(self.command("user", name, namespace, *words).strip())
            script = TESTBED / "kubernetes" / "user.sh"
            text = _output([script, self.kubeconfig, name, namespace, *words], 90)
        # Readable by its owner only.
        with tempfile.NamedTemporaryFile("w", suffix=".kubeconfig", delete=False) as made:
            made.write(text)
        return Path(made.name)

    def claim(self, namespace: str, name: str = "fsx") -> None:
        """Makes a claim of that name, which is the partition."""
        if self.partition is None:
            raise RuntimeError(f"There is no partition; {PARTITION_VARIABLE} names one")
        if self._direct:
            self._direct.claim(namespace, name, self.partition)
            return
        sizes = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        volume = {
            **sizes,
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": namespace, "name": name},
            "hostPath": {"path": str(self.partition)},
        }
        claim = {**sizes, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": f"{namespace}-{name}"}
        self.create(
            _object("PersistentVolume", f"{namespace}-{name}", volume),
            _object("PersistentVolumeClaim", name, claim),
            namespace=namespace,
        )

    # ------------------------------------------------------------------------------ what only a testbed of ours can

    def command(self, name: str, *args: str | Path, timeout: float = 120) -> str:
        """Runs a command of the testbed's script; returns what it prints, raises with its complaint."""
        if self.folder is None:
            raise RuntimeError(f"A cluster of {KUBECONFIG_VARIABLE} cannot do this: {name}")
        return _output([SCRIPT, name, self.folder, *args], timeout)

    def exec(self, machine: str, *args: str | Path, timeout: float = 60) -> str:
        """Runs a program of this machine in ``control`` or a node; returns what it prints."""
        return self.command("exec", machine, *args, timeout=timeout)

    def add_image(self, name: str, root: Path) -> None:
        """Makes an image from a root folder (or a tar of one) and gives it to all nodes."""
        self.command("image", name, root)

    def node_kill(self, node: str) -> None:
        """As a power failure: no connection is closed in good order, all processes are gone."""
        self.command("node-kill", node)

    def node_start(self, node: str) -> None:
        """Switches it on again, with its disk as it was; returns when it is ready."""
        self.command("node-start", node)

    def node_cut(self, node: str) -> None:
        """Takes the node off the network, until ``node_join``."""
        self.command("node-cut", node)

    def node_join(self, node: str) -> None:
        """Puts it back."""
        self.command("node-join", node)

    def component_kill(self, machine: str, name: str) -> None:
        """Ends a component at once: ``control`` has kube-apiserver, etcd ..., a node containerd, kubelet, kube-proxy."""
        self.command("component-kill", machine, name)

    def component_start(self, machine: str, name: str) -> None:
        """Starts it again; returns at once."""
        self.command("component-start", machine, name)

    def component_hang(self, machine: str, name: str) -> None:
        """It takes connections and says nothing, until ``component_resume``."""
        self.command("component-hang", machine, name)

    def component_resume(self, machine: str, name: str) -> None:
        """It goes on."""
        self.command("component-resume", machine, name)

    def heal(self) -> None:
        """After faults: all machines and components run, all nodes are ready, and the training operator answers."""
        self.command("heal", timeout=400)


def torch_environment() -> Path:
    """An environment with PyTorch for pods, made when it is not there (5 GB); mount it by hostPath at this very path."""
    return Path(_output([TESTBED / "kubernetes" / "torch-env.sh"], 900).strip())


def _object(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _output(words: Sequence[str | Path], timeout: float) -> str:
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=_ENVIRONMENT, timeout=timeout
    )
    if done.returncode != 0:
        said = " ".join(map(str, words))
        raise RuntimeError(f"{said}: {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


@cache
def _programs(folder: Path) -> Path:
    """The folder with kubectl of a testbed's version."""
    line = _output([SCRIPT, "env", folder], 30).splitlines()[1]
    return Path(line.removeprefix("export PATH=").removesuffix(":$PATH"))


def uses_theirs() -> bool:
    """Whether the tests run on a cluster of the user's."""
    return bool(_ENVIRONMENT.get(KUBECONFIG_VARIABLE))


def of_the_user() -> KubernetesTestbed | None:
    """The cluster that the variables name, if they do."""
    kubeconfig = _ENVIRONMENT.get(KUBECONFIG_VARIABLE)
    if not kubeconfig:
        return None
    partition = _ENVIRONMENT.get(PARTITION_VARIABLE)
    cluster = KubernetesTestbed(
        kubeconfig=Path(kubeconfig).expanduser().resolve(),
        image=_ENVIRONMENT.get(IMAGE_VARIABLE, "python:3.11-slim"),
        nodes=(),
        partition=Path(partition) if partition else None,
    )
    names = [node["metadata"]["name"] for node in cluster.get("nodes")["items"]]
    return replace(cluster, nodes=tuple(names))


def build(*parts: str) -> None:
    """Builds what is missing (minutes, the first time); raises with the reason when that cannot be done."""
    if os.getuid() != 0:
        raise RuntimeError(f"A Kubernetes of the tests' own needs root; {KUBECONFIG_VARIABLE} names another one.")
    _output([SCRIPT, "build", "core", *parts], 3600)


@contextmanager
def running(
    *options: str, nodes: int = 2, parts: Sequence[str] = ("training-operator",)
) -> Iterator[KubernetesTestbed]:
    """A cluster with these options of ``kubernetes-testbed.sh start``, stopped at the end however that comes."""
    build(*parts)
    base = Path(tempfile.mkdtemp(prefix="hpj-k8s-"))
    base.chmod(0o755)
    partition = base / "fsx"
    partition.mkdir()
    partition.chmod(0o1777)
    cluster = KubernetesTestbed(
        kubeconfig=base / "cluster" / "kubeconfig",
        image=_IMAGE,
        nodes=tuple(f"node{number + 1}" for number in range(nodes)),
        partition=partition,
        folder=base / "cluster",
    )
    words: list[str | Path] = ["--nodes", str(nodes), "--partition", partition]
    switches = [switch for part in parts if (switch := f"--{part}") not in options]
    words += ["--owner", str(os.getpid()), *switches, *options]
    try:
        cluster.command("start", *words, timeout=600)
        yield cluster
    finally:
        subprocess.run([SCRIPT, "stop", base / "cluster"], capture_output=True, timeout=120)
        shutil.rmtree(base, ignore_errors=True)
