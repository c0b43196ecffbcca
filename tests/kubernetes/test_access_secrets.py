"""What a kubeconfig holds is in no error: what its program is given, passwords in addresses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import DeniedError, InvalidInputError, UnreachableError
from hyperpod_jlab.engines.kubernetes.api.access import load_access
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.forward import connect_pod
from tests.kubernetes.access_fixtures import CONFIG, clean

from .test_access import exec_user, program, version, write

__all__ = ["clean"]

SECRET = "SECRETX-9999"


@pytest.mark.parametrize(
    ("args", "env", "said"),
    [
        (["get-token", f"--oidc-client-secret={SECRET}"], {}, "sys.argv"),
        (["get-token", "--token", SECRET], {}, "sys.argv"),
        (["get-token"], {"OIDC_CLIENT_SECRET": SECRET}, "os.environ['OIDC_CLIENT_SECRET']"),
        ([f"--oidc-client-secret={SECRET}"], {}, "1"),
        ([SECRET], {}, "1"),
        (["-c", f"login {SECRET}"], {}, "1"),
    ],
)
def test_what_a_kubeconfig_gives_its_program_is_in_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], env: dict[str, str], said: str
) -> None:
    variables = [{"name": name, "value": value} for name, value in env.items()]
    path = program(tmp_path, f"sys.exit(str(({said},)) + ' is not known')")
    user = exec_user(path, args=args, env=variables)
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "a", user)))
    with pytest.raises(DeniedError, match="is not known") as caught:
        load_access(CONFIG).headers()
    assert SECRET not in json.dumps(caught.value.to_dict())
    assert "login.py" in str(caught.value.hint)


@pytest.mark.parametrize(
    "address",
    [
        f"socks9://user:{SECRET}@proxy:1",
        f"http://user:{SECRET}@",
        f"http://user:{SECRET}@proxy:port",
        f"http://user:{SECRET}@[::1",
        f"user:{SECRET}@proxy:1",
    ],
)
async def test_the_password_of_a_proxy_that_is_none_is_in_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    cluster = {"server": "http://127.0.0.1:1", "proxy-url": address}
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "a", {"token": "t"}, cluster=cluster)))
    with pytest.raises(InvalidInputError) as caught:
        await version()
    assert caught.value.code == "bad_proxy"
    assert SECRET not in str(caught.value.to_dict())


@pytest.mark.parametrize("server", ["http://user:{}@127.0.0.1:1", "http://user:{}@no-such.invalid"])
async def test_the_password_in_a_servers_address_is_in_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    cluster = {"server": server.format(SECRET)}
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "a", {"token": "t"}, cluster=cluster)))
    with pytest.raises(UnreachableError) as caught:
        await version()
    assert SECRET not in str(caught.value.to_dict())
    client = KubeClient(load_access(CONFIG))
    with pytest.raises(UnreachableError) as caught:
        await connect_pod(client, "n", "p", 80)
    assert SECRET not in str(caught.value.to_dict())
    await client.close()


async def test_the_password_of_a_proxy_that_only_ports_refuse_is_in_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = {"server": "http://127.0.0.1:1", "proxy-url": f"http://{SECRET}@proxy:1"}
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "a", {"token": "t"}, cluster=cluster)))
    client = KubeClient(load_access(CONFIG))
    with pytest.raises(UnreachableError) as caught:
        await connect_pod(client, "n", "p", 80)
    assert SECRET not in str(caught.value.to_dict())
    await client.close()
