#!/usr/bin/env bash
# Run the benchmarks: all of benchmarks/bench_*.py, or the one named first (`make bench ARGS="logs --quick"`).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/ensure-torch.sh
# The page's benchmarks drive a browser.
if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null; then
  scripts/apt-install.sh chromium
fi
shopt -s nullglob
benchmarks=(benchmarks/bench_*.py)
if [[ -n ${1-} && -f benchmarks/bench_$1.py ]]; then
  benchmarks=("benchmarks/bench_$1.py")
  shift
fi
if ((${#benchmarks[@]} == 0)); then
  echo "no benchmark here yet (benchmarks/bench_*.py)" >&2
  exit 1
fi
for benchmark in "${benchmarks[@]}"; do
  echo "==> $benchmark"
  .venv/bin/python "$benchmark" "$@"
done
