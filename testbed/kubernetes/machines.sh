# shellcheck shell=bash disable=SC2015
# The machines of a testbed: each is a set of namespaces (mounts, network, processes, name) in which inside.sh is the first
# process. Sourced by kubernetes-testbed.sh.

# No default route leads out of the machines' networks, so several testbeds have the same addresses.
readonly CTL_IP=10.88.6.1

machines() {
  local folder
  for folder in "$D"/machines/*/; do [[ ! -d $folder ]] || basename "$folder"; done
}
nodes() { machines | grep '^node'; }

# name_of MACHINE: what Kubernetes calls it.
name_of() {
  local name=$1
  [[ ! -s $D/machines/$1/name ]] || name=$(<"$D/machines/$1/name")
  echo "$name"
}

# call MACHINE NAME: from its next start on Kubernetes calls it so.
call() {
  [[ $2 =~ ^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$ ]] || die "no name for a node: $2"
  mkdir -p "$D/machines/$1" && echo "$2" >"$D/machines/$1/name"
}

# machine_of NODE: by either name, of one that was made.
machine_of() {
  local machine
  for machine in $(nodes); do
    if [[ ${1-} == "$machine" || ${1-} == "$(name_of "$machine")" ]]; then
      echo "$machine"
      return
    fi
  done
  die "there is no node ${1-}"
}

# node_number MACHINE
node_number() {
  [[ ${1-} =~ ^node([0-9]+)$ && -d $D/machines/$1 ]] || die "there is no node ${1-}"
  echo "${BASH_REMATCH[1]}"
}

# enter MACHINE CMD...
enter() {
  local pid
  pid=$(machine_pid "$1") || die "there is no machine $1, or it does not run"
  shift
  nsenter -t "$pid" -m -n -p -u -- env "KUBERNETES_TESTBED=$D" "$@"
}

group_of() { echo "testbed-$(sha256sum <<<"$D" | cut -c1-8)-$1"; }

remove_groups() {
  local group i
  for group in /sys/fs/cgroup/*/"$(group_of "$1")"; do
    for ((i = 0; i < 20; i++)); do
      [[ -d $group ]] || break
      find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
    done
  done
}

# The settings of its components, with this machine's names and addresses.
write_settings() { # write_settings NAME PODS
  local file folder=$D/machines/$1
  for file in containerd.toml kubelet.yaml kube-proxy.yaml Corefile cni.conflist; do
    sed "s#@D@#$D#g; s#@M@#$folder#g; s#@NAME@#$(name_of "$1")#g; s#@PODS@#$2#g; s#@CTL_IP@#$CTL_IP#g; s#@CG@#$(group_of "$1")#g" "$HERE/etc/$file" >"$folder/$file"
  done
  mv "$folder/cni.conflist" "$folder/cni/10-testbed.conflist"
}

# start_machine NAME control|node NUMBER
start_machine() {
  local folder=$D/machines/$1 address=10.88.6.$((10 + $3)) pods=10.88.$((10 + $3)).0/24 group outer pid="" i
  ! machine_pid "$1" >/dev/null || return 0
  [[ $2 == node ]] || address=$CTL_IP
  mkdir -p "$folder/cni"
  rm -rf "$folder"/{containerd/state,runc,ready-for-network,network,images-imported,components} "$folder"/containerd.sock*
  write_settings "$1" "$pods"
  group=$(group_of "$1")
  env -i "PATH=$PATH" "HOME=$folder" LANG=C.UTF-8 "KUBERNETES_TESTBED=$D" "D=$D" "M=$folder" "NAME=$1" "NODE=$(name_of "$1")" "IP=$address" "CTL_IP=$CTL_IP" \
    "CG=$group" "CACHE=$CACHE" "APISERVER_ARGS=${APISERVER_ARGS:-}" "CONTROLLER_MANAGER_ARGS=${CONTROLLER_MANAGER_ARGS:-}" \
    setsid unshare -m -n -p -u -f --kill-child --mount-proc --propagation private bash "$HERE/inside.sh" "$2" </dev/null >>"$D/log/$1.log" 2>&1 9>&- &
  outer=$!
  disown "$outer"
  for ((i = 0; i < 500; i++)); do
    read -r pid _ 2>/dev/null <"/proc/$outer/task/$outer/children" # (false: there is no end of line)
    ours "$pid" && first_of_namespace "$pid" && break
    pid=""
    sleep 0.02
  done
  [[ -n $pid ]] || die "$1 did not start; see $D/log/$1.log"
  echo "$pid" >"$D/run/$1.pid"
  [[ $2 != node ]] || connect "$1" "$3" "$pid" "$address" "$pods"
}

# connect NAME NUMBER PID ADDRESS PODS: a cable from the node to the control machine's bridge.
connect() {
  local control
  control=$(machine_pid control) || die "the control machine does not run"
  wait_for 30 "$1's namespaces" test -e "$D/machines/$1/ready-for-network"
  nsenter -t "$control" -n bash -c "ip link del veth$2 2>/dev/null; ip link add veth$2 type veth peer name eth0 netns $3 &&
      ip link set veth$2 master br0 up && ip route replace $5 via $4" &&
    nsenter -t "$3" -n bash -c "ip addr add $4/24 dev eth0 && ip link set eth0 up && ip route add 10.88.0.0/16 via $CTL_IP" ||
    die "cannot connect $1 to the network"
  touch "$D/machines/$1/network"
}

# Everything in a machine's pid namespace ends with its first process.
end_machine() {
  local pid i
  if pid=$(machine_pid "$1"); then
    kill -9 "$pid"
    for ((i = 0; i < 500; i++)); do
      [[ -e /proc/$pid ]] || break
      sleep 0.02
    done
  fi
  rm -f "$D/run/$1.pid"
  remove_groups "$1"
}

# The API server's port inside the control machine, at a port of this machine's 127.0.0.1; the same one after a restart.
forward() {
  local pid port=0
  ! pid_of forward >/dev/null || return 0
  pid=$(machine_pid control) || die "the control machine does not run"
  [[ ! -s $D/run/port ]] || port=$(<"$D/run/port")
  KUBERNETES_TESTBED=$D setsid python3 "$HERE/forward.py" "$pid" 6443 "$D/run/port" "$port" </dev/null >>"$D/log/forward.log" 2>&1 9>&- &
  echo $! >"$D/run/forward.pid"
  disown $!
}

# import_images TAR...: on every node that runs.
import_images() {
  local node archive
  for node in $(nodes); do
    machine_pid "$node" >/dev/null || continue
    for archive; do
      # shellcheck disable=SC2016
      enter "$node" env "M=$D/machines/$node" bash -c '. "$1" && import_image "$2"' _ "$HERE/components.sh" "$archive" || die "cannot import $archive on $node"
    done
  done
}
