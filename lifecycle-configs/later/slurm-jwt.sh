# shellcheck shell=bash
# A token of the person's own. Each command reads it anew, so that a renewed one counts at once; it stands in no configuration and no environment.

authenticate() {
  local bin=/opt/hyperpod-jlab/slurm token command
  token=$(place "$SLURM_TOKEN")
  if [[ -z $token ]]; then tell "no partition is mounted, which $SLURM_TOKEN is to be on"; return 1; fi
  root mkdir -p "$bin" || return
  for command in sbatch squeue sinfo sacct scancel scontrol sacctmgr sprio sreport sshare sstat; do
    [[ -x $SLURM_BIN/$command ]] || continue
    # shellcheck disable=SC2016
    printf '#!/bin/bash\nSLURM_JWT=$(<%q) SLURM_CONF=%q exec %q "$@"\n' "$token" "$SLURM_CONF" "$SLURM_BIN/$command" >"$WORK/wrapper"
    root install -m 755 "$WORK/wrapper" "$bin/$command" || return
  done
  if [[ ! -r $token ]]; then tell "the token $token cannot be read yet: somebody on the cluster has to write it"; return 1; fi
}
