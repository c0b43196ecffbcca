# shellcheck shell=bash disable=SC2153
# The programs of a machine: each can be ended and started again by itself. Sourced inside a machine.

# run NAME CMD...: starts it, and leaves in components/ how to do it again and its number in this pid namespace.
run() {
  local name=$1 file=$M/components/$1
  shift
  mkdir -p "$M/components"
  {
    printf '%q ' setsid env -i "PATH=$PATH" "HOME=$M" LANG=C.UTF-8 "KUBERNETES_TESTBED=$D" "$@"
    printf '</dev/null >>%q 2>&1 &\n' "$D/log/$NAME-$name.log"
  } >"$file.command"
  # shellcheck disable=SC1090
  . "$file.command"
  echo $! >"$file.pid"
}

# import_image TAR: its image, which also gets the name by its digest that a registry's would have.
import_image() {
  local images=(ctr -a "$M/containerd.sock" -n k8s.io images) name digest
  "${images[@]}" import "$1" >/dev/null || return
  "${images[@]}" ls | while read -r name _ digest _; do
    [[ $name != localhost/testbed/*:* || $name == *@* ]] || "${images[@]}" tag --force "$name" "${name%:*}@$digest" >/dev/null || return
  done
}
