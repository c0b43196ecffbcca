#!/bin/bash
# On one machine of a Slurm cluster that mounts the whole file system (the controller): hpj, and a timer that wires new profiles of Studio and makes their
# folders. Run again it changes what is there to what is said now.
#
# install.sh --domain d-... --cluster NAME|--file-system fs-... --partition-mode shared|per-user --region REGION --package WHEEL|FOLDER|hyperpod-jlab==VERSION
#            [--sha256 HEX] [--mounted-at /fsx] [--shared-path /shared] [--cluster-user UID|NAME|none] [--python PATH]
# install.sh --remove
#
# FOLDER is one of make-package.sh --all, and --sha256 what that has printed; of a WHEEL it is the file's own. Python 3.11 or newer is needed, which the images of
# HyperPod do not all have (Ubuntu 22.04: apt-get install python3.11-venv).
set -euo pipefail

readonly HERE=${BASH_SOURCE%/*} UNITS=/etc/systemd/system NAME=hyperpod-jlab-wiring
readonly VENV=/opt/hyperpod-jlab/venv ENVIRONMENT=/etc/hyperpod-jlab/wiring.env
work=""
declare -A given=([mounted-at]=/fsx [shared-path]=/shared [sha256]="" [python]="" [cluster]="" [file-system]="" [cluster-user]="")

die() {
  echo "install.sh: $*" >&2
  exit 2
}

# systemd COMMAND...: where it runs.
systemd() {
  if [[ -d /run/systemd/system ]]; then systemctl "$@"; else echo "systemd does not run here: not done: systemctl $*" >&2; fi
}

remove() {
  systemd disable --now "$NAME.timer" || true
  rm -f "$UNITS/$NAME.service" "$UNITS/$NAME.timer" "$ENVIRONMENT"
  rm -rf /opt/hyperpod-jlab/venv /var/lib/hyperpod-jlab
  systemd daemon-reload
  echo "removed; folders and what profiles mount stay: 'hpj admin destroy' takes that back"
}

read_options() {
  local name
  while (($#)); do
    name=${1#--}
    case $1 in
      --domain | --cluster | --file-system | --partition-mode | --region | --package | --sha256 | --mounted-at | --shared-path | --cluster-user | --python)
        (($# > 1)) || die "$1 needs a value"
        given[$name]=$2
        shift 2
        ;;
      *) die "unknown: $1" ;;
    esac
  done
  for name in domain partition-mode region package; do
    [[ -n ${given[$name]:-} ]] || die "--$name is missing"
  done
  given[which]=cluster
  [[ -z ${given[file-system]} ]] || given[which]="file-system"
  # They are read by systemd, which has quotes and variables of its own.
  for name in domain "${given[which]}" partition-mode region mounted-at shared-path; do
    [[ ${given[$name]} =~ ^[A-Za-z0-9/][A-Za-z0-9._/-]*$ ]] || die "--$name: '${given[$name]}' cannot be used"
  done
  [[ -z ${given[cluster-user]} || ${given[cluster-user]} =~ ^[a-z0-9_][a-z0-9_-]*$ ]] || die "--cluster-user: '${given[cluster-user]}' cannot be used"
  [[ ${given[partition-mode]} == shared || ${given[partition-mode]} == per-user ]] || die "--partition-mode is shared or per-user"
  mountpoint -q "${given[mounted-at]}" || die "nothing is mounted at ${given[mounted-at]}"
}

find_python() {
  local python
  for python in ${given[python]:-python3.14 python3.13 python3.12 python3.11 python3}; do
    if "$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  die "no Python 3.11 or newer with venv is here: apt-get install python3.11-venv, or name one with --python"
}

check() {
  [[ $(sha256sum <"$1") == "${given[sha256]}  -" ]] || die "$2 does not have the SHA-256 that was given: nothing is installed"
}

# take FROM TO: users may put a pipe or a file without end there.
take() { [[ -f $1 ]] && (ulimit -f 2097152 && cp "$1" "$2"); }

# copy_folder FOLDER TO: what its list names, and nothing that lies beside it.
copy_folder() {
  local name
  take "$1/SHA256SUMS" "$2/" || die "$1/SHA256SUMS cannot be read"
  check "$2/SHA256SUMS" "$1/SHA256SUMS"
  while read -r _ name; do
    name=${name#\*}
    [[ $name != */* && $name != .* ]] || die "$1/SHA256SUMS names $name, which is no file beside it"
    take "$1/$name" "$2/" || die "$1/$name cannot be read"
  done <"$2/SHA256SUMS"
  (cd "$2" && sha256sum --check --strict --quiet SHA256SUMS) || die "a file of $1 is not the one in its SHA256SUMS"
}

# Users may write to where the package lies. So it is copied to where only root can before it is checked, and installed from there.
install_package() {
  local what=${given[package]} pip=("$VENV/bin/python" -m pip install --quiet --disable-pip-version-check)
  local wheel
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  if [[ -d $what ]]; then
    copy_folder "$what" "$work"
    wheel=$(compgen -G "$work/hyperpod_jlab-*.whl") || die "$what has no wheel of hyperpod_jlab"
    pip+=(--no-index --find-links "$work" "${wheel}[aws]")
  elif [[ -f $what ]]; then
    take "$what" "$work/" || die "$what cannot be read"
    check "$work/${what##*/}" "$what"
    pip+=("$work/${what##*/}[aws]")
  elif [[ $what =~ ^hyperpod[-_]jlab==[0-9][0-9A-Za-z.]*$ ]]; then
    [[ -z ${given[sha256]} ]] || die "--sha256 is of a WHEEL or a FOLDER: of the package index nothing is checked"
    pip+=("hyperpod_jlab[aws]==${what#*==}")
  else
    die "--package: there is no $what"
  fi
  "$1" -m venv --clear "$VENV"
  "${pip[@]}"
}

write_units() {
  local file
  mkdir -p "$UNITS" "${ENVIRONMENT%/*}"
  {
    printf 'DOMAIN=%s\nREGION=%s\nWHICH=--%s %s\n' "${given[domain]}" "${given[region]}" "${given[which]}" "${given[${given[which]}]}"
    printf 'PARTITION_MODE=%s\nSHARED_PATH=%s\nMOUNTED_AT=%s\n' "${given[partition-mode]}" "${given[shared-path]}" "${given[mounted-at]}"
    printf 'CLUSTER_USER=%s\n' "${given[cluster-user]:+--cluster-user ${given[cluster-user]}}"
  } >"$ENVIRONMENT"
  for file in "$NAME.service" "$NAME.timer"; do
    sed "s|@MOUNTED_AT@|${given[mounted-at]}|g" "$HERE/$file" >"$UNITS/$file"
  done
}

main() {
  local python
  ((EUID == 0)) || die "it has to be root"
  if [[ ${1:-} == --remove ]]; then
    remove
    return
  fi
  read_options "$@"
  python=$(find_python)
  install_package "$python"
  write_units
  systemd daemon-reload
  systemd enable --now "$NAME.timer"
  echo "installed: systemctl status $NAME.timer; journalctl -u $NAME"
}

main "$@"
