#!/usr/bin/env bash
# inside.sh ROLE: the first process of one machine of the testbed, in mount, network, pid and uts namespaces of its own.
# ROLE is `control` (etcd, API server, controller manager, scheduler, DNS) or `node` (containerd, kubelet, proxy).
# Variables from machines.sh: D (the testbed), M (this machine's folder in it), NAME, NODE (its name in Kubernetes), IP, CTL_IP, CG, CACHE.
set -eu
# shellcheck source=testbed/kubernetes/components.sh
source "$(dirname "$(readlink -f "$0")")/components.sh"
hostname "$NAME"
mkdir -p "$M"/{cni,log,log/pods,log/containers,kubelet,sysctl,varlib,varlib.work}
# what the components write at fixed places stays in this machine's folder
mount -t tmpfs tmpfs /run && mkdir -p /run/lock
mount --bind "$M/log" /var/log
mount -t overlay -o "lowerdir=/var/lib,upperdir=$M/varlib,workdir=$M/varlib.work" overlay /var/lib
ip link set lo up
sleep infinity & # the machine stays when all its components are killed
knode() { run "$1" "$CACHE/bin/knode" "$@"; }

control() {
  local P=$D/pki
  ip link add br0 type bridge && ip addr add "$CTL_IP/24" dev br0 && ip link set br0 up
  sysctl -qw net.ipv4.ip_forward=1
  knode etcd --data-dir="$M/etcd" --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
    --listen-peer-urls=http://127.0.0.1:2380 --initial-advertise-peer-urls=http://127.0.0.1:2380 --initial-cluster=default=http://127.0.0.1:2380 \
    --unsafe-no-fsync --quota-backend-bytes=8000000000 --auto-compaction-retention=0
  # aggregator routing: webhooks are called at their pods' addresses, so this machine needs no kube-proxy
  # shellcheck disable=SC2086
  knode kube-apiserver --etcd-servers=http://127.0.0.1:2379 --service-cluster-ip-range=10.88.8.0/24 --bind-address=0.0.0.0 --secure-port=6443 \
    --advertise-address="$CTL_IP" --tls-cert-file="$P/apiserver.crt" --tls-private-key-file="$P/apiserver.key" --client-ca-file="$P/ca.crt" --cert-dir="$P" \
    --kubelet-client-certificate="$P/admin.crt" --kubelet-client-key="$P/admin.key" --kubelet-preferred-address-types=InternalIP \
    --requestheader-client-ca-file="$P/ca.crt" --requestheader-allowed-names=front-proxy --requestheader-username-headers=X-Remote-User \
    --requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$P/front-proxy.crt" --proxy-client-key-file="$P/front-proxy.key" --enable-aggregator-routing \
    --service-account-issuer=https://kubernetes.default.svc --service-account-signing-key-file="$P/sa.key" --service-account-key-file="$P/sa.pub" \
    --token-auth-file="$P/tokens.csv" --authorization-mode=RBAC --allow-privileged --profiling=false \
    --default-not-ready-toleration-seconds=30 --default-unreachable-toleration-seconds=30 ${APISERVER_ARGS:-}
  until "$CACHE/bin/knode" kubectl --kubeconfig="$P/inside.kubeconfig" get --raw /readyz >/dev/null 2>&1; do sleep 0.1; done
  # shellcheck disable=SC2086
  knode kube-controller-manager --kubeconfig="$P/inside.kubeconfig" --service-account-private-key-file="$P/sa.key" --root-ca-file="$P/ca.crt" \
    --use-service-account-credentials --leader-elect=false --cert-dir="$P" --node-monitor-grace-period=20s --node-monitor-period=2s --pvclaimbinder-sync-period=1s --kube-api-qps=300 --kube-api-burst=600 \
    --cluster-signing-cert-file="$P/ca.crt" --cluster-signing-key-file="$P/ca.key" ${CONTROLLER_MANAGER_ARGS:-}
  knode kube-scheduler --kubeconfig="$P/inside.kubeconfig" --leader-elect=false --kube-api-qps=300 --kube-api-burst=600 --cert-dir="$P"
  knode coredns "$M/Corefile"
}

node() {
  local file value h
  # settings that the kubelet writes for the whole machine: private files instead
  for value in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    file=$M/sysctl/$(tr / _ <<<"${value%=*}"); echo "${value#*=}" >"$file"; mount --bind "$file" "/proc/sys/${value%=*}"; done
  for h in /sys/fs/cgroup/*/; do
    mkdir -p "$h$CG"; [ ! -e "${h}cgroup.clone_children" ] || echo 1 >"$h$CG/cgroup.clone_children"; done
  for file in cpuset.cpus cpuset.mems; do cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/$CG/$file"; done
  touch "$M/ready-for-network"; until [ -e "$M/network" ]; do sleep 0.02; done
  sysctl -qw net.ipv4.ip_forward=1
  echo "nameserver $CTL_IP" >"$M/resolv.conf"
  run containerd containerd -c "$M/containerd.toml"
  until [ -S "$M/containerd.sock" ]; do sleep 0.05; done
  knode kubelet --config="$M/kubelet.yaml" --kubeconfig="$D/pki/inside.kubeconfig" --root-dir="$M/kubelet" --cert-dir="$M/kubelet/pki" \
    --node-ip="$IP" --hostname-override="$NODE"
  knode kube-proxy --config="$M/kube-proxy.yaml"
  for file in "$D"/images/*.tar; do import_image "$file"; done
  touch "$M/images-imported"
}

"$1"
wait
