#!/usr/bin/env bash
# Everything that CI runs, in order; pytest comes last, so that its closing line is what one reads.
# `scripts/test.sh full` runs the long tests too. Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/progress.sh
source scripts/progress.sh
unset PYTHONDONTWRITEBYTECODE
export PATH=$PWD/.venv/bin:$PATH

# Real clusters and browsers on two cores: a test that fails is tried once more, at most three in a run, and its first failure is
# printed and counted ("rerun") in the closing line. It is a fault to look for, here or in the test, not a pass to forget.
again=(--reruns 1 --max-suite-reruns 3 --rerun-show-tracebacks)
select=(-m "not full")
full=false
parts=(core training-operator)
if [[ ${1-} == full ]]; then
  shift
  select=()
  full=true
  parts+=(kueue trainer kwok)
fi

# Kubernetes is built out of its modules (once on a machine: 5 to 10 minutes) beside what does not need it; in a session of its
# own, so that what is left of it ends with this script.
build="" build_log=$(mktemp)
if [[ -z ${HYPERPOD_TEST_KUBECONFIG-} ]]; then
  setsid nice -n 19 testbed/kubernetes-testbed.sh build "${parts[@]}" >"$build_log" 2>&1 &
  build=$!
fi
tests="" tests_log=$(mktemp)
end() {
  [[ -z $build ]] || kill -- "-$build" || true
  [[ -z $tests ]] || kill -INT "$tests" || true  # does nothing to one that has ended
  rm -f "$build_log" "$tests_log"
} 2>/dev/null
trap end EXIT
kubernetes_is_built() {
  if [[ -n $build ]] && ! wait "$build"; then
    cat "$build_log" >&2
    return 1
  fi
  build=""
}

scripts/install.sh
scripts/lint.sh
step "Front-end tests (jest)" jlpm test --maxWorkers=100%
scripts/check-wheel.sh
scripts/ensure-torch.sh
if [[ $full == true ]]; then
  step "Slurm 22.05 and 24.11" testbed/install-slurm.sh --trixie
else
  step "Slurm 22.05" testbed/install-slurm.sh
fi
step "Prometheus" testbed/install-prometheus.sh
step "Kubernetes" kubernetes_is_built
# Most tests wait for something, so several at a time are quicker even on two cores. Those of one file stay together, for
# they share what is dear to start, such as a cluster (and those on Kubernetes: see tests/conftest.py). Beside them runs the
# browser's pytest; this one is shown last, and can be interrupted, which the shell would take from a job in the background.
echo "==> pytest, and the browser tests beside it"
env --default-signal=INT .venv/bin/python -m pytest -n "${PYTEST_WORKERS:-4}" --dist loadfile --no-loadscope-reorder \
  --durations=30 --durations-min=2 "${select[@]}" "${again[@]}" "$@" >"$tests_log" 2>&1 &
tests=$! browser=0
scripts/ui-test.sh -q "${select[@]}" "${again[@]}" || browser=$?
if [[ $full == true ]]; then
  step "Every supported JupyterLab" scripts/check-versions.sh
fi
tail --lines=+1 --follow --pid="$tests" "$tests_log"
wait "$tests"
((browser == 0))
