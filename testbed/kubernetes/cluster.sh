# shellcheck shell=bash disable=SC2015
# Up, down and what runs in it. Sourced by kubernetes-testbed.sh.

kc() { "$CACHE/bin/knode" kubectl --kubeconfig="$D/kubeconfig" "$@"; }
quick_kc() { kc --request-timeout=5s "$@"; }

# Options of start, as they were given last.
NODES=1 ADDONS="" KWOK_NODES=0 OWNER="" NAMES=()

read_options() {
  local option
  while [[ $# -gt 0 ]]; do
    option=$1
    shift
    case $option in
      --training-operator | --kueue) ADDONS+=" ${option#--}" ;;
      --trainer) ADDONS+=" jobset trainer" ;;
      --nodes | --gpus | --kwok | --owner)
        [[ ${1-} =~ ^[0-9]+$ ]] || die "$option takes a number"
        case $option in
          --nodes) NODES=$1 ;;
          --gpus) GPUS=$1 ;;
          --kwok) KWOK_NODES=$1 ;;
          --owner) OWNER=$1 ;;
        esac
        shift
        ;;
      --names)
        IFS=, read -r -a NAMES <<<"${1-}"
        shift
        ;;
      --partition)
        PARTITION=$(readlink -f -- "${1-}") && [[ -d $PARTITION ]] || die "--partition takes a folder"
        shift
        ;;
      *) die "unknown option $option" ;;
    esac
  done
  [[ ${#NAMES[@]} == 0 || ${#NAMES[@]} == "$NODES" ]] || die "--names takes as many names as there are nodes, with commas"
  [[ $NODES -ge 1 && $NODES -le 200 ]] || die "--nodes takes a number from 1 to 200"
}

# seen_by_nodes FOLDER: a node has folders of its own in the places of the machine's that its programs write to.
seen_by_nodes() { case $1/ in /run/* | /var/run/* | /var/lib/* | /var/log/* | /proc/* | /sys/* | /dev/*) return 1 ;; esac; }

prepare_folder() {
  [[ $(id -u) == 0 ]] || die "needs root"
  [[ $D != *[!A-Za-z0-9/._-]* ]] || die "DIR must not have special characters: $D"
  [[ ${#D} -le 60 ]] || die "DIR is too long for sockets in it (60 characters at most): $D"
  seen_by_nodes "$D" || die "DIR must lie elsewhere: $D"
  [[ ! -d $D || -e $D/testbed || -z $(ls -A "$D") ]] || die "$D is not empty and holds no testbed"
  mkdir -p "$D"/{run,log,images,machines} && touch "$D/testbed" || die "cannot make $D"
  lock
}

# A stop that came in between has deleted the folder.
lock() {
  mkdir -p "$D/run"
  exec 9>"$D/run/lock"
  flock -w 120 9 || die "another start or stop of $D is at work"
}

choose_partition() {
  [[ -n ${PARTITION-} || ! -s $D/run/partition ]] || PARTITION=$(<"$D/run/partition")
  if [[ -z ${PARTITION-} ]]; then
    PARTITION=$D/partition
    mkdir -p "$PARTITION" && chmod 1777 "$PARTITION"
  fi
  seen_by_nodes "$PARTITION" || die "nodes do not see $PARTITION"
  echo "$PARTITION" >"$D/run/partition"
  [[ -z ${GPUS-} ]] || echo "$GPUS" >"$D/run/gpus"
}

# Each kubelet and containerd takes some tens of inotify instances of root's, of which Linux gives 128 by default: too few for two
# clusters at once. kind asks its users for the same.
raise_inotify() {
  local file=/proc/sys/fs/inotify/max_user_instances
  (($(<"$file") >= 1024)) || echo 1024 2>/dev/null >"$file" || say "cannot raise $file, which is $(<"$file"): a second cluster may not start"
}

milliseconds() { echo $((($(date +%s%N) - BEGIN) / 1000000)); }

do_start() {
  local part parts=() i
  BEGIN=$(date +%s%N)
  read_options "$@"
  for part in $ADDONS; do [[ $part == jobset ]] || parts+=("$part"); done
  [[ $KWOK_NODES == 0 ]] || parts+=(kwok)
  do_build core ${parts[@]+"${parts[@]}"}
  BEGIN=$(date +%s%N)
  raise_inotify
  prepare_folder
  choose_partition
  for part in pause python $ADDONS; do
    [[ -e $D/images/$part.tar ]] || { ln -s "$CACHE/images/$(file_of "$part").tar" "$D/images/$part.tar" && import_images "$D/images/$part.tar"; }
  done
  [[ -e $D/pki/outside.kubeconfig ]] || "$HERE/pki.sh" "$D/pki" 127.0.0.1 "$CTL_IP" 10.88.8.1 || die "making certificates failed"
  watch_owner "$OWNER"
  start_machine control control 0
  for ((i = 1; i <= NODES; i++)); do
    [[ ${#NAMES[@]} == 0 ]] || call "node$i" "${NAMES[i - 1]}"
    start_machine "node$i" node "$i"
  done
  await_cluster
  for part in $ADDONS; do start_addon "$part"; done
  [[ $KWOK_NODES == 0 ]] || start_kwok "$KWOK_NODES"
  say "up after $(milliseconds) ms; KUBECONFIG=$D/kubeconfig"
}

await_cluster() {
  local i
  forward
  wait_for 30 "the forwarder" test -s "$D/run/port"
  sed "s/@PORT@/$(<"$D/run/port")/" "$D/pki/outside.kubeconfig" >"$D/kubeconfig"
  chmod 600 "$D/kubeconfig"
  wait_for 120 "the API server" quick_kc get --raw /readyz
  say "API server answers after $(milliseconds) ms"
  wait_for 120 "the default service account" quick_kc get serviceaccount default
  for ((i = 1; i <= NODES; i++)); do wait_for 120 "node$i" quick_kc get node "$(name_of "node$i")"; done
  kc wait --for=condition=Ready nodes --selector='!type' --timeout=120s >/dev/null || die "not every node is ready; logs are in $D/log"
  for ((i = 1; i <= NODES; i++)); do
    wait_for 120 "the images on node$i" test -e "$D/machines/node$i/images-imported"
    give_gpus "node$i"
  done
  say "$NODES nodes ready after $(milliseconds) ms"
}

# A kubelet leaves resources alone that it knows nothing of, until it starts again.
give_gpus() {
  local gpus=0
  [[ ! -s $D/run/gpus ]] || gpus=$(<"$D/run/gpus")
  [[ $gpus != 0 ]] || return 0
  kc patch node "$(name_of "$1")" --subresource=status --type=merge \
    -p "{\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"$gpus\"},\"allocatable\":{\"nvidia.com/gpu\":\"$gpus\"}}}" >/dev/null || die "cannot give $1 its GPUs"
}

start_addon() {
  local namespace manifest
  [[ ! -e $D/run/addon-$1 ]] || return 0
  manifest=$CACHE/manifests/$(file_of "$1").yaml
  kc apply --server-side --force-conflicts -f "$manifest" >/dev/null || die "cannot apply the manifest of $1"
  namespace=$(awk '/^kind: Deployment/ {d = 1} d && $1 == "namespace:" {print $2; exit}' "$manifest")
  kc -n "$namespace" wait --for=condition=Available deployment --all --timeout=180s >/dev/null || die "$1 does not become available"
  touch "$D/run/addon-$1"
  say "$1 is up"
}

# (`kubectl wait` asks for one after the other.)
fake_nodes_ready() { [[ $(quick_kc get nodes --selector=type=kwok --no-headers | grep -c ' Ready ') -ge $1 ]]; }

start_kwok() {
  if [[ ! -e $D/machines/control/components/kwok.pid ]]; then
    # shellcheck disable=SC2016
    enter control env "M=$D/machines/control" "D=$D" NAME=control "HERE=$HERE" bash -c '. "$HERE/components.sh" && run kwok "$@"' _ \
      "$CACHE/bin/kwok" --kubeconfig="$D/pki/inside.kubeconfig" --config="$CACHE/manifests/kwok-stages.yaml" --node-lease-duration-seconds=40 \
      -v WARN --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake --node-ip="$CTL_IP" 9>&-
  fi
  python3 "$HERE/fake.py" "$D/kubeconfig" nodes "$1" || die "cannot create the fake nodes"
  wait_for 240 "the fake nodes" fake_nodes_ready "$1"
}

do_stop() {
  local pid machine entry
  lock
  for entry in watch forward; do if pid=$(pid_of "$entry"); then kill "$pid"; fi; done
  for machine in $(machines); do end_machine "$machine"; done
  for entry in "$D"/*; do
    case ${1-}:${entry##*/} in
      --keep-logs:log | --keep-logs:testbed) ;;
      *) rm -rf --one-file-system "$entry" ;;
    esac
  done
  # (Another stop may have been first.)
  [[ ${1-} == --keep-logs ]] || rmdir "$D" 2>/dev/null || [[ ! -e $D ]] || die "cannot delete $D"
}

do_status() {
  local name pid bad=0
  for name in $(machines) forward; do
    if pid=$(pid_of "$name"); then
      echo "$name $pid"
    else
      echo "$name not running"
      bad=1
    fi
  done
  return $bad
}

# do_claim NAMESPACE [NAME]: a volume of its own for each claim, all with the same folder behind them.
do_claim() {
  local name=${2:-fsx}
  [[ ${1-} =~ ^[a-z0-9-]+$ && $name =~ ^[a-z0-9-]+$ ]] || die "claim DIR NAMESPACE [NAME]"
  kc apply -f - >/dev/null <<EOF || die "cannot make the claim $name"
apiVersion: v1
kind: PersistentVolume
metadata: {name: $1-$name}
spec:
  accessModes: [ReadWriteMany]
  capacity: {storage: 1200Gi}
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ""
  claimRef: {namespace: $1, name: $name}
  hostPath: {path: "$(<"$D/run/partition")", type: Directory}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $name, namespace: $1}
spec:
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: 1200Gi}}
  storageClassName: ""
  volumeName: $1-$name
EOF
  kc -n "$1" wait --for='jsonpath={.status.phase}=Bound' "pvc/$name" --timeout=60s >/dev/null || die "the claim $name is not bound"
}
