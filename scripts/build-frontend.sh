#!/usr/bin/env bash
# Build the front end for production into hyperpod_jlab/labextension, unless it is there, built from what lies here.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/progress.sh
source scripts/progress.sh
export PATH=$PWD/.venv/bin:$PATH

readonly STAMP=node_modules/.stamp-build
readonly OUTPUT=hyperpod_jlab/labextension

# The output counts too: a development build (jlpm watch) may have replaced ours since.
current_hash() {
  content_hash src style schema package.json yarn.lock tsconfig.json "$OUTPUT"
}

build() {
  local log
  log=$(mktemp)
  if ! jlpm build:prod >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
  rm -f "$log"
}

if [[ ! -f $OUTPUT/static/style.js ]] || ! stamped "$STAMP" "$(current_hash)"; then
  step "Front end, production build" build
  current_hash >"$STAMP"
fi
