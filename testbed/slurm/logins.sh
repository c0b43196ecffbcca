# shellcheck shell=bash
# Login nodes of a testbed: a real sshd for each, in its host's namespaces. Sourced by slurm-testbed.sh.

new_key() { rm -f "$1" "$1.pub" && ssh-keygen -q -t ed25519 -N "" -C "$2" -f "$1"; }

# Keys are made once; the configuration anew at each start, because the ports may be others.
write_ssh() {
  local host
  mkdir -p "$D/ssh"
  [[ -f $D/ssh/id_ed25519 ]] || new_key "$D/ssh/id_ed25519" testbed || die "ssh-keygen failed"
  cp "$D/ssh/id_ed25519.pub" "$D/ssh/authorized_keys"
  for host in $(logins); do
    mkdir -p "$D/ssh/$host"
    [[ -f $D/ssh/$host/host_key ]] || new_key "$D/ssh/$host/host_key" "$host" || die "ssh-keygen failed"
    [[ -f $D/ssh/$host/first_host_key ]] || cp -p "$D/ssh/$host/host_key" "$D/ssh/$host/first_host_key"
    [[ -f $D/ssh/$host/first_host_key.pub ]] || cp -p "$D/ssh/$host/host_key.pub" "$D/ssh/$host/first_host_key.pub"
    write_sshd_config "$host" >"$D/ssh/$host/sshd_config"
  done
  for host in $(logins); do
    echo "[$(address "$host")]:$(login_port "$host") $(cut -d' ' -f1,2 "$D/ssh/$host/first_host_key.pub")"
  done >"$D/ssh/known_hosts"
  write_ssh_config >"$D/ssh/config"
}

write_sshd_config() {
  local path=/usr/local/bin:/usr/bin:/bin
  [[ $COUNT_CALLS == 0 ]] || path=$D/bin:$path
  cat <<EOF
ListenAddress $(address "$1")
Port $(login_port "$1")
HostKey $D/ssh/$1/host_key
PidFile $D/run/sshd-$1.pid
AuthorizedKeysFile $D/ssh/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UseDNS no
PrintMotd no
PrintLastLog no
MaxStartups 200
MaxSessions 100
Subsystem sftp internal-sftp
SetEnv SLURM_CONF=$(conf) PATH=$path
EOF
}

# For ssh -F, from this machine; the user is root unless the command says another.
write_ssh_config() {
  local host
  for host in $(logins); do
    cat <<EOF
Host $host
  HostName $(address "$host")
  Port $(login_port "$host")
EOF
  done
  cat <<EOF
Host *
  IdentityFile $D/ssh/id_ed25519
  IdentitiesOnly yes
  UserKnownHostsFile $D/ssh/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
EOF
}

start_sshd() {
  pid_of "sshd-$1" >/dev/null && return 0
  rm -f "$D/run/sshd-$1.pid"
  on "$1" /usr/sbin/sshd -f "$D/ssh/$1/sshd_config" -E "$D/log/sshd-$1.log" || return 1
  wait_for 10 "sshd of $1" pid_of "sshd-$1"
}

# login_signal LOGIN SIGNAL: to the sshd and all sessions
login_signal() { host_pids "$1" | kill_ours "$2"; }

# A new host key; the sessions that are open stay.
login_rekey() {
  local folder=$D/ssh/$1 pid
  if [[ ${2-} == --back ]]; then
    cp -p "$folder/first_host_key" "$folder/host_key"
    cp -p "$folder/first_host_key.pub" "$folder/host_key.pub"
  else
    new_key "$folder/host_key" "$1" || die "ssh-keygen failed"
  fi
  pid=$(pid_of "sshd-$1") && kill -HUP "$pid" && sleep 0.1
  wait_for 10 "sshd of $1" bash -c "exec 3<>/dev/tcp/$(address "$1")/$(login_port "$1")"
}
