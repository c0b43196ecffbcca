#!/usr/bin/env bash
# See that .venv has torch, numpy, transformers and peft: what is importable is used as it is, else they are installed (5 GB with CUDA).
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/progress.sh
source scripts/progress.sh

readonly PYTHON=.venv/bin/python

install_torch() {
  if [[ -x .venv/bin/uv ]]; then
    .venv/bin/uv pip install --python "$PYTHON" --requirement requirements/torch.txt && return
  fi
  "$PYTHON" -m pip install --requirement requirements/torch.txt
}

# Looking for the packages costs nothing; importing torch takes seconds, so that is done once, after an install.
if ! "$PYTHON" -c 'import sys; from importlib.util import find_spec; sys.exit(not all(map(find_spec, ("torch", "numpy", "transformers", "peft"))))'; then
  step "PyTorch, NumPy, transformers and PEFT (some minutes on a slow line)" install_torch
  "$PYTHON" -c 'import torch, numpy; print("    torch", torch.__version__, "numpy", numpy.__version__)'
fi
