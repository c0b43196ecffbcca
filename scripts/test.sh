#!/usr/bin/env bash
# Everything that CI runs, in order; pytest comes last, so that its closing line is what one reads.
#   scripts/test.sh                the standard run; further arguments go to pytest
#   scripts/test.sh full           lists the shards of the long tests
#   scripts/test.sh full SHARD     runs one of them; further arguments go to pytest
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/progress.sh
source scripts/progress.sh
unset PYTHONDONTWRITEBYTECODE
export PATH=$PWD/.venv/bin:$PATH

readonly PYTEST=(.venv/bin/python -m pytest -n "${PYTEST_WORKERS:-4}" --dist loadgroup --no-loadscope-reorder)
readonly SLOWEST=(--durations=30 --durations-min=2)
# Only tests with the mark `flaky` run a second time (tests/marks.py), at most three in a run. The first failure is printed, and the
# closing line counts it as "rerun": it is a fault to look for (docs/testing.md).
readonly AGAIN=(--max-suite-reruns 3 --rerun-show-tracebacks)

# Name, what it needs (of slurm, slurm-24.11, kubernetes, kueue, trainer, kwok, prometheus, torch, mlflow, chromium), what it runs.
readonly SHARDS=(
  "slurm|slurm slurm-24.11 torch|the long tests on Slurm 22.05, and all that run over ssh"
  "slurm-2411|slurm slurm-24.11 torch|all tests on Slurm, on 24.11"
  "kubernetes-a|kubernetes|the long tests on Kubernetes: kinds, queues, orders, ends"
  "kubernetes-b|kubernetes|the long tests on Kubernetes: faults, logs, ports, rights and the rest"
  "kills|slurm prometheus torch mlflow|the long tests that need no cluster: kills, random faults, many runs, lifecycle, demo"
  "testbed|slurm slurm-24.11 kubernetes prometheus|the tests of the testbed itself"
  "versions|slurm slurm-24.11 kubernetes torch chromium|the long browser tests, and every supported JupyterLab"
)

list_shards() {
  local shard
  echo "make test-full SHARD=..., one of:"
  for shard in "${SHARDS[@]}"; do
    printf '  %-14s %s\n' "${shard%%|*}" "${shard##*|}"
  done
}

