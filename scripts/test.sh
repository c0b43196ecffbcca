#!/usr/bin/env bash
# Everything that CI runs, in order; pytest comes last, so that its closing line is what one reads.
# `scripts/test.sh full` runs the long tests too. Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/progress.sh
source scripts/progress.sh
unset PYTHONDONTWRITEBYTECODE
export PATH=$PWD/.venv/bin:$PATH

select=(-m "not full")
full=false
if [[ ${1-} == full ]]; then
  shift
  select=()
  full=true
fi

scripts/install.sh
scripts/lint.sh
step "Front-end tests (jest)" jlpm test
scripts/check-wheel.sh
scripts/ensure-torch.sh
step "Browser tests" scripts/ui-test.sh -q
if [[ $full == true ]]; then
  step "Every supported JupyterLab" scripts/check-versions.sh
fi
echo "==> pytest"
exec .venv/bin/python -m pytest "${select[@]}" "$@"
