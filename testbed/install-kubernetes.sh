#!/usr/bin/env bash
# Install Debian's packages that the Kubernetes testbed needs on this machine. Running it again costs nothing.
#
#   testbed/install-kubernetes.sh             containerd, runc, network plug-ins, iptables; starts no daemon
#   testbed/install-kubernetes.sh --check     install nothing; exit 0 when all is there
#
# Go is not among them, for Debian's is too old: see install-go.sh. The programs themselves are built by kubernetes-testbed.sh build.
set -euo pipefail
# shellcheck source=testbed/packages.sh
source "$(dirname "$(readlink -f "$0")")/packages.sh"
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

readonly PACKAGES=(containerd runc containernetworking-plugins iptables iproute2 openssl procps python3 util-linux)

case ${1-} in
  "")
    [[ -n $(missing "${PACKAGES[@]}") ]] || exit 0
    # shellcheck disable=SC2046
    can_install $(missing "${PACKAGES[@]}")
    one_at_a_time
    install_packages "${PACKAGES[@]}" 9>&-
    ;;
  --check) [[ -z $(missing "${PACKAGES[@]}") ]] ;;
  *)
    echo "usage: install-kubernetes.sh [--check]" >&2
    exit 2
    ;;
esac
