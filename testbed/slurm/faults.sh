# shellcheck shell=bash
# What may go wrong with a cluster, on demand. Sourced by slurm-testbed.sh.

node_kill() {
  local pid
  pid=$(pid_of "slurmd-$1") || die "slurmd of $1 does not run"
  kill -STOP "$pid" # so that it starts and reports nothing while its jobs' processes end
  { host_pids "$1" | grep -vx "$pid" || true; } | kill_ours
  kill -9 "$pid"
  rm -f "$D/run/slurmd-$1.pid"
}
node_start() {
  start_slurmd "$1" || die "slurmd of $1 did not start"
  wait_for "$TIMEOUT" "$1" client bash -c "sinfo -h -N -n $1 -o %T | grep -qE '^(idle|mixed|allocated|completing|drained|draining)$'"
}

# slurmd itself keeps the right time (it would refuse all credentials); every process that starts afterwards has the other.
node_clock() {
  local library
  if [[ $2 == off ]]; then
    on "$1" bash -c 'umount /etc/ld.so.preload /etc/faketimerc 2>/dev/null; true'
    rm -f "$D/etc/clock/$1".*
    return
  fi
  [[ $2 =~ ^[+-][0-9]+[smhd]?$ ]] || die "node-clock DIR NODE +5m|-300|off"
  library=$(on "$1" bash -c 'echo /usr/lib/*/faketime/libfaketimeMT.so.1')
  [[ $library != *'*'* ]] || die "libfaketime is not installed"
  mkdir -p "$D/etc/clock"
  echo "$library" >"$D/etc/clock/$1.preload"
  echo "$2" >"$D/etc/clock/$1.faketimerc"
  # shellcheck disable=SC2016
  on "$1" bash -c 'umount /etc/ld.so.preload /etc/faketimerc 2>/dev/null
    mount --bind "$1.faketimerc" /etc/faketimerc && mount --bind "$1.preload" /etc/ld.so.preload' _ "$D/etc/clock/$1"
}

signal() { # signal DAEMON SIGNAL
  local pid
  pid=$(pid_of "$1") || die "$1 does not run"
  kill "-$2" "$pid"
}
# (The controller writes its state some seconds later: killed, it forgets the latest jobs. ctl-stop ends it in good order.)
kill_hard() {
  local pid i
  pid=$(pid_of "$1") || die "$1 does not run"
  kill -9 "$pid"
  for ((i = 0; i < 100; i++)); do alive "$pid" || break; sleep 0.02; done
  rm -f "$D/run/$1.pid"
}

stopped() { local pid; pid=$(pid_of "$1") && state_of "$pid" && [[ $REPLY == T ]]; }

cancel_jobs() {
  local jobs
  # By the array's id: Slurm 22.05 knows a task by its own no more once the array's first record has ended.
  jobs=$(client squeue -h -o %F | sort -u) || return 1
  # shellcheck disable=SC2086
  [[ -z $jobs ]] || client scancel -Q $jobs
}
no_jobs() {
  local states
  states=$(client squeue -h -o %t) || return
  [[ -n $states ]] || return 0
  ! grep -qvx CG <<<"$states" || cancel_jobs # it came back to the queue
  return 1
}

# Everything as after a start: all that should run does, no jobs, all nodes in use, no calls counted.
heal() {
  local name file jobs
  ! stopped slurmctld || signal slurmctld CONT
  for name in $(logins); do
    ! stopped "sshd-$name" || login_signal "$name" CONT
    cmp -s "$D/ssh/$name/host_key" "$D/ssh/$name/first_host_key" || login_rekey "$name" --back
  done
  for file in "$D"/etc/clock/*.preload; do
    [[ ! -f $file ]] || node_clock "$(basename "$file" .preload)" off
  done
  while read -r name; do
    pid_of "$name" >/dev/null || { QUIET=1 RESUME_NODES=1 do_start && break; }
  done < <(daemons)
  jobs=$(client squeue -h -o %F) || return 1
  [[ -z $jobs ]] || cancel_jobs || return 1
  resume_nodes
  # A job that is ending still counts as running.
  [[ -z $jobs ]] || wait_for "$TIMEOUT" "the jobs' end" no_jobs || return 1
  [[ ! -f $D/calls.log ]] || : >"$D/calls.log"
}

do_fault() {
  local what=$1
  shift
  [[ -n $PORT_BASE ]] || die "never started: $D"
  case $what in
    node-*) is_node "${1-}" || die "$what DIR NODE: there is no node ${1-}" ;;
    login-*) is_login "${1-}" || die "$what DIR LOGIN: there is no login node ${1-}" ;;
  esac
  case $what in
    heal) heal ;;
    node-kill) node_kill "$1" ;;
    node-start) node_start "$1" ;;
    node-clock) node_clock "$1" "${2-}" ;;
    ctl-kill) kill_hard slurmctld ;;
    ctl-stop) end slurmctld 100 ;;
    ctl-start) start_slurmctld && wait_for "$TIMEOUT" slurmctld controller_up ;;
    ctl-hang) signal slurmctld STOP ;;
    ctl-resume) signal slurmctld CONT ;;
    munge-kill) kill_hard munged ;;
    munge-start) start_munged ;;
    login-kill) login_signal "$1" KILL && rm -f "$D/run/sshd-$1.pid" ;;
    login-start) start_sshd "$1" ;;
    login-hang) login_signal "$1" STOP ;;
    login-resume) login_signal "$1" CONT ;;
    login-rekey) login_rekey "$@" ;;
  esac
}
