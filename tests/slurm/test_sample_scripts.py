"""Scripts of the forms that AWS's samples have, in words of our own: what sbatch takes passes a dry run, and what the queue cannot have is told before."""

from __future__ import annotations

import pytest

from hyperpod_jlab.core.errors import RefusedError
from tests.slurm.hyperpod_fixtures import SlurmSession
from tests.slurm.native_fixtures import preview, send, told

pytestmark = pytest.mark.parametrize("transport", ["here"], indirect=True)

HEAD = "#!/bin/bash\n"

SAMPLES = {
    "comments behind options, options with and without =": """\
# Somebody's rights; a licence.

set -e

#SBATCH --nodes=3
""",
    "words in odd columns": """\
#SBATCH   --nodes=2                    # this many
#SBATCH --ntasks-per-node=8          # one for each GPU <required>
#SBATCH\t--gpus-per-node=8
#SBATCH --output slurm-mine-%j.out
#SBATCH --exclusive                   # nobody beside it
""",
    "waits for all nodes": """\
#SBATCH -N 2 # this many
#SBATCH --job-name=words_2 # of the job
#SBATCH --ntasks-per-node 8 # as many as GPUs
#SBATCH --gres=gpu:8 # reserved
#SBATCH --exclusive
#SBATCH --wait-all-nodes=1
### Take out of the comment what the cluster needs
##SBATCH --mem-per-gpu=40G
#SBATCH --ntasks-per-core=1
export FI_PROVIDER=efa
set -ex;
srun --mpi=pmix --cpu-bind=none hostname
""",
    "auto-resume": """\
#SBATCH --nodes=2 # this many
#SBATCH --exclusive # nobody beside it
#SBATCH --output=logs/%x_%j.out # where it writes
#SBATCH --error=logs/%x_%j.err # without it both go there
export GPUS_PER_NODE=8
if [ -d "/opt/sagemaker_cluster" ]; then
  AUTO_RESUME="--auto-resume=1"
fi
declare -a ARGS=(--rdzv_id=$SLURM_JOB_ID --nnodes=$SLURM_JOB_NUM_NODES)
srun ${AUTO_RESUME} -l torchrun "${ARGS[@]}" train.py \\
    --steps=100 \\
    --hosts="$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)"
""",
    "a container": """\
#SBATCH --nodes 2
#SBATCH --output=logs/%x_%j.out # of both kinds
: "${CONTAINER:=/fsx/mine.sqsh}"
declare -a CONTAINER_ARGS=(--container-image $CONTAINER --container-mounts /fsx:/fsx)
srun -l "${CONTAINER_ARGS[@]}" python -c 'print("hello")'
""",
    "a program in it": """\
#SBATCH --dependency=singleton
#SBATCH --gpus-per-node=8
#SBATCH --mem=0
#SBATCH --nodes=2
#SBATCH --time=1:00:00
cat > run.py <<'PYTHON'
#SBATCH --nodes=900
print("a heredoc")
PYTHON
python3 run.py
""",
    "tasks only": """\

#SBATCH -o mine_%j.out
#SBATCH -e mine_%j.err
#SBATCH -n 32
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
srun hostname
""",
    "an array": """\
#SBATCH --array=0-15:4%2
#SBATCH --job-name=part
echo $SLURM_ARRAY_TASK_ID
""",
    "all at once": """\
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --ntasks-per-node 1
#SBATCH --gpus-per-node=8
#SBATCH --gpus-per-task=8
#SBATCH --gres=gpu:8
""",
    "a range of nodes": "#SBATCH --nodes=2-16\n",
    "another shell": "#SBATCH --time=00:30:00\n#SBATCH --ntasks-per-node=1\n",
    "queues to choose from": "#SBATCH -p dev,batch\n#SBATCH -N 1\n",
}


@pytest.mark.parametrize("form", SAMPLES)
async def test_a_sample_passes_a_dry_run(session: SlurmSession, form: str) -> None:
    head = "#!/usr/bin/env bash\n" if form == "another shell" else HEAD
    found = await preview(session, head + SAMPLES[form])
    assert [one for one in found.findings if one.level == "error"] == []
    assert found.unreachable is None


@pytest.mark.parametrize(
    ("lines", "code", "words"),
    [
        ("#SBATCH --nodes=5\n", "too_many_nodes", "queue dev has 4 nodes, 5 requested"),
        ("#SBATCH -N5-8\n", "too_many_nodes", "5 requested"),
        ("#SBATCH --nodes 3 -p batch\n", "too_many_nodes", "queue batch has 2 nodes"),
        ("#SBATCH -p nowhere\n", "unknown_queue", "queue 'nowhere' not found"),
        ("#SBATCH --nodes=2\n#SBATCH --nodez=3\n", None, "nodez"),
        ("#SBATCH --gres=gpu:9\n", None, ""),
    ],
)
async def test_what_the_queue_cannot_have_is_told_before(
    session: SlurmSession, lines: str, code: str | None, words: str
) -> None:
    found = (await preview(session, HEAD + lines)).findings
    wrong = [one for one in found if one.level in {"error", "warning"}]
    assert wrong, found
    assert any(words in one.message for one in wrong), wrong
    assert code is None or code in {one.code for one in wrong}, wrong
    if code is not None:
        with pytest.raises(RefusedError):
            await send(session, HEAD + lines)


async def test_the_queues_own_limit_counts(session: SlurmSession) -> None:
    session.cluster.exec("ctl", "scontrol", "update", "PartitionName=dev", "MaxNodes=2")
    try:
        found = (await preview(session, HEAD + "#SBATCH -N 3\n")).findings
    finally:
        session.cluster.exec("ctl", "scontrol", "update", "PartitionName=dev", "MaxNodes=UNLIMITED")
    (wrong,) = [one for one in found if one.level == "error"]
    assert "queue dev allows 2 nodes per job" in wrong.message
    assert wrong.field == "resources.nodes"


async def test_our_own_number_of_nodes_outranks_the_scripts(session: SlurmSession) -> None:
    found = await preview(session, HEAD + "#SBATCH -N 9\n", resources={"nodes": 2})
    assert [one for one in found.findings if one.level == "error"] == []
    run_id = await send(session, HEAD + "#SBATCH -N 9\nsrun hostname\n", resources={"nodes": 2})
    run = await session.ended(run_id)
    assert told(session, session.job_of(run), "NumNodes") == "2"
