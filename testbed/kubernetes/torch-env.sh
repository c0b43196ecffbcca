#!/usr/bin/env bash
# torch-env.sh: PyTorch, NumPy, transformers and PEFT (requirements/torch.txt) for pods of the python image, in the user's cache folder; prints the
# environment's path. A pod mounts it by hostPath, read-only, at the same path, and runs its bin/python or bin/torchrun.
# It is made with Debian's python, which is also that of the image; some 5 GB with CUDA, where uv cannot link them.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
readonly PROJECT=${HERE%/testbed/*} PYTHON=/usr/bin/python3
readonly REQUIREMENTS=$PROJECT/requirements/torch.txt

[[ -x $PYTHON ]] || { echo "torch-env.sh: Debian's $PYTHON is missing" >&2; exit 1; }
sum=$({ "$PYTHON" -V && cat "$REQUIREMENTS"; } | sha256sum | cut -c1-12)
environment=${XDG_CACHE_HOME:-$HOME/.cache}/hyperpod-jlab/torch-env-$sum
mkdir -p "${environment%/*}"
exec 9>"$environment.lock"
flock 9
if [[ ! -e $environment/.complete ]]; then
  echo "torch-env.sh: installing PyTorch into $environment" >&2
  rm -rf --one-file-system "$environment"
  uv=$(PATH=$PROJECT/.venv/bin:$PATH command -v uv || true)
  if [[ -n $uv ]]; then
    "$uv" --quiet venv --python "$PYTHON" "$environment"
    "$uv" --quiet pip install --python "$environment/bin/python" --requirement "$REQUIREMENTS"
  else
    "$PYTHON" -m venv "$environment"
    "$environment/bin/pip" install --quiet --requirement "$REQUIREMENTS"
  fi >&2
  touch "$environment/.complete"
fi
echo "$environment"
