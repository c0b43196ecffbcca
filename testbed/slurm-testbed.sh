#!/usr/bin/env bash
# A real Slurm cluster of several nodes on one machine, in one folder, for integration tests.
# Needs root and what testbed/install-slurm.sh installs. Nothing outside DIR is written, except while the cluster
# runs: one cgroup tb<port base> in each hierarchy (v1), a lock /tmp/slurm-testbed-<port base>.lock and, with --net ns,
# network namespaces tb<port base><node>.
#
#   slurm-testbed.sh start DIR [options]      bring it up (keeps DIR's old state)
#   slurm-testbed.sh stop DIR [--purge]       end every process of it; --purge deletes what is in DIR
#   slurm-testbed.sh heal DIR                 after faults: as it was after the start, no jobs, no calls
#   slurm-testbed.sh status DIR               one line for each daemon; exit 0 when all run
#   slurm-testbed.sh env DIR                  export lines to eval in a shell
#   slurm-testbed.sh exec DIR [--as USER] HOST CMD...   run CMD on a host: ctl (the controller), node1, login1 ...
#   slurm-testbed.sh node-kill|node-start DIR NODE      a crash: SIGKILL for slurmd and all processes of its jobs
#   slurm-testbed.sh node-clock DIR NODE +5m|off        another time of day for the jobs that start on the node
#   slurm-testbed.sh ctl-kill|ctl-stop|ctl-start|ctl-hang|ctl-resume DIR   the controller (hang: SIGSTOP); killed, it
#                                             forgets the jobs of its last seconds, stopped it does not
#   slurm-testbed.sh munge-kill|munge-start DIR
#   slurm-testbed.sh login-kill|login-start|login-hang|login-resume DIR LOGIN
#   slurm-testbed.sh login-rekey DIR LOGIN [--back]     a new host key, which no client knows; --back: the first one
#   slurm-testbed.sh token DIR USER [SECS]    a JWT for USER (needs --rest)
#
# Options of start (kept in DIR/etc/testbed.env; a later plain start takes them from there; * may be given repeatedly):
#   --nodes N (4)  --prefix NAME (node)  --cpus N (16)  --mem MB (64000)
#   --gpus N (8)   --gpu-type NAME (h100)   --gres-extra "shard:16 gpu:1g.10gb:7 fpga:2"
#   --parts SPEC ("dev:1-N:default batch:M-N", M the middle): "NAME:RANGE[:default] ..."
#   --partition-extra "dev=MaxTime=60 DefaultTime=10" *   more words for a partition's line
#   --preempt          one more partition, high, whose jobs requeue those of the others
#   --min-job-age S (600)   --slurmd-timeout S (10)   --kill-wait S (5)   --option NAME=VALUE *   lines of slurm.conf
#   --include FILE     lines added at the end of slurm.conf
#   --users "alice:20001 bob:20002"   accounts of the hosts (not of this machine), homes in DIR/home
#   --mount SRC:DST[:node1,node2] *   the folder SRC appears at DST on the login nodes and the nodes (these ones only),
#                      and not at SRC there; on ctl it stays where it is
#   --bind PATH *      PATH shows on the hosts and everyone may go there, although it lies in a closed folder or not in FS
#   --login N (0)      login nodes with sshd: ssh -F DIR/ssh/config alice@login1
#   --count-calls      each call of a Slurm command through DIR/bin, also on the login nodes, is a line in DIR/calls.log
#   --dbd              MariaDB and slurmdbd, accounting enforced
#   --accounts "research:alice,bob physics:bob"   --qos "NAME KEY=VALUE ..." *    (with --dbd)
#   --rest             slurmrestd on 127.0.0.1 with JWT
#   --cloud N (0)      more nodes, cloud[1-N], powered down, never started: for tests of size
#   --root FS          Slurm out of the file system FS (see install-slurm.sh --trixie); munge and MariaDB stay this machine's
#   --net lo|ns (lo: addresses 127.x.y.z in one network; ns: a network namespace for each host, no --login)
#   --proctrack auto|cgroup|linuxproc|pgid (auto: cgroup where there is a v1 freezer, else linuxproc)
#   --constrain        task/cgroup with limits of devices and memory (needs cgroup v1)
#   --port-base P (first free of 26800, 27000, ...)   --cluster NAME (testbed)   --timeout S (60)
#   --owner PID        when that process ends, stop --purge
set -u -o pipefail
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
unset SLURM_JWT

die() { echo "slurm-testbed: $*" >&2; exit 1; }
say() { [[ -n ${QUIET-} ]] || echo "slurm-testbed: $*" >&2; }
SELF=$(readlink -f "$0")
HERE=${SELF%/*}

usage() {
  sed -n '2,/^set -u/{/^#/s/^# \{0,1\}//p}' "$SELF"
  exit 2
}

readonly COMMANDS=" start stop heal status env exec token node-kill node-start node-clock ctl-kill ctl-stop ctl-start ctl-hang ctl-resume \
munge-kill munge-start login-kill login-start login-hang login-resume login-rekey "
COMMAND=${1-}
[[ -n $COMMAND && $COMMANDS == *" $COMMAND "* ]] || usage
shift
[[ $# -gt 0 ]] || die "$COMMAND needs DIR"
[[ $COMMAND != start ]] || mkdir -p "$1" || die "cannot make $1"
[[ -d $1 ]] || die "no such folder: $1"
D=$(readlink -f "$1")
shift
case $D in *[[:space:]]* | *'#'* | *','* | *'['* | *':'*) die "DIR must not have spaces or one of # , [ :" ;; esac
[[ $D == /*/* ]] || die "DIR must lie at least two levels deep"
STATE=$D/etc/testbed.env

