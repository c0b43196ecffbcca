#!/usr/bin/env bash
# Run every linter, each to its end, and say at the end which ones complain.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/.venv/bin:$PATH

failed=()

# check NAME COMMAND...: quiet when all is well.
check() {
  local name=$1 begin=$SECONDS output
  shift
  if output=$("$@" 2>&1); then
    printf '    ok    %-18s %3d s\n' "$name" $((SECONDS - begin))
  else
    printf '%s\n    FAIL  %-18s %3d s\n' "$output" "$name" $((SECONDS - begin))
    failed+=("$name")
  fi
}

shell_scripts() {
  echo .ci/run
  find . \( -name node_modules -o -name .venv -o -name .ci-work -o -name .bench -o -name .demo -o -name .git \) -prune -o -name '*.sh' -print | LC_ALL=C sort
}

echo "==> Linters"
check "ruff check" ruff check --quiet .
check "ruff format" ruff format --check --quiet .
check "mypy" mypy
check "import-linter" lint-imports
check "house rules" python scripts/check_house.py
# The launcher runs under the nodes' own Python: its syntax is ruff's business, its library calls vermin's.
if [[ -d hyperpod_jlab/launcher ]]; then
  check "launcher on 3.8" vermin --quiet --no-tips --eval-annotations --target=3.8- --exclude-regex "assemble\.py$" --violations hyperpod_jlab/launcher hyperpod_jlab/admin/folder_work.py
fi
mapfile -t scripts < <(shell_scripts)
check "shellcheck" shellcheck --external-sources "${scripts[@]}"
check "eslint" jlpm eslint:check
check "prettier" jlpm prettier:check
check "stylelint" jlpm stylelint:check
check "tsc (tests)" jlpm typecheck:tests

if ((${#failed[@]})); then
  printf 'lint failed: %s\n' "$(IFS=,; echo "${failed[*]}")" >&2
  exit 1
fi
