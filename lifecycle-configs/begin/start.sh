# shellcheck shell=bash disable=SC2034
# The beginning: the work goes on behind, the application waits for the package for 3.5 s at most. Studio gives a script 5 minutes and fails the start when
# it does not end with 0.

# What comes later is of the package, which was checked: a script of Studio has to be short.
load() {
  local part folder
  touch "$WORK/packaged"
  folder=$(cd / && "$PYTHON" -c 'import hyperpod_jlab.admin.lifecycle as it; print(it.__path__[0])' 2>/dev/null)/shell
  [[ $folder != /shell ]] || return
  for part in "${LATER[@]}"; do
    # shellcheck source=/dev/null
    source "$folder/$part.sh" || return
  done
  ready
}

work() {
  local name
  trap '' HUP
  umask 022
  # One at a time on this machine; what a run that was ended left behind is done again.
  exec 9>"$WORK/lock"
  flock -n 9 || exit 0
  WORST="done"
  find_mount
  write_status running
  for name in "${STEPS[@]}"; do
    step "$name"
    [[ $name != package ]] || load
  done
  write_status "$WORST"
  echo "== $(now) $WORST"
}

start() {
  local end=$((${EPOCHREALTIME/[.,]/} + 3500000))
  LOGS=$(state_folder) || return
  WORK=/tmp/hyperpod-jlab-$EUID-work STARTED=$(now)
  (umask 077 && mkdir -p "$WORK") && [[ -O $WORK && ! -L $WORK ]] || return
  rm -f "$WORK/packaged" "$WORK/new"
  # A group of its own: what ends the script's does not end the work.
  set -m
  work </dev/null >>"$LOGS/lifecycle.log" 2>&1 &
  set +m
  until [[ -e $WORK/packaged ]] || ((${EPOCHREALTIME/[.,]/} > end)); do sleep 0.1; done
  echo "hyperpod_jlab: see $LOGS/lifecycle.log"
}

start || echo "hyperpod_jlab: nothing was done: no folder can be written" >&2
exit 0
