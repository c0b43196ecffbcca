# shellcheck shell=bash
# A token of the person's own. Each command reads it anew, so that a renewed one counts at once; it stands in no configuration and in nobody's environment.
#
# With a token the controller takes a job only from a process that has the numbers of the token's user; Studio's are 1000:100. Beside the token TOKEN.id
# says which they are there, as in 1000:1000, and the commands run with them.

# wrapper TOKEN COMMAND
wrapper() {
  # shellcheck disable=SC2016
  printf '#!/bin/bash\ntoken=%q\nexport SLURM_CONF=%q SLURM_JWT\nSLURM_JWT=$(<"$token")\nset -- %q "$@"\n' "$1" "$SLURM_CONF" "$2"
  # shellcheck disable=SC2016
  printf '%s\n' \
    'ids=$(cat "$token.id" 2>/dev/null)' \
    'if [[ $ids =~ ^([0-9]+):([0-9]+)$ && $ids != "$(id -u):$(id -g)" ]]; then' \
    '  exec sudo -n -E setpriv --reuid="${BASH_REMATCH[1]}" --regid="${BASH_REMATCH[2]}" --clear-groups -- "$@"' \
    'fi' \
    'exec "$@"'
}

authenticate() {
  local bin=/opt/hyperpod-jlab/slurm token command
  token=$(place "$SLURM_TOKEN")
  if [[ -z $token ]]; then tell "no partition is mounted, which $SLURM_TOKEN is to be on"; return 1; fi
  root mkdir -p "$bin" || return
  for command in sbatch squeue sinfo sacct scancel scontrol sacctmgr sprio sreport sshare sstat; do
    [[ -x $SLURM_BIN/$command ]] || continue
    wrapper "$token" "$SLURM_BIN/$command" >"$WORK/wrapper"
    root install -m 755 "$WORK/wrapper" "$bin/$command" || return
  done
  if [[ ! -r $token ]]; then tell "the token $token cannot be read yet: somebody on the cluster has to write it"; return 1; fi
}