# needs_of SHARD: what it needs; fails when there is no such shard.
needs_of() {
  local shard
  for shard in "${SHARDS[@]}"; do
    if [[ ${shard%%|*} == "$1" ]]; then
      shard=${shard#*|}
      echo "${shard%%|*}"
      return
    fi
  done
  return 1
}

# Whether a commit since the branch began has touched the testbed. In a clone of the main branch: one of its last ten commits, or
# those that a merge brought. What cannot be told counts as yes.
testbed_has_changed() {
  local base head
  local paths=(testbed scripts/test.sh "tests/*/test_testbed.py" "tests/aws/test_endpoint*.py" tests/aws/test_iam.py)
  head=$(git rev-parse HEAD 2>/dev/null) || return 0
  base=$(git merge-base HEAD origin/HEAD 2>/dev/null) || base=$head
  if [[ $base == "$head" ]]; then
    base=$(git rev-parse --verify --quiet "HEAD^2" >/dev/null && echo HEAD^1 || echo HEAD~10)
  fi
  git rev-parse --verify --quiet "$base^{commit}" >/dev/null || return 0
  [[ -n $(git ls-files --others --exclude-standard -- "${paths[@]}") ]] || ! git diff --quiet "$base" -- "${paths[@]}"
}

# Kubernetes is built out of its modules (once on a machine: 5 to 10 minutes) beside what does not need it; in a session of its
# own, so that what is left of it ends with this script.
build="" build_log=$(mktemp)
tests="" tests_log=$(mktemp)
end() {
  [[ -z $build ]] || kill -- "-$build" || true
  [[ -z $tests ]] || kill -INT "$tests" || true  # does nothing to one that has ended
  rm -f "$build_log" "$tests_log"
} 2>/dev/null
trap end EXIT
build_kubernetes() {
  if [[ -z ${HYPERPOD_TEST_KUBECONFIG-} ]]; then
    setsid nice -n 19 testbed/kubernetes-testbed.sh build core training-operator "$@" >"$build_log" 2>&1 &
    build=$!
  fi
}
kubernetes_is_built() {
  if [[ -n $build ]] && ! wait "$build"; then
    cat "$build_log" >&2
    return 1
  fi
  build=""
}

run_standard() {
  local marks="not full" browser=0
  build_kubernetes kueue
  scripts/install.sh
  scripts/lint.sh
  step "Front-end tests (jest)" jlpm test --maxWorkers=100%
  scripts/check-wheel.sh
  scripts/ensure-torch.sh
  scripts/ensure-mlflow.sh
  step "Slurm 22.05" testbed/install-slurm.sh
  step "Prometheus" testbed/install-prometheus.sh
  step "Kubernetes" kubernetes_is_built
  if testbed_has_changed; then
    echo "==> The testbed has changed: its own tests run too"
  else
    marks+=" and not testbed"
  fi
  # Most tests wait for something, so several at a time are quicker even on two cores. Those of a file, and those on one cluster,
  # stay together (tests/marks.py). Beside them runs the browser's pytest; this one is shown last, and can be interrupted, which the
  # shell would take from a job in the background.
  echo "==> pytest, and the browser tests beside it"
  env --default-signal=INT "${PYTEST[@]}" "${SLOWEST[@]}" -m "$marks" "${AGAIN[@]}" "$@" >"$tests_log" 2>&1 &
  tests=$!
  scripts/ui-test.sh -q -m "not full" "${SLOWEST[@]}" "${AGAIN[@]}" || browser=$?
  tail --lines=+1 --follow --pid="$tests" "$tests_log"
  wait "$tests"
  ((browser == 0))
}

# In tests/kubernetes/: the files of the first of two shards.
readonly KUBERNETES_A="attempts or ends or exactly_once or faults_operator or kinds_run or orders or queues or waiting or unseen_kueue"

run_shard() {
  local name=$1 needs parts=() need
  shift
  if ! needs=$(needs_of "$name"); then
    list_shards >&2
    return 2
  fi
  if [[ $needs == *kubernetes* ]]; then
    build_kubernetes kueue trainer kwok
  fi
  scripts/install.sh
  for need in $needs; do
    case $need in
      torch) scripts/ensure-torch.sh ;;
      mlflow) scripts/ensure-mlflow.sh ;;
      slurm) step "Slurm 22.05" testbed/install-slurm.sh ;;
      slurm-24.11) step "Slurm 24.11" testbed/install-slurm.sh --trixie ;;
      prometheus) step "Prometheus" testbed/install-prometheus.sh ;;
      kubernetes) step "Kubernetes" kubernetes_is_built ;;
    esac
  done
  case $name in
    slurm) parts=(-m "slurm and full and not testbed") ;;
    slurm-2411) parts=(-m "slurm and not testbed and not kubernetes" --slurm 24.11) ;;
    kubernetes-a) parts=(-m "kubernetes and full and not testbed" -k "$KUBERNETES_A") ;;
    kubernetes-b) parts=(-m "kubernetes and full and not testbed" -k "not ($KUBERNETES_A)") ;;
    # Hundreds of seeds in a few files: each worker takes some of them.
    kills) parts=(-m "full and not slurm and not kubernetes and not testbed" --dist worksteal) ;;
    testbed) parts=(-m testbed) ;;
    versions)
      step "Every supported JupyterLab" scripts/check-versions.sh
      scripts/ui-test.sh -m full "${SLOWEST[@]}" "${AGAIN[@]}" "$@"
      return
      ;;
  esac
  "${PYTEST[@]}" "${SLOWEST[@]}" "${parts[@]}" "${AGAIN[@]}" "$@"
}

if [[ ${1-} != full ]]; then
  run_standard "$@"
elif [[ -z ${2-} ]]; then
  list_shards
else
  run_shard "${@:2}"
fi
