# shellcheck shell=bash disable=SC2015
# Processes of a testbed: which are ours, and how they end. Sourced by slurm-testbed.sh.

# state_of PID: its letter (T: stopped), into REPLY. (These first ones are asked all the time: without a program of their own.)
state_of() {
  [[ -n ${1-} ]] && read -r REPLY 2>/dev/null <"/proc/$1/stat" && REPLY=${REPLY##*) } && REPLY=${REPLY:0:1}
} 2>/dev/null

# alive PID: there, and no zombie (some machines' init reaps late).
alive() { state_of "${1-}" && [[ $REPLY != [ZX] ]]; }

# marked PID: started with our mark in its environment.
marked() {
  while IFS= read -r -d '' REPLY; do
    [[ $REPLY != "SLURM_TESTBED=$D" ]] || return 0
  done <"/proc/$1/environ"
  return 1
} 2>/dev/null

# A process of ours has our mark in its environment; sshd, which writes over its own, is known by its host's namespace.
ours() {
  local uts
  [[ ${1-} =~ ^[0-9]+$ ]] && alive "$1" || return 1
  marked "$1" && return 0
  uts=$(uts_of "$1") && [[ -n $uts && " $(our_uts) " == *" $uts "* ]]
}

# pid_of NAME: by its pid file, when that is one of ours.
pid_of() {
  local pid
  [[ -f $D/run/$1.pid ]] && read -r pid 2>/dev/null <"$D/run/$1.pid" && ours "$pid" && echo "$pid"
}

# end NAME [TENTHS]: SIGTERM, a wait, then SIGKILL.
end() {
  local pid i
  if pid=$(pid_of "$1"); then
    kill "$pid" 2>/dev/null
    kill -CONT "$pid" 2>/dev/null
    for ((i = 0; i < ${2:-50}; i++)); do
      alive "$pid" || break
      sleep 0.1
    done
    if alive "$pid"; then
      say "$1 ($pid) ignores SIGTERM: SIGKILL"
      kill -9 "$pid"
      sleep 0.2
    fi
  fi
  rm -f "$D/run/$1.pid"
}

# Each host has a UTS namespace of its own, and all that it starts inherits it: so a host's processes are those with
# that namespace. (slurmstepd wipes its environment: it could not be found by a mark.)

# The namespaces of the machine and of this shell: nothing in them is ever taken for a host's.
OWN_UTS=$(stat -L -c %i /proc/self/ns/uts)
MACHINE_UTS=" $OWN_UTS $(stat -L -c %i "/proc/$PPID/ns/uts" /proc/1/ns/uts /proc/2/ns/uts 2>/dev/null | tr '\n' ' ') "
readonly OWN_UTS MACHINE_UTS
[[ $OWN_UTS =~ ^[0-9]+$ ]] || die "cannot read namespaces in /proc"

# uts_of PID: its UTS namespace; nothing when that is the machine's. (No pipes: a pipe that breaks would look like "not found".)
uts_of() {
  local inode
  inode=$(stat -L -c %i "/proc/$1/ns/uts" 2>/dev/null) || return 1
  [[ $inode =~ ^[0-9]+$ && $MACHINE_UTS != *" $inode "* ]] || return 1
  echo "$inode"
}

# A listening sshd, by the command line that it shows.
our_sshd() {
  local line
  IFS= read -r -d '' line <"/proc/$1/cmdline" || [[ -n $line ]] || return 1
  [[ $line == "sshd: /usr/sbin/sshd -f $D/ssh/"* ]]
} 2>/dev/null

# our_uts: the namespaces of all hosts, by the process that holds each; of the daemons, where the holder is gone.
our_uts() {
  local file pid
  for file in "$D"/run/host-*.pid "$D"/run/slurm*.pid "$D"/run/sshd-*.pid; do
    [[ -f $file ]] && read -r pid <"$file" || continue
    alive "$pid" && { marked "$pid" || our_sshd "$pid"; } && uts_of "$pid"
  done | sort -u | tr '\n' ' '
}

# pids_of_uts "INODE INODE ..."
pids_of_uts() {
  stat -L -c '%i %n' /proc/[0-9]*/ns/uts 2>/dev/null |
    awk -v wanted=" $1 " 'index(wanted, " " $1 " ") {split($2, part, "/"); print part[3]}'
}

# host_pids HOST: its processes, but for the one that holds its namespaces.
host_pids() {
  local holder uts
  holder=$(pid_of "host-$1") && uts=$(uts_of "$holder") && [[ -n $uts ]] || return 0
  pids_of_uts "$uts" | grep -vx "$holder" || true
}

marked_pids() { grep -lzxF "SLURM_TESTBED=$D" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }

ancestors() {
  local pid=$$
  while [[ ${pid:-0} -gt 1 ]]; do
    echo "$pid"
    read -r pid <"/proc/$pid/stat" || return 0
    pid=${pid##*) }
    read -r _ pid _ <<<"$pid"
  done
}

# kill_ours [SIGNAL]: SIGKILL for those processes, named by standard input, that are proven anew, one by one, to be of this testbed.
kill_ours() {
  local pid callers known uts
  callers=" $(ancestors | tr '\n' ' ') "
  known=" $(our_uts) "
  while read -r pid; do
    [[ $pid =~ ^[0-9]+$ && $callers != *" $pid "* ]] || continue
    if marked "$pid" || { uts=$(uts_of "$pid") && [[ -n $uts && $known == *" $uts "* ]]; }; then kill "-${1:-9}" "$pid" 2>/dev/null; fi
  done
  return 0
}

# wait_for SECONDS WHAT CMD...
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [[ $what == slurmctld ]] && ! pid_of slurmctld >/dev/null; then
      sleep 0.5
      pid_of slurmctld >/dev/null || { say "slurmctld ended at once"; return 1; }
    fi
    [[ $SECONDS -lt $end ]] || { say "gave up waiting for $what"; return 1; }
    sleep 0.05
  done
}

port_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
base_free() {
  local i
  [[ ! -e /run/netns/tb$1ctl ]] || return 1
  for i in 17 18 19 20 31 32 41 42; do port_free $(($1 + i)) || return 1; done
}

show_logs() {
  local file
  for file in "$D"/log/*.log; do
    [[ ! -s $file ]] || { echo "--- ${file##*/}"; tail -n 5 "$file"; }
  done >&2
}
