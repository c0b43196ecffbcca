"""Ways to be let in: kubeconfigs of all kinds, pods, EKS clusters by their names."""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, InvalidInputError, UnsupportedError
from hyperpod_jlab.engines.kubernetes.api import access
from hyperpod_jlab.engines.kubernetes.api.access import load_access
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.kubeconfig import find_proxy
from tests.kubernetes.access_fixtures import AUTHORITY, CONFIG, clean, later, token_of
from tests.kubernetes.cluster import KubernetesTestbed

__all__ = ["clean"]


def write(path: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> Path:
    data = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster or {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(data))
    return path


def program(folder: Path, body: str) -> Path:
    path = folder / "login.py"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{body}")
    path.chmod(0o755)
    return path


# ---------------------------------------------------------------------------------------------- kubeconfigs


def test_no_kubeconfig_says_what_to_do() -> None:
    with pytest.raises(InvalidInputError) as caught:
        load_access(CONFIG)
    assert caught.value.code == "invalid_kubeconfig"
    assert str(Path("~/.kube/config").expanduser()) in caught.value.message
    assert "eks" in str(caught.value.hint)


def test_a_kubeconfig_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", f"/missing/one{os.pathsep}/missing/two")
    with pytest.raises(InvalidInputError, match=r"no file of KUBECONFIG exists .*/missing/one, /missing/two"):
        load_access(CONFIG)
    monkeypatch.setenv("KUBECONFIG", os.pathsep)
    with pytest.raises(InvalidInputError, match="no file of KUBECONFIG exists"):
        load_access(CONFIG)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "cannot be read"),
        ("- a", "not a kubeconfig"),
        ("", "no current context"),
        ("current-context: x", "no context x"),
        ("current-context: c\ncontexts: [{name: c, context: {cluster: k}}]", "names a cluster"),
        ("users: [{name: u, user: {token: top-secret", "cannot be read"),
    ],
)
def test_a_wrong_kubeconfig_is_said_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, word: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(InvalidInputError, match=word) as caught:
        load_access(CONFIG)
    assert "top-secret" not in str(caught.value)


def test_a_context_that_is_nearly_right_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "a", {})))
    with pytest.raises(InvalidInputError, match="did you mean 'c'"):
        load_access(KubernetesCluster(orchestrator="kubernetes", context="C"))


def test_several_files_and_the_first_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = write(tmp_path / "one", {"token": "first"})
    two = write(tmp_path / "two", {"token": "second"})
    text = two.read_text().replace("name: c", "name: d").replace("user: u", "user: v")
    two.write_text(text.replace("name: u", "name: v"))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}{os.pathsep}{one}{os.pathsep}{two}")
    assert token_of(load_access(CONFIG)) == "Bearer first"
    other = load_access(KubernetesCluster(orchestrator="kubernetes", context="d"))
    assert token_of(other) == "Bearer second"


def test_a_token_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("one\n")
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "a", {"tokenFile": "token"})))
    found = load_access(CONFIG)
    assert token_of(found) == "Bearer one"
    (tmp_path / "token").write_text("two\n")
    assert token_of(found) == "Bearer one"
    found.renew()
    assert token_of(found) == "Bearer two"
    (tmp_path / "token").write_text("three\n")
    later(monkeypatch, 61)
    assert token_of(found) == "Bearer three"


def test_name_password_and_impersonation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = {"username": "a", "password": "b", "as": "c"}
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "a", user)))
    said = base64.b64encode(b"a:b").decode()
    assert load_access(CONFIG).headers() == {"Authorization": f"Basic {said}", "Impersonate-User": "c"}


# ---------------------------------------------------------------------------------------------- programs that log in


def exec_user(path: Path, **more: Any) -> dict[str, Any]:
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": str(path), **more}}


def test_a_program_is_run_anew_before_its_token_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"""
count = len(os.listdir({str(tmp_path)!r}))
open(os.path.join({str(tmp_path)!r}, f"ran-{{count}}"), "w")
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert info["spec"]["interactive"] is False and info["spec"]["cluster"]["server"]
end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + int(os.environ["LASTS"])))
print(json.dumps({{"status": {{"token": sys.argv[1] + str(count), "expirationTimestamp": end}}}}))
"""
    path = program(tmp_path, body)
    user = exec_user(Path("./login.py"), args=["t"], env=[{"name": "LASTS", "value": "600"}], provideClusterInfo=True)
    user["exec"]["command"] = "./login.py"  # relative to the kubeconfig
    assert path.exists()
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "a", user)))
    found = load_access(CONFIG)
    first = token_of(found)
    assert first == token_of(found)
    later(monkeypatch, 490)
    assert token_of(found) != first


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("sys.exit('Unable to locate credentials')", "Unable to locate credentials"),
        ("print('hello')", "not valid JSON"),
        ("print('{}')", "neither a token nor a certificate"),
    ],
)
def test_a_program_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, word: str) -> None:
    user = exec_user(program(tmp_path, body), args=["get-token", "--cluster", "x"])
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "a", user)))
    with pytest.raises(DeniedError, match=word) as caught:
        load_access(CONFIG).headers()
    assert caught.value.code == "login_failed"
    assert "login.py get-token in a terminal" in str(caught.value.hint)


