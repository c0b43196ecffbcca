# shellcheck shell=bash disable=SC2015,SC2016
# Start and stop of a testbed. Sourced by slurm-testbed.sh.

# The names of all that should run.
daemons() {
  echo munged
  echo slurmctld
  nodes | sed 's/^/slurmd-/'
  logins | sed 's/^/sshd-/'
  [[ $DBD == 0 ]] || printf '%s\n' mariadbd slurmdbd
  [[ $REST == 0 ]] || echo slurmrestd
}

start_munged() {
  pid_of munged >/dev/null && return 0
  rm -f "$D/run/munge.socket" "$D/run/munge.socket.lock"
  clean munged --key-file="$D/etc/munge.key" --socket="$D/run/munge.socket" --pid-file="$D/run/munged.pid" \
    --log-file="$D/log/munged.log" --seed-file="$D/run/munged.seed" --num-threads=10 ||
    die "munged did not start (see $D/log/munged.log)"
}
start_slurmctld() {
  pid_of slurmctld >/dev/null && return 0
  rm -f "$D/run/slurmctld.pid"
  on ctl slurmctld
}
start_slurmd() {
  pid_of "slurmd-$1" >/dev/null && return 0
  rm -f "$D/run/slurmd-$1.pid"
  on "$1" slurmd
}

controller_up() { client scontrol ping | grep -q 'is UP'; }
nodes_ready() {
  [[ $(client sinfo -h -N -n "$(nodes | paste -sd,)" -o '%N %T' | sort -u |
    grep -cE ' (idle|mixed|allocated|completing|draining|drained|reserved)$') == "$NODES" ]]
}

# Nodes that a test took out of use.
resume_nodes() {
  local name
  for name in $(client sinfo -h -N -o %N -t drain,fail,down | sort -u); do
    client scontrol update "NodeName=$name" State=RESUME
  done
}

fail() {
  show_logs
  (QUIET=1 LOCKED=1 do_stop)
  die "$1"
}

has_program() {
  if [[ -n $ROOT ]]; then
    [[ -L $ROOT/usr/sbin/$1 || -x $ROOT/usr/sbin/$1 || -x $ROOT/usr/bin/$1 ]]
  else
    command -v "$1" >/dev/null
  fi
}
check_programs() {
  local program wanted=(slurmctld slurmd sinfo setpriv)
  [[ $(id -u) == 0 ]] || die "needs root"
  for program in munged unshare nsenter $([[ $DBD == 0 ]] || echo mariadbd mariadb-install-db); do
    command -v "$program" >/dev/null || die "$program is not installed (testbed/install-slurm.sh does it)"
  done
  [[ $DBD == 0 ]] || wanted+=(slurmdbd)
  [[ $REST == 0 ]] || wanted+=(slurmrestd)
  [[ $LOGINS == 0 ]] || wanted+=(sshd)
  for program in "${wanted[@]}"; do
    has_program "$program" || die "$program is not installed${ROOT:+ in $ROOT} (testbed/install-slurm.sh does it)"
  done
  [[ $NODES -ge 1 && $NODES -le 150 ]] || [[ $NET == ns ]] || die "--nodes: 1 to 150"
  [[ $LOGINS -le 9 ]] || die "--login: 0 to 9"
  [[ $LOGINS == 0 || $NET == lo ]] || die "--login needs --net lo"
}

# The process that holds the hosts' root also holds the lock of the ports, from before they are used until the stop: two
# testbeds that start at one moment do not choose the same ones.
choose_ports() {
  if pid_of host-base >/dev/null; then return; fi
  if [[ -n $PORT_BASE ]] && claim_ports; then return; fi
  [[ -z $PORT_BASE || $PORT_AUTO == 1 ]] || die "ports from $PORT_BASE are in use"
  PORT_AUTO=1
  for ((PORT_BASE = 26800; PORT_BASE < 32000; PORT_BASE += 200)); do
    if claim_ports; then return; fi
  done
  die "no free ports from 26800 to 32000"
}
claim_ports() {
  exec 7>>"/tmp/slurm-testbed-$PORT_BASE.lock" && flock -n 7 && base_free "$PORT_BASE" || { exec 7>&-; return 1; }
}

do_start() {
  local begin name
  begin=$(date +%s%N)
  read_options "$@"
  check_programs
  [[ -f $STATE || -z $(ls -A "$D") ]] || die "$D is not empty and holds no testbed"
  mkdir -p "$D"/{etc,run,log,state,spool,dev,work,home} || die "cannot make $D"
  : >>"$STATE"
  chmod 755 "$D" "$D"/{etc,run,log,state,spool,dev,home}
  chmod 1777 "$D/work"
  exec 9>"$D/run/lock"
  flock -w "$TIMEOUT" 9 || die "another start or stop of $D is at work"
  choose_ports
  if [[ $PROCTRACK == auto ]]; then if freezer_v1; then PROCTRACK=cgroup; else PROCTRACK=linuxproc; fi; fi
  [[ $CONSTRAIN == 0 ]] || freezer_v1 || die "--constrain needs cgroup v1"
  check_mounts
  write_config
  start_all 9>&-
  say "up in $((($(date +%s%N) - begin) / 1000000)) ms: $NODES nodes, port base $PORT_BASE, proctrack $PROCTRACK, SLURM_CONF=$(conf)"
}

