#!/usr/bin/env bash
# See that .venv has MLflow, whose real server the tests and the demo start: what can be found is used as it is, else it is installed (0.7 GB).
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/progress.sh
source scripts/progress.sh

readonly PYTHON=.venv/bin/python
readonly LISTS=(--constraint requirements/constraints.txt --requirement requirements/mlflow.txt)

install_mlflow() {
  if [[ -x .venv/bin/uv ]]; then
    .venv/bin/uv pip install --quiet --python "$PYTHON" "${LISTS[@]}" && return
  fi
  "$PYTHON" -m pip install --quiet "${LISTS[@]}"
}

if ! "$PYTHON" -c 'import sys; from importlib.util import find_spec; sys.exit(not find_spec("mlflow"))'; then
  step "MLflow" install_mlflow
fi
