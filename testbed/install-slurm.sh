#!/usr/bin/env bash
# Install what the Slurm testbed needs on this Debian machine. Running it again costs nothing.
#
#   testbed/install-slurm.sh                  Debian's packages: Slurm, munge, MariaDB, sshd, faketime
#   testbed/install-slurm.sh --trixie [DIR]   and Slurm 24.11, a Debian 13 in a folder of its own
#                                             (default: $XDG_CACHE_HOME/hyperpod-jlab/slurm-24.11)
#   testbed/install-slurm.sh --check [DIR]    install nothing; exit 0 when all (DIR too, if given) is there
#
# No daemon is started: neither by the packages nor by us.
set -euo pipefail
# shellcheck source=testbed/packages.sh
source "$(dirname "$(readlink -f "$0")")/packages.sh"
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

readonly PACKAGES=(slurmctld slurmd slurm-client slurmdbd munge mariadb-server mariadb-client openssh-server openssh-client
  faketime debootstrap iproute2 util-linux procps python3 sudo)
readonly TRIXIE_PACKAGES=(slurmctld slurmd slurm-client slurmdbd slurm-wlm-mysql-plugin openssh-server python3)
readonly STAMP=.hyperpod-testbed
readonly DEFAULT_ROOT=${XDG_CACHE_HOME:-$HOME/.cache}/hyperpod-jlab/slurm-24.11

# A root is complete when its stamp says what would be installed now: it is written last, before the folder gets its name.
complete() { [[ -f $1/$STAMP && $(<"$1/$STAMP") == "${TRIXIE_PACKAGES[*]}" ]]; }

install_trixie() {
  local root=$1 work
  complete "$root" && return 0
  if [[ -f $root/$STAMP ]]; then
    echo "    $root was made by an earlier version of this script: anew"
    rm -rf --one-file-system "$root"
  fi
  [[ ! -e $root ]] || { echo "$root is there and is not what this script made" >&2; return 1; }
  mkdir -p "$(dirname "$root")"
  rm -rf --one-file-system "$root".?????? "$root".??????.log # what an interrupted one left; two at a time there are not
  work=$(mktemp -d "$root.XXXXXX")
  # Nobody but root could enter what mktemp makes, which would be the root folder of all users in there.
  chmod 755 "$work"
  echo "    debootstrap of Debian 13 with Slurm 24.11 into $root (a minute)"
  if ! make_root "$work" >"$work.log" 2>&1; then
    tail -n 20 "$work.log" >&2
    rm -rf --one-file-system "$work" "$work.log"
    return 1
  fi
  rm -f "$work.log"
  mv --no-target-directory "$work" "$root"
}

# In namespaces of its own: however it ends, nothing stays mounted, and nothing goes on writing there when this script is killed.
# shellcheck disable=SC2016
make_root() {
  setpriv --pdeathsig KILL unshare --mount --propagation private --pid --mount-proc --kill-child bash -eu -c '
    root=$1 stamp=$2
    shift 2
    debootstrap --variant=minbase --include=ca-certificates,libfaketime trixie "$root"
    printf "#!/bin/sh\nexit 101\n" >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
    mountpoint -q "$root/proc" || mount --rbind /proc "$root/proc"
    mount --rbind /dev "$root/dev"
    chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
    chroot "$root" apt-get clean
    touch "$root/etc/hosts"
    echo "$*" >"$root/$stamp"' _ "$1" "$STAMP" "${TRIXIE_PACKAGES[@]}"
}

main() {
  local trixie="" check=false lacking
  case ${1-} in
    "") ;;
    --trixie) trixie=${2:-$DEFAULT_ROOT} ;;
    --check)
      check=true
      trixie=${2-}
      ;;
    *)
      sed -n '2,/^set -eu/{/^#/s/^# \{0,1\}//p}' "$0"
      exit 2
      ;;
  esac
  mapfile -t lacking < <(missing "${PACKAGES[@]}")
  if $check; then
    [[ ${#lacking[@]} == 0 ]] || { echo "not installed: ${lacking[*]}" >&2; exit 1; }
    [[ -z $trixie ]] || complete "$trixie" || { echo "no Slurm 24.11 in $trixie" >&2; exit 1; }
    return 0
  fi
  if ((${#lacking[@]})) || { [[ -n $trixie ]] && ! complete "$trixie"; }; then
    can_install "${lacking[@]-}"
    one_at_a_time
    install_packages "${PACKAGES[@]}" 9>&-
    [[ -z $trixie ]] || install_trixie "$trixie" # all of it holds the place, and no daemon is left that would keep it
  fi
}

main "$@"
