# shellcheck shell=bash
# Debian's packages, without the daemons that they would start. Sourced by the install scripts.

readonly POLICY=/usr/sbin/policy-rc.d

# missing PACKAGE...: those that are not installed.
missing() {
  local package
  for package; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

# Packages whose scripts ask FILE before they start a daemon are told not to.
forbid_daemons() {
  printf '#!/bin/sh\nexit 101\n' >"$1"
  chmod 755 "$1"
}

# can_install PACKAGE...: whether we may; says why not.
can_install() {
  command -v apt-get >/dev/null || { echo "not a Debian machine: cannot install $*" >&2; return 1; }
  [[ $(id -u) == 0 ]] || { echo "not root: cannot install $*" >&2; return 1; }
}

# one_at_a_time: waits until no other script of ours installs; file descriptor 9 holds the place.
one_at_a_time() {
  exec 9</var/lib/dpkg
  flock 9
}

# install_packages PACKAGE...: what is missing of them. In a subshell, so that the policy of before comes back however it ends.
install_packages() (
  mapfile -t lacking < <(missing "$@")
  ((${#lacking[@]})) || return 0
  echo "    apt-get install ${lacking[*]}" >&2
  saved=""
  if [[ -e $POLICY ]]; then
    saved=$(mktemp)
    cp -p "$POLICY" "$saved"
  fi
  trap 'if [[ -n $saved ]]; then mv "$saved" "$POLICY"; else rm -f "$POLICY"; fi' EXIT
  trap 'exit 130' INT TERM HUP
  forbid_daemons "$POLICY"
  if [[ -z $(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' -mtime -1 -print -quit 2>/dev/null) ]]; then
    apt-get -qq -o DPkg::Lock::Timeout=300 update
  fi
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${lacking[@]}" >/dev/null
)
