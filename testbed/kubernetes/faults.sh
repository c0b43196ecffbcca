# shellcheck shell=bash
# What can go wrong in a cluster, on purpose. Sourced by kubernetes-testbed.sh.

link() { enter control ip link set "veth$1" "$2" || die "cannot turn the link $2"; }

node_kill() {
  machine_pid "$1" >/dev/null || die "$1 does not run"
  link "$2" down # first, so that no connection is closed in an orderly way
  end_machine "$1"
}

node_start() {
  local since
  since=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  if [[ -n ${3-} && $3 != "$(name_of "$1")" ]]; then
    ! machine_pid "$1" >/dev/null || die "$1 runs, and has a name"
    call "$1" "$3"
  fi
  start_machine "$1" node "$2"
  wait_for 60 "$1" heard_since "$1" "$since"
  wait_for 60 "the images on $1" test -e "$D/machines/$1/images-imported"
  give_gpus "$1"
}

# heard_since NODE TIME: whether its kubelet, started after TIME, says that it is ready.
heard_since() {
  local heard
  heard=$(kc --request-timeout=5s get node "$(name_of "$1")" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].lastHeartbeatTime}') &&
    [[ $heard == "True "* && ${heard#True } > $2 ]]
}

# component VERB MACHINE NAME: the numbers are those of the machine's own pid namespace, in which there is nothing else.
component() {
  local file=$D/machines/$2/components/$3 pid signal
  [[ -n $3 && $3 != */* && -e $file.pid ]] || die "there is no component $3 on $2"
  pid=$(<"$file.pid")
  [[ $pid =~ ^[1-9][0-9]*$ && $pid != 1 ]] || die "$file.pid is no process number"
  case $1 in
    start)
      if ! enter "$2" test -e "/proc/$pid"; then
        # shellcheck disable=SC2016
        enter "$2" bash -c '. "$1" && echo $! >"$2"' _ "$file.command" "$file.pid" 9>&- || die "cannot start $3"
      fi
      return
      ;;
    kill) signal=KILL ;;
    hang) signal=STOP ;;
    resume) signal=CONT ;;
  esac
  enter "$2" bash -c "kill -$signal $pid" || die "$3 does not run on $2"
}

# Whether the training operator's webhook answers. An operator that could not reach the API server for a while ends, and is started
# again later and later.
operator_answers() {
  quick_kc create --dry-run=server -f - <<'END'
{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "probe", "namespace": "default"},
 "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": {"spec": {"containers": [{"name": "pytorch", "image": "none"}]}}}}}}
END
}

# The links first, then what is dead or stopped, control before the nodes; at the end every node says anew that it is ready, and the
# training operator answers.
heal() {
  local machine number name since
  since=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  forward
  for machine in control $(nodes); do
    if [[ $machine != control ]]; then
      number=$(node_number "$machine")
      machine_pid "$machine" >/dev/null || { start_machine "$machine" node "$number"; continue; }
      link "$number" up
    fi
    for name in "$D/machines/$machine"/components/*.pid; do
      name=$(basename "$name" .pid)
      component start "$machine" "$name"
      component resume "$machine" "$name"
    done
  done
  for machine in $(nodes); do
    wait_for 90 "$machine" heard_since "$machine" "$since"
    wait_for 60 "the images on $machine" test -e "$D/machines/$machine/images-imported"
    give_gpus "$machine"
  done
  [[ ! -e $D/run/addon-training-operator ]] || wait_for 180 "the training operator" operator_answers
}

do_fault() {
  local machine number
  case $1 in
    heal) heal ;;
    node-*)
      machine=$(machine_of "${2-}") || exit
      number=$(node_number "$machine")
      case $1 in
        node-kill) node_kill "$machine" "$number" ;;
        node-start) node_start "$machine" "$number" "${3-}" ;;
        node-cut) link "$number" down ;;
        node-join) link "$number" up ;;
      esac
      ;;
    component-*) component "${1#component-}" "${2-}" "${3-}" ;;
  esac
}
