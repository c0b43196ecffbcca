#!/usr/bin/env bash
# An old boto3 in a folder of its own, which is printed: `PYTHONPATH=$(scripts/ensure-boto3.sh) hpj ...` asks AWS with it.
# 1.37.3 is what the image 3.9 of SageMaker Distribution has.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly VERSION=${1:-1.37.3}
readonly FOLDER=$PWD/.ci-work/boto3-$VERSION

if [[ ! -e $FOLDER/boto3/__init__.py ]]; then
  mkdir -p .ci-work
  made=$(mktemp -d "$FOLDER.XXXXXX")
  trap 'rm -rf "$made"' EXIT
  if [[ -x .venv/bin/uv ]]; then
    .venv/bin/uv pip install --quiet --python .venv/bin/python --target "$made" "boto3==$VERSION" >&2
  else
    .venv/bin/python -m pip install --quiet --target "$made" "boto3==$VERSION" >&2
  fi
  # Whole or not at all; where somebody else was quicker, theirs is as good.
  mv -T "$made" "$FOLDER" 2>/dev/null || [[ -e $FOLDER/boto3/__init__.py ]]
fi
printf '%s\n' "$FOLDER"
