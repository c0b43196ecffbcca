#!/usr/bin/env bash
# A real Kubernetes of several nodes on one machine, in one folder, for integration tests; its programs are built from Go modules.
# Needs root, Go, python3 and what testbed/install-kubernetes.sh installs. Nothing outside DIR is written, except the
# built programs in the user's cache folder and, while the cluster runs, cgroups testbed-* and one port of 127.0.0.1.
#
#   kubernetes-testbed.sh build [PART...]       Debian's packages, programs, images and manifests, into the cache. Parts: core,
#                                               training-operator, kueue, trainer, kwok (none named: the first two); skips
#                                               what is there
#   kubernetes-testbed.sh built                 exit 0 when a start with the training operator has nothing to build
#   kubernetes-testbed.sh start DIR [options]   bring it up, or add to what is up (builds what is missing first)
#   kubernetes-testbed.sh stop DIR [--keep-logs]   end every process of it and delete what is in DIR
#   kubernetes-testbed.sh heal DIR              after faults: all machines and components run, all links are up, all nodes ready
#   kubernetes-testbed.sh status DIR            one line for each machine; exit 0 when all run
#   kubernetes-testbed.sh env DIR               export lines to eval in a shell (KUBECONFIG, and PATH with kubectl)
#   kubernetes-testbed.sh kubectl DIR ARG...
#   kubernetes-testbed.sh exec DIR MACHINE CMD...   run CMD in a machine's namespaces: control, node1 ...
#   kubernetes-testbed.sh image DIR NAME ROOT|TAR   an image from a root folder or a tar of one, on every node
#   kubernetes-testbed.sh claim DIR NAMESPACE [NAME]   a claim (fsx) that is the partition: pods with it see that folder
#   kubernetes-testbed.sh user DIR NAME NAMESPACE [--certificate] [--rules FILE]   someone who may do little, in one namespace
#                                               only (see kubernetes/user.sh); prints the path of a kubeconfig
#   kubernetes-testbed.sh node-kill|node-start DIR NODE   as a power failure: its link goes down and all its processes are gone;
#                                               node-start switches it on again with its disk as it was, and waits for it
#   kubernetes-testbed.sh node-start DIR NODE NAME   the same as another node of Kubernetes (the object of the old one stays)
#   kubernetes-testbed.sh node-cut|node-join DIR NODE     only its link goes down, and up again
#   kubernetes-testbed.sh component-kill|component-start|component-hang|component-resume DIR MACHINE NAME
#                                               control: etcd kube-apiserver kube-controller-manager kube-scheduler coredns;
#                                               node: containerd kubelet kube-proxy (hang: SIGSTOP)
#
# Options of start:
#   --nodes N (1)          node1 ... nodeN
#   --names NAME,...       what Kubernetes calls them (node1 ...); commands take both names
#   --gpus N (0)           each node says that it has N nvidia.com/gpu (pods that ask for them find no device)
#   --partition DIR (DIR/partition)   the folder of this machine that is the storage partition
#   --training-operator    Kubeflow's training operator v1 (PyTorchJob ...)
#   --kueue                Kueue
#   --trainer              JobSet and Kubeflow Trainer v2 (TrainJob)
#   --kwok N               N more nodes that only pretend (fake-0 ...), tainted kwok.x-k8s.io/node=fake:NoSchedule
#   --owner PID            when that process ends, stop
# Variables: APISERVER_ARGS, CONTROLLER_MANAGER_ARGS (more flags, for the first start), BUILD_JOBS (compilers at a time).
set -u -o pipefail
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH

die() { echo "kubernetes-testbed: $*" >&2; exit 1; }
say() { echo "kubernetes-testbed: $*" >&2; }
SELF=$(readlink -f "$0")
HERE=${SELF%/*}/kubernetes

usage() {
  sed -n '2,/^set -u/{/^#/s/^# \{0,1\}//p}' "$SELF"
  exit 2
}

readonly COMMANDS=" build built start stop status env kubectl exec image claim user node-kill node-start node-cut node-join \
component-kill component-start component-hang component-resume heal "
COMMAND=${1-}
[[ -n $COMMAND && $COMMANDS == *" $COMMAND "* ]] || usage
shift

# shellcheck source=testbed/kubernetes/build.sh
source "$HERE/build.sh"
if [[ $COMMAND == build ]]; then
  do_build "$@"
  exit
fi
if [[ $COMMAND == built ]]; then
  do_built
  exit
fi

[[ $# -gt 0 ]] || die "$COMMAND needs DIR"
D=$(readlink -m -- "$1")
shift
[[ $D == /*/* ]] || die "DIR must lie at least two levels deep"
if [[ $COMMAND != start && ! -e $D/testbed ]]; then
  [[ $COMMAND != stop ]] || { say "no testbed in $D"; exit 0; }
  die "no testbed in $D"
fi

# shellcheck source=testbed/kubernetes/processes.sh
source "$HERE/processes.sh"
# shellcheck source=testbed/kubernetes/machines.sh
source "$HERE/machines.sh"
# shellcheck source=testbed/kubernetes/cluster.sh
source "$HERE/cluster.sh"
# shellcheck source=testbed/kubernetes/faults.sh
source "$HERE/faults.sh"

do_image() {
  [[ $# == 2 ]] || die "image DIR NAME ROOT|TAR"
  local archive=$D/images/${1//[\/:]/_}.tar
  python3 "$HERE/mkimage.py" "$1" "$2" "$archive" --cmd '["/bin/sh"]' && import_images "$archive"
}

do_user() {
  [[ $# -ge 2 ]] || die "user DIR NAME NAMESPACE [--certificate] [--rules FILE]"
  local file=$D/users/$2-$1.kubeconfig
  mkdir -p "$D/users" && chmod 700 "$D/users"
  (umask 077 && KUBECTL=$CACHE/bin/kubectl "$HERE/user.sh" "$D/kubeconfig" "$@" >"$file.new") || { rm -f "$file.new"; die "cannot make $1"; }
  mv "$file.new" "$file"
  echo "$file"
}

case $COMMAND in
  start) do_start "$@" ;;
  stop) do_stop "$@" ;;
  status) do_status ;;
  env)
    echo "export KUBECONFIG=$D/kubeconfig"
    # shellcheck disable=SC2016
    echo "export PATH=$CACHE/bin"':$PATH'
    ;;
  kubectl) kc "$@" ;;
  exec)
    [[ $# -ge 2 ]] || die "exec DIR MACHINE CMD..."
    enter "$@"
    ;;
  image) do_image "$@" ;;
  claim) do_claim "$@" ;;
  user) do_user "$@" ;;
  *) do_fault "$COMMAND" "$@" ;;
esac
