#!/usr/bin/env bash
# Install Prometheus from Debian's packages, for tests of metrics that come from one. Running it again costs nothing.
#
#   testbed/install-prometheus.sh            Debian's package: prometheus and promtool
#   testbed/install-prometheus.sh --check    install nothing; exit 0 when it is there
#
# No daemon is started: neither by the package nor by us.
set -euo pipefail
# shellcheck source=testbed/packages.sh
source "$(dirname "$(readlink -f "$0")")/packages.sh"

there() { command -v prometheus >/dev/null && command -v promtool >/dev/null; }

if [[ ${1-} == --check ]]; then
  there || { echo "prometheus or promtool is missing" >&2; exit 1; }
elif ! there; then
  can_install prometheus
  one_at_a_time
  install_packages prometheus
fi
