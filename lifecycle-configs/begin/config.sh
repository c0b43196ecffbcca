# shellcheck shell=bash
# The machine's configuration file. The person's own, ~/.config/hyperpod-jlab/config.toml, is never touched and counts over it.

OURS="# Written by a lifecycle configuration at the start of the space. Put what you want otherwise into ~/.config/hyperpod-jlab/config.toml."
CONFIG=/etc/hyperpod-jlab/config.toml

configuration() {
  printf '%s\ndefault_cluster = "%s"\n\n[storage]\nshared = %s\n' "$OURS" "$CLUSTER" "$SHARED"
  if [[ -n $MOUNT ]]; then
    CLUSTER_TABLE=${CLUSTER_TABLE//@FOLDER@/$PART}
    printf 'path = "%s"\n\n%s' "$MOUNT" "${CLUSTER_TABLE//@SUB@/${PART#/}}"
  else
    printf '\n%s' "$CLUSTER_TABLE" | grep -v -e @FOLDER@ -e @SUB@
  fi
}

do_config() {
  if [[ -e $CONFIG && $(head -n 1 "$CONFIG") != "$OURS" ]]; then
    tell "$CONFIG is somebody else's, and stays as it is"
    return 2
  fi
  configuration >"$WORK/config.toml" || return
  if ! root install -D -m 644 "$WORK/config.toml" "$CONFIG.new" || ! root mv -f "$CONFIG.new" "$CONFIG"; then
    tell "$CONFIG cannot be written"
    return 1
  fi
  tell "$CLUSTER stands in $CONFIG"
}
