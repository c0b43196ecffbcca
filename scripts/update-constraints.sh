#!/usr/bin/env bash
# Resolve the extras afresh and write requirements/constraints.txt. Run by hand, then `make test`, then commit.
set -euo pipefail
cd "$(dirname "$0")/.."

.venv/bin/uv pip compile --quiet --universal --upgrade --python-version 3.11 --no-header --no-annotate \
  --extra test --extra dev pyproject.toml --output-file requirements/constraints.txt
echo "requirements/constraints.txt: $(wc -l <requirements/constraints.txt) packages"
