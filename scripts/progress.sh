# shellcheck shell=bash
# Progress lines for the other scripts; sourced, not run.

# step TITLE COMMAND...: say what begins, run it, say how long it took. A failure ends the script (set -e).
step() {
  local title=$1 begin=$SECONDS
  shift
  echo "==> $title"
  "$@"
  echo "    done in $((SECONDS - begin)) s"
}

# content_hash FILE...: one hash over the names and the content of files and folders; what is missing counts as empty.
content_hash() {
  local path
  for path in "$@"; do
    if [[ -e $path ]]; then
      find "$path" -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum
    fi
  done | sha256sum | cut -d ' ' -f 1
}

# stamped FILE HASH: whether the stamp says that this very content has been dealt with.
stamped() {
  [[ -f $1 && $(<"$1") == "$2" ]]
}
