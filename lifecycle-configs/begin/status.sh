# shellcheck shell=bash disable=SC2034
# What is being done: a log for people, and lifecycle.json for the panel. Its form stands in lifecycle-configs/README.md.

HOME=${HOME:-/home/sagemaker-user}
PYTHON=/opt/conda/bin/python3
[[ -x $PYTHON ]] || PYTHON=$(type -P python3)
declare -A STATE MESSAGE

# The folder of log and status: the person's own, else (a home that cannot be written, or is full) one that is ours alone below /tmp.
state_folder() {
  local folder room
  for folder in "${XDG_STATE_HOME:-$HOME/.local/state}/hyperpod-jlab" "/tmp/hyperpod-jlab-$EUID"; do
    room=$folder/.room.$$
    if (umask 077 && mkdir -p "$folder" && [[ -O $folder ]] && head -c 65536 /dev/zero >"$room" && : >>"$folder/lifecycle.log") 2>/dev/null; then
      rm "$room"
      echo "$folder"
      return
    fi
    rm -f "$room" 2>/dev/null
  done
  return 1
}

now() { date -u +%FT%TZ; }

in_json() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "${text//[[:cntrl:]]/ }"
}

# write_status STATE: in one step, so that nobody reads half of it. A full disk loses the status, and nothing else.
write_status() {
  local name between="" new="$LOGS/.lifecycle.json.$BASHPID"
  {
    printf '{"version":1,"app":"%s","state":"%s","started":"%s","updated":"%s","log":' "$APP" "$1" "$STARTED" "$(now)"
    in_json "$LOGS/lifecycle.log"
    printf ',"steps":['
    for name in "${STEPS[@]}"; do
      printf '%s{"name":"%s","state":"%s","message":' "$between" "$name" "${STATE[$name]:-waiting}"
      in_json "${MESSAGE[$name]:-}"
      printf '}'
      between=,
    done
    printf ']}\n'
  } >"$new" || { rm -f "$new"; return; }
  mv -f "$new" "$LOGS/lifecycle.json"
}

# tell WORDS...: what the step's line says in the end.
tell() { echo "$*" | tee "$WORK/message"; }

# step NAME: do it in a shell of its own; 0 is done, 2 is skipped, all else has failed and keeps nothing from going on.
step() {
  local name=$1 code=0
  STATE[$name]=running
  write_status running
  echo "== $(now) $name"
  : >"$WORK/message"
  if declare -F "do_$name" >/dev/null; then ("do_$name") || code=$?; else
    tell "hyperpod_jlab is not installed, and brings what this step does"
    code=2
  fi
  case $code in
    0) STATE[$name]="done" ;;
    2) STATE[$name]=skipped ;;
    *) STATE[$name]=failed WORST=failed ;;
  esac
  MESSAGE[$name]=$(<"$WORK/message")
  if [[ $code != [02] && -z ${MESSAGE[$name]} ]]; then MESSAGE[$name]="it ended with $code; see the log"; fi
  write_status running
}
