# shellcheck shell=bash
# Processes of a testbed: which are ours, and how they end. Sourced by kubernetes-testbed.sh.

# alive PID: there, and no zombie.
alive() {
  local stat
  [[ ${1-} =~ ^[1-9][0-9]*$ ]] && read -r stat 2>/dev/null <"/proc/$1/stat" && stat=${stat##*) } && [[ ${stat:0:1} != [ZX] ]]
} 2>/dev/null

# ours PID: started with our mark in its environment.
ours() {
  local entry
  alive "${1-}" || return 1
  while IFS= read -r -d '' entry; do
    [[ $entry != "KUBERNETES_TESTBED=$D" ]] || return 0
  done <"/proc/$1/environ"
  return 1
} 2>/dev/null

# first_of_namespace PID: the first process of a pid namespace that is not this shell's; with it all others in there end.
first_of_namespace() {
  local key numbers
  while read -r key numbers; do
    if [[ $key == NSpid: ]]; then
      [[ $numbers =~ ^"$1"[[:space:]](.*[[:space:]])?1$ ]]
      return
    fi
  done <"/proc/$1/status"
  return 1
} 2>/dev/null

# pid_of NAME: by its pid file, when that is one of ours.
pid_of() {
  local pid
  [[ -f $D/run/$1.pid ]] && read -r pid <"$D/run/$1.pid" && ours "$pid" && echo "$pid"
}

# machine_pid NAME: the first process of a machine of ours.
machine_pid() {
  local pid
  pid=$(pid_of "$1") && first_of_namespace "$pid" && echo "$pid"
}

# wait_for SECONDS WHAT CMD...
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [[ $SECONDS -lt $end ]] || { show_logs; die "gave up waiting for $what; logs are in $D/log"; }
    sleep 0.1
  done
}

show_logs() {
  local file
  for file in "$D"/log/*.log; do
    [[ ! -s $file ]] || { echo "--- ${file##*/}"; tail -n 2 "$file" | cut -c1-300; }
  done >&2
}

# With --owner: another process that waits for the end of that one (the same, not a later one with its number), and then stops
# everything. Tests that are killed leave nothing behind.
# (No programs of its own while it waits, which would outlive it.)
# shellcheck disable=SC2016
readonly WATCH='begin() {
  local stat
  REPLY=""
  read -r stat <"/proc/$1/stat" && set -- ${stat##*) } && REPLY=${20}
} 2>/dev/null
exec 7<> <(:)
begin "$1"
born=$REPLY
while [[ -n $born && $REPLY == "$born" ]]; do
  read -r -t 1 -u 7
  begin "$1"
done
rm -f "$3/run/watch.pid"
exec "$2" stop "$3"'
watch_owner() {
  if [[ -z $1 ]] || pid_of watch >/dev/null; then return; fi
  KUBERNETES_TESTBED=$D setsid bash -c "$WATCH" _ "$1" "$SELF" "$D" </dev/null >>"$D/log/watch.log" 2>&1 9>&- &
  echo $! >"$D/run/watch.pid"
  disown $!
}
