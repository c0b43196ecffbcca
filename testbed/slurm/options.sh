# shellcheck shell=bash disable=SC2034
# The options of start. Sourced by slurm-testbed.sh.

# A list of an earlier start is not added to, but begun anew.
declare -A LIST_BEGUN=()
add_line() { # add_line VARIABLE LINE
  local -n list=$1
  if [[ -z ${LIST_BEGUN[$1]-} ]]; then
    list=$2
    LIST_BEGUN[$1]=yes
  else
    list+=$'\n'$2
  fi
}

# A switch has no value; returns 1 when it is none.
read_switch() {
  case $1 in
    --preempt) PREEMPT=1 ;;
    --count-calls) COUNT_CALLS=1 ;;
    --dbd) DBD=1 ;;
    --rest) REST=1 ;;
    --constrain) CONSTRAIN=1 ;;
    *) return 1 ;;
  esac
}

read_option() {
  case $1 in
    --nodes) NODES=$2 ;;
    --prefix) PREFIX=$2 ;;
    --cpus) CPUS=$2 ;;
    --mem) MEM=$2 ;;
    --gpus) GPUS=$2 ;;
    --gpu-type) GPU_TYPE=$2 ;;
    --gres-extra) GRES_EXTRA=$2 ;;
    --parts) PARTS=$2 ;;
    --partition-extra) add_line PARTITION_EXTRA "$2" ;;
    --min-job-age) add_line OPTIONS "MinJobAge=$2" ;;
    --slurmd-timeout) add_line OPTIONS "SlurmdTimeout=$2" ;;
    --kill-wait) add_line OPTIONS "KillWait=$2" ;;
    --option) add_line OPTIONS "$2" ;;
    --include) INCLUDE=$(readlink -f "$2") ;;
    --users) USERS=$2 ;;
    --mount) add_line MOUNTS "$2" ;;
    --bind) add_line BINDS "$(readlink -f "$2")" ;;
    --login) LOGINS=$2 ;;
    --accounts) ACCOUNTS=$2 ;;
    --qos) add_line QOS "$2" ;;
    --cloud) CLOUD=$2 ;;
    --root) ROOT=$(readlink -f "$2") && [[ -d $ROOT/usr ]] || die "--root: no file system at $2" ;;
    --net) NET=$2 ;;
    --proctrack) PROCTRACK=$2 ;;
    --port-base) PORT_BASE=$2 PORT_AUTO=0 ;;
    --cluster) CLUSTER=$2 ;;
    --owner) OWNER=$2 ;;
    --timeout) TIMEOUT=$2 ;;
    *) die "unknown option $1" ;;
  esac
}

read_options() {
  while [[ $# -gt 0 ]]; do
    if read_switch "$1"; then
      shift
    else
      [[ $# -gt 1 ]] || die "$1: unknown, or needs a value"
      read_option "$1" "$2"
      shift 2
    fi
  done
  [[ $NET == lo || $NET == ns ]] || die "--net: lo or ns"
  [[ -z $OPTIONS ]] || ! grep . <<<"$OPTIONS" | grep -qvE '^[A-Za-z]+=' || die "--option NAME=VALUE"
  ENTER=(--uts --mount)
  [[ $NET != ns ]] || ENTER+=(--net)
}
