# shellcheck shell=bash
# Munge with the cluster's key. Whoever has the key can pass for any user of the cluster: with sudo in a space that is everybody who has this script.

# The key's bytes, never into the log.
read_key() {
  if [[ $MUNGE_KEY == secret:* ]]; then
    local form
    for form in SecretBinary SecretString; do
      aws secretsmanager get-secret-value --region "$REGION" --secret-id "${MUNGE_KEY#secret:}" --query "$form" --output text >"$1" || return
      if [[ $(<"$1") != None ]]; then break; fi
    done
    base64 -d <"$1" >"$1.raw" && mv "$1.raw" "$1"
  else
    copy "$(place "$MUNGE_KEY")" "$1"
  fi
}

authenticate() {
  local key=$WORK/munge code=0
  if ! command -v munged >/dev/null; then tell "this image has no munged: let the Slurm client's packages bring it"; return 1; fi
  (umask 077 && read_key "$key") || { rm -f "$key"*; tell "the munge key cannot be read"; return 1; }
  if ! has "$key" "$MUNGE_KEY_SHA256"; then code=1; else
    id munge >/dev/null 2>&1 || root useradd --system --no-create-home --shell /usr/sbin/nologin munge
    root install -d -o munge -g munge -m 700 /etc/munge /var/lib/munge /var/log/munge
    root install -d -o munge -g munge -m 755 /run/munge
    root install -o munge -g munge -m 400 "$key" /etc/munge/munge.key
  fi
  rm -f "$key"*
  if ((code)); then tell "the munge key does not have the SHA-256 that was set, and is not used"; return 1; fi
  if munge -n | unmunge >/dev/null 2>&1; then return 0; fi
  root runuser -u munge -- munged 9>&- || { tell "munged does not start; see /var/log/munge"; return 1; }
}
