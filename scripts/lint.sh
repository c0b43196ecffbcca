#!/usr/bin/env bash
# Run every linter, each to its end, and say at the end which ones complain.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/.venv/bin:$PATH

failed=$(mktemp)
trap 'rm -f "$failed"' EXIT

# run NAME COMMAND...: quiet when all is well.
run() {
  local name=$1 begin=$SECONDS output
  shift
  if output=$("$@" 2>&1); then
    printf '    ok    %-18s %3d s\n' "$name" $((SECONDS - begin))
  else
    printf '%s\n    FAIL  %-18s %3d s\n' "$output" "$name" $((SECONDS - begin))
    echo "$name" >>"$failed"
  fi
}

# check NAME COMMAND...: the same in the background, as many as there are cores: most linters use one.
check() {
  while (($(jobs -rp | wc -l) >= $(nproc))); do
    wait -n
  done
  run "$@" &
}

shell_scripts() {
  echo .ci/run
  find . \( -name node_modules -o -name .venv -o -name .ci-work -o -name .bench -o -name .demo -o -name .git \) -prune -o -name '*.sh' -print | LC_ALL=C sort
}

echo "==> Linters"
mapfile -t scripts < <(shell_scripts)
run "API types" jlpm build:types
# The longest first.
check "mypy" mypy
check "eslint" jlpm eslint:check
check "tsc (tests)" jlpm typecheck:tests
# Which templates, regions and rules of ours: .cfnlintrc.
check "cfn-lint" cfn-lint --non-zero-exit-code informational
check "prettier" jlpm prettier:check
check "shellcheck" shellcheck --external-sources "${scripts[@]}"
check "stylelint" jlpm stylelint:check
check "house rules" python scripts/check_house.py
# The launcher runs under the nodes' own Python: its syntax is ruff's business, its library calls vermin's.
check "launcher on 3.8" vermin --quiet --no-tips --eval-annotations --target=3.8- --exclude-regex "assemble\.py$" --violations hyperpod_jlab/launcher hyperpod_jlab/admin/folder_program
check "ruff check" ruff check --quiet .
check "ruff format" ruff format --check --quiet .
check "import-linter" lint-imports
check "templates" python scripts/make_templates.py --check
wait

if [[ -s $failed ]]; then
  printf 'lint failed: %s\n' "$(paste -s -d , "$failed")" >&2
  exit 1
fi