# What an option says when it is not given; lists have a line for each entry.
NODES=4 PREFIX=node CPUS=16 MEM=64000 GPUS=8 GPU_TYPE=h100 GRES_EXTRA="" PARTS="" PARTITION_EXTRA="" PREEMPT=0
OPTIONS="" INCLUDE="" USERS="" MOUNTS="" BINDS="" LOGINS=0 COUNT_CALLS=0 DBD=0 ACCOUNTS="" QOS="" REST=0 CLOUD=0
ROOT="" NET=lo PROCTRACK=auto CONSTRAIN=0 PORT_BASE="" PORT_AUTO=1 CLUSTER=testbed TIMEOUT=60 OWNER=""
# shellcheck disable=SC1090
[[ ! -f $STATE ]] || . "$STATE"

save_state() {
  declare -p NODES PREFIX CPUS MEM GPUS GPU_TYPE GRES_EXTRA PARTS PARTITION_EXTRA PREEMPT OPTIONS INCLUDE USERS MOUNTS BINDS \
    LOGINS COUNT_CALLS DBD ACCOUNTS QOS REST CLOUD ROOT NET PROCTRACK CONSTRAIN PORT_BASE PORT_AUTO CLUSTER TIMEOUT |
    sed 's/^declare -- //' >"$STATE"
}

conf() { echo "$D/etc/slurm.conf"; }
nodes() { local i; for ((i = 1; i <= NODES; i++)); do echo "$PREFIX$i"; done; }
logins() { local i; for ((i = 1; i <= LOGINS; i++)); do echo "login$i"; done; }
hosts() { echo ctl; nodes; logins; }
is_node() { nodes | grep -qxF -- "$1"; }
is_login() { logins | grep -qxF -- "$1"; }

# address ctl | address NODE | address LOGIN: in lo mode the second number comes from the ports, so clusters do not meet.
address() {
  local n
  case $1 in
    ctl) n=0 ;;
    login*) n=$((200 + ${1#login})) ;;
    *) n=${1#"$PREFIX"} ;;
  esac
  if [[ $1 == login* ]]; then
    echo "127.$((PORT_BASE / 200 % 190 + 20)).2.$n"
  elif [[ $NET == ns ]]; then
    echo "198.18.$((n / 250)).$((n % 250 + 1))"
  else
    echo "127.$((PORT_BASE / 200 % 190 + 20)).$((n / 250)).$((n % 250 + 1))"
  fi
}
login_port() { echo $((PORT_BASE + 30 + ${1#login})); }

# shellcheck source=testbed/slurm/processes.sh
source "$HERE/slurm/processes.sh"
# shellcheck source=testbed/slurm/hosts.sh
source "$HERE/slurm/hosts.sh"
# shellcheck source=testbed/slurm/config.sh
source "$HERE/slurm/config.sh"
# shellcheck source=testbed/slurm/logins.sh
source "$HERE/slurm/logins.sh"
# shellcheck source=testbed/slurm/accounting.sh
source "$HERE/slurm/accounting.sh"
# shellcheck source=testbed/slurm/daemons.sh
source "$HERE/slurm/daemons.sh"
# shellcheck source=testbed/slurm/faults.sh
source "$HERE/slurm/faults.sh"
# shellcheck source=testbed/slurm/options.sh
source "$HERE/slurm/options.sh"

do_status() {
  local name pid bad=0
  [[ -n $PORT_BASE ]] || die "never started: $D"
  while read -r name; do
    if pid=$(pid_of "$name"); then
      echo "$name $pid"
    else
      echo "$name not running"
      bad=1
    fi
  done < <(daemons)
  return $bad
}

do_env() {
  [[ -n $PORT_BASE ]] || die "never started: $D"
  echo "export SLURM_CONF=$(conf)"
  # shellcheck disable=SC2016
  if through_bin; then echo "export PATH=$D/bin"':$PATH'; fi
  [[ $REST == 0 ]] || echo "export SLURM_TESTBED_REST=http://127.0.0.1:$((PORT_BASE + 20))"
  echo "export SLURM_TESTBED_WORK=$D/work"
}

do_exec() {
  local as=() host pid
  if [[ ${1-} == --as ]]; then
    [[ -n ${2-} ]] || die "exec DIR --as USER HOST CMD..."
    as=(setpriv "--reuid=$2" "--regid=$2" --init-groups env "HOME=$D/home/$2" "USER=$2" "LOGNAME=$2" SHELL=/bin/bash)
    shift 2
  fi
  [[ $# -gt 1 ]] || die "exec DIR [--as USER] HOST CMD..."
  host=$1
  shift
  pid=$(pid_of "host-$host") || die "there is no host $host, or it does not run"
  # shellcheck disable=SC2016
  SLURM_CONF=$(conf) exec nsenter -t "$pid" "${ENTER[@]}" "--root=/proc/$pid/root" "--wd=/proc/$pid/root" -- \
    bash -c 'cd -- "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" ${as[@]+"${as[@]}"} "$@"
}

do_token() {
  local token
  [[ $# -ge 1 ]] || die "token DIR USER [SECS]"
  token=$(client scontrol token "username=$1" "lifespan=${2:-3600}") && echo "${token#SLURM_JWT=}"
}

case $COMMAND in
  start) do_start "$@" ;;
  stop) do_stop "$@" ;;
  status) do_status ;;
  env) do_env ;;
  exec) do_exec "$@" ;;
  token) do_token "$@" ;;
  *) do_fault "$COMMAND" "$@" ;;
esac
