#!/usr/bin/env bash
# Install Debian packages, if this is a Debian machine where we may. The package lists are read anew at most once a day.
set -euo pipefail

if ! command -v apt-get >/dev/null; then
  echo "missing on this machine, please install: $*" >&2
  exit 1
fi
sudo=()
if [[ $(id -u) != 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "missing on this machine, please have root run: apt-get install $*" >&2
    exit 1
  fi
  sudo=(sudo)
fi
# Another script of ours may be installing at the same time, and apt does not wait for all of its locks.
if command -v flock >/dev/null; then
  exec 9</var/lib/dpkg
  flock 9
fi
echo "    apt-get install $*"
options=(-qq -o DPkg::Lock::Timeout=300)
if [[ -z $(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' -mtime -1 -print -quit 2>/dev/null) ]]; then
  "${sudo[@]}" apt-get "${options[@]}" update
fi
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install -y --no-install-recommends "$@" >/dev/null
