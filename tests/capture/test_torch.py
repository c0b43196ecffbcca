"""With real torch: data loaders of every kind, compiled modules, and ranks that meet."""

from __future__ import annotations

import re
import socket
import textwrap

import pytest

from tests.capture.bundles import Laboratory

pytestmark = pytest.mark.torch


def cell(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


@pytest.fixture
def port() -> str:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return str(server.getsockname()[1])


def test_data_loaders_find_the_notebooks_classes(lab: Laboratory):
    done = lab.run(
        cell("""
            import torch
            from torch.utils.data import DataLoader, Dataset
            print("once", flush=True)
            class Scale(torch.nn.Module):
                def forward(self, x): return x * WEIGHTS
        """),
        cell("""
            WEIGHTS = torch.arange(3) + 1
            T = torch.nn.Sequential(Scale())
            class Rows(Dataset):
                def __len__(self): return 4
                def __getitem__(self, i): return T(torch.full((3,), i))
            def collate(rows): return torch.stack(rows).sum(0)
        """),
        cell("""
            for method in ("fork", "spawn", "forkserver"):
                loader = DataLoader(Rows(), batch_size=2, num_workers=1, collate_fn=collate, multiprocessing_context=method)
                print(method, [batch.tolist() for batch in loader])
        """),
    )
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "once",
        *(f"{method} [[1, 2, 3], [5, 10, 15]]" for method in ("fork", "spawn", "forkserver")),
    ]


def test_compiled_functions_and_modules(lab: Laboratory):
    done = lab.run(
        cell("""
            import torch
            class Net(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.linear = torch.nn.Linear(2, 2)
                def forward(self, x):
                    return torch.relu(self.linear(x)) + helper(x)
            def helper(x):
                return x * 2 if x.sum() > 0 else x
        """),
        cell("""
            net = Net()
            x = torch.ones(2)
            compiled = torch.compile(net, backend="eager")
            print(torch.allclose(compiled(x), net(x)))
            print(torch.jit.script(Net()).code.count("relu"))
        """),
    )
    assert done.code == 0, done.err
    assert done.out == "True\n1\n"


def test_ranks_meet_and_end_cleanly(lab: Laboratory, port: str):
    bundle = lab.cells(
        "import torch, torch.distributed as dist\ndist.init_process_group('gloo')",
        "x = torch.tensor([dist.get_rank() + 1.0])\ndist.all_reduce(x)\nprint(x.item())\nx",
        "dist.destroy_process_group()",
    )
    done = bundle.run_ranks(2, MASTER_PORT=port)
    assert [one.code for one in done] == [0, 0], done
    assert done[0].out == "3.0\ntensor([3.])\n"
    assert re.fullmatch(r"3\.0\n", done[1].out)
