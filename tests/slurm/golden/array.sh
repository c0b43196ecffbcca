#!/bin/bash
#SBATCH --job-name="train 1"
#SBATCH --comment=hyperpod:20261121-abcd
#SBATCH --chdir=/fsx/alice/.hyperpod/runs/07/20261121-abcd
#SBATCH --output=/fsx/alice/.hyperpod/runs/07/20261121-abcd/logs/slurm-%A_%a.out
#SBATCH --open-mode=append
#SBATCH --export=NONE
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --time=0-01:00:00
#SBATCH --signal=B:USR2@120
#SBATCH --array=0-99%4
#SBATCH --requeue

# Run 20261121-abcd, rendered by hyperpod_jlab: a launcher on each node starts the ranks and writes their logs and records.
set -u
step=
ending=
incarnation=
forward() { if [ -n "$step" ]; then kill -s "$1" "$step" 2>/dev/null; fi; }
# While srun starts, a warning signal would end the step, and no rank could handle it yet.
warn() { if grep -qsF "\"$incarnation\"" tasks/"$SLURM_ARRAY_TASK_ID"/status/attempt-*/claim.json; then forward "$1"; fi; }
trap 'ending=yes; forward TERM' TERM
trap 'warn USR1' USR1
trap 'warn USR2' USR2
# sbatch passes the token of the submitter to the job, which must not have it; srun cannot use it.
unset SLURM_JWT
python=/fsx/alice/venv/bin/python
export PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}:/opt/slurm/bin"
job="${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
first="$(hostname)"

options=(--export=ALL --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=1)
if [ -e /opt/sagemaker_cluster ]; then options+=(--auto-resume=1); fi

# Starts the launcher, unless another user could have changed the bundle.
guard='(the guard)
'
guarded=(-I -X utf8 -c "$guard" /fsx/alice .hyperpod/runs/07/20261121-abcd 200001 5ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea1 private)

# Warnings are ignored until the launcher can handle them, also while Python starts.
start='
trap "" USR1 USR2
node="${SLURMD_NODENAME:-$(hostname)}"
if ! command -v "$1" >/dev/null; then
  echo "hyperpod: the node $node has no $1: set --python to an interpreter on the nodes" >&2
  exit 86
fi
exec "$@" --node-rank="$SLURM_NODEID" --node-name="$node"'

round=0
code=143
while [ -z "$ending" ]; do
  round=$((round + 1))
  incarnation="${SLURM_RESTART_COUNT:-0}.$round"
  srun "${options[@]}" --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" /bin/sh -c "$start" sh \
    "$python" "${guarded[@]}" node --nodes=1 --master-addr="$first" --master-port=0 \
    --scheduler-id="$job" --incarnation="$incarnation" --task="$SLURM_ARRAY_TASK_ID" --quiet &
  step=$!
  if [ -n "$ending" ]; then forward TERM; fi
  while kill -0 "$step" 2>/dev/null; do wait "$step"; done
  wait "$step"
  code=$?
  step=
  if [ "$code" -eq 0 ] || [ -n "$ending" ]; then break; fi
  command -v "$python" >/dev/null || break
  "$python" "${guarded[@]}" again --scheduler-id="$job" --max-restarts=2 --task="$SLURM_ARRAY_TASK_ID"
  again=$?
  if [ "$again" -eq 84 ]; then code=$again; fi
  if [ "$again" -ne 0 ]; then break; fi
done
exit "$code"
