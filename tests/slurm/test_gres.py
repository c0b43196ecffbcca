"""Generic resources as Slurm writes them."""

import pytest

from hyperpod_jlab.engines.slurm.rows import Gres, parse_gres, parse_tres, resources

NODES = {
    "": [],
    "(null)": [],
    "N/A": [],
    "gpu": [Gres("gpu", None, 1)],
    "gpu:8": [Gres("gpu", None, 8)],
    "gpu:h100:4": [Gres("gpu", "h100", 4)],
    "gpu:h100": [Gres("gpu", "h100", 1)],
    "gpu:h100:8(S:0-1)": [Gres("gpu", "h100", 8)],
    "gpu:h100:8,gpu:1g.10gb:7,shard:16,fpga:2": [
        Gres("gpu", "h100", 8),
        Gres("gpu", "1g.10gb", 7),
        Gres("shard", None, 16),
        Gres("fpga", None, 2),
    ],
    "gpu:nvidia_a100_3g.39gb:2(S:0)": [Gres("gpu", "nvidia_a100_3g.39gb", 2)],
    "neuron:16": [Gres("neuron", None, 16)],
    "bandwidth:lustre:no_consume:4G": [Gres("bandwidth", "lustre", 4 * 2**30)],
    "tmpdisk:100k": [Gres("tmpdisk", None, 100 * 2**10)],
    "a:b:c:d:1,gpu:2": [Gres("gpu", None, 2)],
}

USED = {
    "gpu:0": [Gres("gpu", None, 0)],
    "gpu:h100:0(IDX:N/A)": [Gres("gpu", "h100", 0)],
    "gpu:h100:2(IDX:0-1)": [Gres("gpu", "h100", 2, used_at=(0, 1))],
    "gpu:h100:4(IDX:0-1,5,7)": [Gres("gpu", "h100", 4, used_at=(0, 1, 5, 7))],
    "gpu:(null):3(IDX:0-2)": [Gres("gpu", None, 3, used_at=(0, 1, 2))],
    "gpu:1g.10gb:2(IDX:8-9),fpga:1": [Gres("gpu", "1g.10gb", 2, used_at=(8, 9)), Gres("fpga", None, 1)],
    "shard:h100:2(1/2,1/2,0/2)": [Gres("shard", "h100", 2, shares=((1, 2), (1, 2), (0, 2)))],
    "gpu:1(IDX:0-999999999)": [Gres("gpu", None, 1)],
}

JOBS = {
    "N/A": [],
    "cpu=4,mem=16G,node=2,billing=4": [],
    "gres:gpu:3": [Gres("gpu", None, 3)],
    "gres:gpu:h100:2,gres:fpga:1": [Gres("gpu", "h100", 2), Gres("fpga", None, 1)],
    "gres/gpu:h100:2": [Gres("gpu", "h100", 2)],
    "gres/gpu=1": [Gres("gpu", None, 1)],
    "gres/shard:1g.10gb:2": [Gres("shard", "1g.10gb", 2)],
    "cpu=2,mem=8000M,gres/gpu=2,gres/gpu:h100=2": [Gres("gpu", "h100", 2)],
    "gres/gpu=3,gres/gpu:h100=2": [Gres("gpu", None, 1), Gres("gpu", "h100", 2)],
    "cpu:2,gres/gpu:1": [Gres("gpu", None, 1)],
}


@pytest.mark.parametrize("text", NODES)
def test_what_a_node_has(text: str) -> None:
    assert list(parse_gres(text)) == NODES[text]


@pytest.mark.parametrize("text", USED)
def test_what_of_it_is_in_use(text: str) -> None:
    assert list(parse_gres(text)) == USED[text]


@pytest.mark.parametrize("text", JOBS)
def test_what_a_job_has(text: str) -> None:
    assert list(parse_tres(text)) == JOBS[text]


def test_a_gpu_that_is_used_in_part_is_not_free() -> None:
    has = parse_gres("gpu:h100:4,shard:h100:8")
    used = parse_gres("gpu:h100:1(IDX:3),shard:h100:3(2/2,1/2,0/2,0/2)")
    gpus, shards = resources(has, used)
    assert gpus.free == 1
    assert gpus.used_at == (3,)
    assert gpus.shared_at == (0, 1)
    assert shards.used == 3


def test_the_same_as_2205_says_it() -> None:
    has = parse_gres("gpu:h100:4,shard:h100:8")
    gpus, _ = resources(has, parse_gres("gpu:h100:1(IDX:3),shard:h100:2(IDX:0-1)"))
    assert gpus.free == 1
    assert gpus.shared_at == (0, 1)


def test_parts_of_the_second_type_are_those_of_its_gpus() -> None:
    has = parse_gres("gpu:h100:2,gpu:1g.10gb:2,shard:h100:2,shard:1g.10gb:2")
    used = parse_gres("shard:h100:0(0/1,0/1),shard:1g.10gb:1(0/1,1/1)")
    whole, parts = resources(has, used)[:2]
    assert whole.shared_at == ()
    assert parts.first == 2
    assert parts.shared_at == (3,)


def test_nothing_is_free_on_a_node_that_takes_no_jobs() -> None:
    (gpus,) = resources(parse_gres("gpu:8"), parse_gres("gpu:2(IDX:0-1)"), is_usable=False)
    assert gpus.used == 2
    assert gpus.free == 0


def test_those_that_compute_come_first() -> None:
    listed = resources(parse_gres("fpga:1,tmpdisk:5,neuron:16"), ())
    assert [one.name for one in listed] == ["neuron", "fpga", "tmpdisk"]
    assert [one.accelerator for one in listed] == [True, False, False]
