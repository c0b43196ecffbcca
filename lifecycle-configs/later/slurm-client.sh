# shellcheck shell=bash
# Slurm's commands, as somebody built them before: nothing is compiled when a space starts.

# An archive is unpacked at / and may hold nothing outside of /opt/slurm; Debian packages are installed.
unpack() {
  local archive
  if archive=$(compgen -G "$WORK/client/*.tar.gz"); then
    if tar -tzf "$archive" | grep -E -v '^(\./)?opt/(slurm(/.*)?)?$' | grep -q -v '^\./$'; then
      tell "$SLURM_CLIENT holds more than opt/slurm, and was not unpacked"
      return 1
    fi
    root tar -xzf "$archive" -C / --no-same-owner
  else
    # Quickly: nothing is to outlive the container, and nobody reads manual pages in it.
    root env DEBIAN_FRONTEND=noninteractive dpkg --force-unsafe-io --no-triggers --path-exclude='/usr/share/man/*' \
      --path-exclude='/usr/share/doc/*' --install "$WORK"/client/*.deb && root ldconfig
  fi
}

client() {
  local mark=/opt/hyperpod-jlab/slurm.sha256
  if [[ -z $SLURM_CLIENT || $(cat "$mark" 2>/dev/null) == "$SLURM_CLIENT_SHA256" ]]; then return; fi
  rm -rf "$WORK/client"
  mkdir "$WORK/client" || return
  fetch "$SLURM_CLIENT" "$SLURM_CLIENT_SHA256" "$WORK/client" || return
  unpack || { [[ -s $WORK/message ]] || tell "$SLURM_CLIENT cannot be unpacked; see the log"; return 1; }
  root mkdir -p "${mark%/*}" && echo "$SLURM_CLIENT_SHA256" | root tee "$mark" >/dev/null
}

do_client() {
  if [[ -z $SLURM_CLIENT && $SLURM_AUTH == none ]]; then
    tell "no Slurm client was asked for"
    return 2
  fi
  client || return
  authenticate || return
  tell "Slurm's commands are in $SLURM_BIN, authentication: $SLURM_AUTH"
}
