#!/usr/bin/env bash
# The tests in a real browser. Chromium is installed where it is missing (apt). Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/progress.sh
source scripts/progress.sh

if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null; then
  step "Chromium" scripts/apt-install.sh chromium
fi
cd ui-tests
exec ../.venv/bin/python -m pytest "$@"
