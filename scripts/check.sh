#!/usr/bin/env bash
# What a contributor runs before each commit, in less than two minutes: linters, types, front-end units of what has changed, unit
# tests. It needs Python and nothing else: no root, no cluster, no browser. Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/progress.sh
source scripts/progress.sh
unset PYTHONDONTWRITEBYTECODE
export PATH=$PWD/.venv/bin:$PATH

scripts/install.sh
scripts/lint.sh
step "Front-end tests of what has changed (jest)" jlpm test --onlyChanged --maxWorkers=100%
echo "==> Unit tests"
exec .venv/bin/python -m pytest -n auto --dist loadgroup --no-loadscope-reorder -q -m "unit and not full and not testbed" "$@"
