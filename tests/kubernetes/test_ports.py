"""Which pod of a run a port or a shell is of, and what of a program's answers reaches the browser."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from hyperpod_jlab.core.errors import ConflictError, NotFoundError
from hyperpod_jlab.engines.kubernetes.kinds.choice import KIND_BY_NAME
from hyperpod_jlab.engines.kubernetes.ports import find_pod, list_by_rank, shell_command
from hyperpod_jlab.server.port_proxy import response_headers, set_cookie_values


def _pod(
    name: str, rank: int, created: str, *, running: bool = True, **more: Any
) -> dict[str, Any]:
    labels = {
        "training.kubeflow.org/replica-type": "master" if rank == 0 else "worker",
        "training.kubeflow.org/replica-index": str(max(0, rank - 1)),
    }
    metadata = {"name": name, "namespace": "team", "labels": labels, "creationTimestamp": created}
    state: dict[str, Any] = {"running": {}} if running else {"terminated": {"exitCode": 1}}
    return {
        "metadata": {**metadata, **more},
        "spec": {
            "nodeName": "n1",
            "initContainers": [{"name": "init-pytorch"}] if rank else [],
            "containers": [{"name": "sidecar"}, {"name": "pytorch"}],
        },
        "status": {
            "phase": "Running" if running else "Failed",
            "containerStatuses": [{"name": "pytorch", "state": state}],
        },
    }


def test_of_several_pods_of_a_rank_the_one_that_runs_counts() -> None:
    kind = KIND_BY_NAME["PyTorchJob"]
    pods = list_by_rank(
        [
            _pod("w-new", 1, "2026-01-02T00:00:00Z", running=False),
            _pod("w-old", 1, "2026-01-01T00:00:00Z"),
            _pod("m-old", 0, "2026-01-01T00:00:00Z", running=False),
            _pod("m-new", 0, "2026-01-02T00:00:00Z", running=False),
        ],
        kind,
    )
    assert [(pod.node_rank, pod.name, pod.running) for pod in pods] == [
        (0, "m-new", False),
        (1, "w-old", True),
    ]
    assert find_pod(pods, 1).container == "pytorch"
    with pytest.raises(ConflictError, match="m-new is not running; it is failed"):
        find_pod(pods, 0)
    with pytest.raises(NotFoundError, match="no pod for node 2"):
        find_pod(pods, 2)


def test_pods_that_are_ending_do_not_run_and_those_without_a_rank_are_counted() -> None:
    ending = _pod("a", 0, "2026-01-01T00:00:00Z", deletionTimestamp="2026-01-01T00:01:00Z")
    assert not list_by_rank([ending], KIND_BY_NAME["PyTorchJob"])[0].running
    plain = [_pod(name, 0, f"2026-01-0{day}T00:00:00Z") for day, name in enumerate("ba", 1)]
    assert [pod.name for pod in list_by_rank(plain, KIND_BY_NAME["Job"])] == ["b", "a"]


def test_a_shells_command_is_quoted() -> None:
    pod = list_by_rank([_pod("m", 0, "2026-01-01T00:00:00Z")], KIND_BY_NAME["PyTorchJob"])[0]
    words = shlex.split(shell_command(pod, "it's; $(mine)"))
    assert words[:5] == ["kubectl", "--context=it's; $(mine)", "--namespace=team", "exec", "-it"]
    assert words[5:9] == ["m", "--container=pytorch", "--", "sh"]


def test_a_program_sets_no_cookies_in_the_browser() -> None:
    headers = [(b"Set-Cookie", b"a=1; Path=/; Domain=x.example"), (b"set-cookie", b"_xsrf=stolen")]
    assert list(response_headers([*headers, (b"X-Own", b"1")], 80, "/base/ports/80/")) == [
        ("X-Own", "1")
    ]
    assert set_cookie_values(headers) == ["a=1; Path=/; Domain=x.example", "_xsrf=stolen"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("default-src 'self'", ["default-src 'self'; worker-src 'self' blob:"]),
        ("worker-src 'none'; img-src *", ["worker-src blob:; img-src *"]),
        ("frame-ancestors 'none'", []),
        ("img-src a, sandbox allow-same-origin", ["img-src a", "sandbox allow-same-origin"]),
    ],
)
def test_what_a_program_forbids_its_page_stays_but_for_frames_and_our_workers(
    sent: str, kept: list[str]
) -> None:
    made = response_headers([(b"Content-Security-Policy", sent.encode())], 80, "/p/")
    assert [value for _, value in made] == kept


def test_redirects_lead_back_only_to_the_program_itself() -> None:
    def leads(value: str) -> str:
        ((_, text),) = response_headers([(b"Location", value.encode())], 80, "/base/ports/80/")
        return text

    assert leads("/a?b#c") == "/base/ports/80/a?b#c"
    assert leads("http://localhost:80/a") == "/base/ports/80/a"
    assert leads("a/b") == "a/b"
    assert leads("https://example.com/a") == "https://example.com/a"
    assert leads("//example.com/a") == "//example.com/a"