start_all() {
  local name
  watch_owner
  net_up
  cgroups_up
  hosts_up || fail "the hosts' namespaces could not be made (see $D/log/hosts.log)"
  exec 7>&-
  start_munged
  start_accounting || fail "accounting did not come up"
  start_slurmctld || fail "slurmctld did not start"
  for name in $(nodes); do start_slurmd "$name" || fail "slurmd of $name did not start"; done
  for name in $(logins); do start_sshd "$name" || fail "sshd of $name did not start"; done
  wait_for "$TIMEOUT" "slurmctld" controller_up || fail "slurmctld does not answer"
  add_accounts || fail "the accounts could not be made"
  [[ -z ${RESUME_NODES-} ]] || resume_nodes || true # a node that has not come back yet
  wait_for "$TIMEOUT" "the nodes" nodes_ready || { client sinfo -Nl >&2; fail "not every node came up"; }
  start_rest || fail "slurmrestd did not come up"
}

# With --owner: another process that waits for the end of that one (the same, not a later one with its number), and then stops
# everything. Tests that are killed leave nothing behind.
readonly WATCH='begin() { sed "s/.*) //" "/proc/$1/stat" 2>/dev/null | cut -d" " -f20; }
born=$(begin "$1")
while [ -n "$born" ] && [ "$(begin "$1")" = "$born" ]; do sleep 1; done
"$2" stop "$3" --purge'
watch_owner() {
  if [[ -z $OWNER ]] || pid_of watch >/dev/null; then return; fi
  (exec "${CLEAN[@]}" setsid bash -c "$WATCH" _ "$OWNER" "$SELF" "$D" </dev/null >>"$D/log/watch.log" 2>&1) &
  echo $! >"$D/run/watch.pid"
}

# End running jobs in Slurm's own books first: a job of which the processes vanish between two runs of slurmd would stay
# RUNNING after the next start.
cancel_jobs() {
  local left i
  pid_of slurmctld >/dev/null && pid_of munged >/dev/null || return 0
  left=$(timeout 5 "$SELF" exec "$D" ctl squeue -h -t R,S,CF,CG -o %A 2>/dev/null | sort -u)
  [[ -n $left ]] || return 0
  # shellcheck disable=SC2086
  timeout 10 "$SELF" exec "$D" ctl scancel -Q $left 2>/dev/null
  for ((i = 0; i < 80; i++)); do
    [[ -n $(timeout 5 "$SELF" exec "$D" ctl squeue -h -t R,S,CF,CG -o %A 2>/dev/null) ]] || break
    sleep 0.1
  done
}

stop_all() {
  local pid name i
  end slurmrestd 20
  if pid=$(pid_of slurmctld); then kill -CONT "$pid"; fi
  cancel_jobs
  end slurmctld 100
  for name in $(logins); do end "sshd-$name" 20; done
  for name in $(nodes); do if pid=$(pid_of "slurmd-$name"); then kill "$pid"; fi; done
  for name in $(nodes); do end "slurmd-$name" 50; done
  end slurmdbd 100
  # The namespaces' holders go last: by them the others are known.
  for i in 1 2 3; do
    for name in $(hosts); do host_pids "$name"; done | kill_ours
    [[ -n $(for name in $(hosts); do host_pids "$name"; done) ]] || break
    sleep 0.1
  done
  for name in $(hosts) base; do if pid=$(pid_of "host-$name"); then kill -9 "$pid"; fi; done
  end mariadbd 200
  end munged 30
  # what a start that was killed half-way left without a pid file
  marked_pids | kill_ours
  net_down
  cgroups_down
}

do_stop() {
  local name
  [[ -d $D/run ]] || { say "nothing to stop in $D"; return 0; }
  if [[ -z ${LOCKED-} ]]; then
    exec 9>"$D/run/lock"
    flock -w 60 9 || die "another start or stop of $D is at work"
  fi
  [[ -z $PORT_BASE ]] || stop_all
  rm -f "$D"/run/*.pid "$D"/run/*.socket "$D"/run/*.lock "$D"/run/*.sock "$D"/run/*.seed
  if [[ ${1-} == --purge ]]; then
    [[ -f $STATE ]] || die "no testbed in $D: not purged"
    for name in log state spool dev work home bin ssh mysql mysql.tmp root calls.log run etc; do
      rm -rf --one-file-system "${D:?}/${name:?}"
    done
  fi
  say "stopped"
}
