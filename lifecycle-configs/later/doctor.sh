# shellcheck shell=bash
# Whether it works: hpj doctor, whose whole answer goes into the log.

do_doctor() {
  local code=0 hpj
  hpj=$(dirname "$PYTHON")/hpj
  if [[ ! -x $hpj ]]; then tell "hyperpod_jlab is not installed"; return 2; fi
  AWS_REGION=${AWS_REGION:-$REGION} timeout 60 "$hpj" doctor --cluster "$CLUSTER" || code=$?
  case $code in
    0) tell "all is well" ;;
    124) tell "hpj doctor did not end in 60 s" && return 1 ;;
    *) tell "not all is well: hpj doctor --cluster $CLUSTER" && return 1 ;;
  esac
}
