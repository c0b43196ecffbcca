#!/usr/bin/env bash
# The same wheel on every supported JupyterLab, with the Notebook 7 of its time: a browser looks whether it starts, is quiet and can submit.
# For each version an environment of its own (.ci-work/lab-VERSION). Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/progress.sh
source scripts/progress.sh

# JupyterLab and the Notebook 7 made from it.
readonly VERSIONS=(4.4:7.4 4.5:7.5 4.6:7.6)
readonly WORK=$PWD/.ci-work

build_wheel() {
  rm -rf "$WORK/versions"
  .venv/bin/python -m build --wheel --no-isolation --outdir "$WORK/versions" . >"$WORK/build.log" 2>&1 || {
    cat "$WORK/build.log" >&2
    exit 1
  }
}

# make_environment FOLDER LAB NOTEBOOK
make_environment() {
  .venv/bin/python -m venv --clear "$1"
  .venv/bin/uv pip install --quiet --python "$1/bin/python" "jupyterlab==$2.*" "notebook==$3.*" "$WORK"/versions/*.whl
  "$1/bin/jupyter" lab --version
}

mkdir -p "$WORK"
step "Wheel" build_wheel
for pair in "${VERSIONS[@]}"; do
  lab=${pair%:*} notebook=${pair#*:}
  step "JupyterLab $lab, Notebook $notebook" make_environment "$WORK/lab-$lab" "$lab" "$notebook"
  LAB_PYTHON=$WORK/lab-$lab/bin/python step "Browser tests on it" scripts/ui-test.sh -q test_activation.py "$@"
done