def test_a_program_that_is_not_there_or_asks_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = exec_user(Path("no-such-login"))
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "a", user)))
    with pytest.raises(DeniedError, match="not on PATH"):
        load_access(CONFIG).headers()
    user = exec_user(Path("login"), interactiveMode="Always")
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "b", user)))
    with pytest.raises(UnsupportedError, match="terminal"):
        load_access(CONFIG)


def test_an_auth_provider_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": "x"}}}
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "a", user)))
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(UnsupportedError) as caught:
        load_access(CONFIG).headers()
    assert caught.value.hint == "pip install kubernetes"


def test_without_its_packages_the_engine_says_what_to_install() -> None:
    code = """
import sys
sys.modules["httpx"] = None
from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import UnsupportedError
from hyperpod_jlab.engines.registry import make_orchestrator
try:
    make_orchestrator("k8s", KubernetesCluster(orchestrator="kubernetes"), None)
except UnsupportedError as error:
    print(error.code, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("kubernetes_missing"), done.stderr
    assert "hyperpod-jlab[kubernetes]" in done.stdout


# ---------------------------------------------------------------------------------------------- proxies


@pytest.mark.parametrize(
    ("no_proxy", "host", "through"),
    [
        ("", "https://k.example:6443", True),
        ("example", "https://k.example:6443", False),
        (".example", "https://k.example:6443", False),
        ("*.example", "https://k.example:6443", False),
        ("le", "https://k.example:6443", True),
        ("k.example:443", "https://k.example:6443", True),
        ("k.example:6443", "https://k.example:6443", False),
        ("a, 10.0.0.0/8", "https://10.1.2.3", False),
        ("10.0.0.0/8", "https://11.1.2.3", True),
        ("*", "https://k.example", False),
        ("", "https://127.0.0.1:6443", False),
        ("", "https://localhost:6443", False),
        ("fd00::/8", "https://[fd00::1]:6443", False),
    ],
)
def test_the_environments_proxy(monkeypatch: pytest.MonkeyPatch, no_proxy: str, host: str, through: bool) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert find_proxy(host) == ("http://proxy.example:3128" if through else None)
    assert find_proxy(host, "http://named:1") == "http://named:1"


# ---------------------------------------------------------------------------------------------- a real API server


async def version(config: KubernetesCluster = CONFIG) -> str:
    client = KubeClient(load_access(config))
    try:
        return str((await client.get("/api/v1/namespaces/default"))["metadata"]["name"])
    finally:
        await client.close()


@pytest.mark.parametrize("certificate", [False, True])
async def test_a_user_by_token_and_by_certificate(
    kubernetes_cluster: KubernetesTestbed, namespace: str, monkeypatch: pytest.MonkeyPatch, certificate: bool
) -> None:
    path = kubernetes_cluster.user(f"who-{certificate:d}", namespace, certificate=certificate)
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(DeniedError) as caught:
        await version()
    assert caught.value.code == "missing_right"
    client = KubeClient(load_access(CONFIG))
    assert (await client.list(f"/api/v1/namespaces/{namespace}/pods")).items == []
    await client.close()


async def test_certificates_that_do_not_fit(
    kubernetes_cluster: KubernetesTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = yaml.safe_load(kubernetes_cluster.kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    path = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(path))

    async def fails(**changes: Any) -> HyperpodError:
        kept = {**cluster, **changes}
        config["clusters"][0]["cluster"] = {k: v for k, v in kept.items() if v is not None}
        path.write_text(yaml.safe_dump(config))
        with pytest.raises(HyperpodError) as caught:
            await version()
        return caught.value

    ours = {"certificate-authority-data": None, "insecure-skip-tls-verify": None}
    wrong = base64.b64encode(AUTHORITY).decode()
    assert (await fails(**ours, **{"tls-server-name": "elsewhere"})).code == "certificate"
    assert (await fails(**{**ours, "certificate-authority-data": wrong})).code == "certificate"
    assert (await fails(**{**ours, "certificate-authority-data": "x"})).code == "invalid_kubeconfig"
    assert (await fails(server=cluster["server"].replace("https", "http"))).code is not None
    assert (await fails(server="https://no-such-host.invalid")).code == "dns"
    assert (await fails(server="https://127.0.0.1:9")).code == "unreachable"
    insecure = {"certificate-authority-data": None, "insecure-skip-tls-verify": True}
    config["clusters"][0]["cluster"] = {"server": cluster["server"], **insecure}
    path.write_text(yaml.safe_dump(config))
    assert await version() == "default"


async def test_in_a_pod(
    kubernetes_cluster: KubernetesTestbed, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = yaml.safe_load(kubernetes_cluster.user("inside", namespace).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    (tmp_path / "token").write_text(user["token"])
    authority = base64.b64decode(cluster.get("certificate-authority-data", ""))
    (tmp_path / "ca.crt").write_bytes(authority)
    server = urlsplit(cluster["server"])
    monkeypatch.setattr(access, "SERVICE_ACCOUNT_DIR", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(server.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    found = load_access(CONFIG)
    assert isinstance(found.verify, ssl.SSLContext)
    client = KubeClient(found)
    assert (await client.list(f"/api/v1/namespaces/{namespace}/pods")).items == []
    await client.close()
