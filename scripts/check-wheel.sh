#!/usr/bin/env bash
# Build the wheel and try what ships: its content, then its life in a clean environment that has JupyterLab and no Node.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/progress.sh
source scripts/progress.sh

readonly WORK=$PWD/.ci-work
readonly VENV=$WORK/venv
# pydantic and click alone are 7.7 of them; regex, tomlkit and pathspec are 3.26.
# The front end has 0.9, of which it may have 250 kB gzip (check_wheel_content.py).
# What reads and shows training metrics, and ports on Slurm, are 0.2; executed notebooks, MLflow, environments and notebook jobs 0.2; cost and
# usage 0.1.
readonly MAX_ADDED_MB=16.4

build_wheel() {
  rm -rf "$WORK/dist"
  .venv/bin/python -m build --wheel --no-isolation --outdir "$WORK/dist" . >"$WORK/build.log" 2>&1 || {
    cat "$WORK/build.log" >&2
    exit 1
  }
}

# install WHAT...: into the clean environment, with uv where .venv has it.
install() {
  local options=(--quiet --constraint requirements/constraints.txt)
  if [[ -x .venv/bin/uv ]] && .venv/bin/uv pip install --python "$VENV/bin/python" "${options[@]}" "$@"; then
    return
  fi
  "$VENV/bin/python" -m pip install "${options[@]}" "$@"
}

make_clean_environment() {
  .venv/bin/python -m venv --clear "$VENV"
  install jupyterlab
}

# In KiB, without bytecode (which depends on what has been imported so far).
installed_size() {
  find "$VENV" -type f -not -name '*.pyc' -printf '%s\n' | awk '{ sum += $1 } END { print int(sum / 1024) }'
}

install_wheel() {
  local before after
  before=$(installed_size)
  install "$WORK"/dist/*.whl
  after=$(installed_size)
  awk -v kb=$((after - before)) -v max=$MAX_ADDED_MB \
    'BEGIN { printf "    adds %.1f MB to an environment with JupyterLab, bytecode not counted (limit %g)\n", kb / 1024, max; exit kb / 1024 > max }'
}

# Only the environment's own programs, as on a server that has no Node.
clean() {
  env -i HOME="$WORK/home" PATH="$VENV/bin:/usr/bin:/bin" JUPYTER_PREFER_ENV_PATH=1 PYTHONPATH= "$@"
}

# expect PATTERN COMMAND...: both streams of the command must hold the pattern.
expect() {
  local pattern=$1 output
  shift
  # Jupyter colours its lists even when nobody looks.
  output=$(clean "$@" 2>&1 | sed 's/\x1b\[[0-9;]*m//g') || { echo "$output" >&2; exit 1; }
  if ! grep -E -q "$pattern" <<<"$output"; then
    printf '%s\nexpected to read: %s\n' "$output" "$pattern" >&2
    exit 1
  fi
}

try_installed() {
  mkdir -p "$WORK/home" "$WORK/away"
  # Away from the source tree, which Python would find first.
  cd "$WORK/away"
  expect 'hyperpod_jlab v[0-9.]+.*enabled.*OK' jupyter labextension list
  expect 'hyperpod_jlab.* OK' jupyter server extension list
  expect '^Every endpoint asks' python ../../scripts/check_auth.py
  expect '[Uu]sage' hpj --help
}

mkdir -p "$WORK"
step "Wheel" build_wheel
step "Its content" .venv/bin/python scripts/check_wheel_content.py "$WORK"/dist/*.whl
step "Clean environment with JupyterLab" make_clean_environment
step "The wheel installed there" install_wheel
step "Both extensions listed, endpoints guarded, hpj runs" try_installed
