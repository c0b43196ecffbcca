# shellcheck shell=bash
# Accounting (MariaDB, slurmdbd) and REST of a testbed. Sourced by slurm-testbed.sh.

write_accounting_conf() {
  cat >"$D/etc/my.cnf" <<EOF
[mariadbd]
user=root
datadir=$D/mysql
socket=$D/run/mysql.sock
pid-file=$D/run/mariadbd.pid
log-error=$D/log/mariadb.log
skip-networking
skip-log-bin
innodb_buffer_pool_size=128M
innodb_log_file_size=64M
innodb_lock_wait_timeout=900
innodb_flush_log_at_trx_commit=0
EOF
  { cat <<EOF
DbdHost=localhost
DbdPort=$((PORT_BASE + 19))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$D/run/munge.socket
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
PidFile=$D/run/slurmdbd.pid
LogFile=$D/log/slurmdbd.log
DebugLevel=info
EOF
    [[ $REST == 0 ]] || jwt_lines
  } >"$D/etc/slurmdbd.conf"
  chmod 600 "$D/etc/slurmdbd.conf"
}

database_answers() { clean mariadb-admin --no-defaults -u root -S "$D/run/mysql.sock" ping; }

start_database() {
  if [[ ! -d $D/mysql/mysql ]]; then
    rm -rf "$D/mysql.tmp"
    clean mariadb-install-db --no-defaults --user=root --datadir="$D/mysql.tmp" --auth-root-authentication-method=normal \
      --skip-test-db --skip-name-resolve >"$D/log/mariadb-install.log" 2>&1 ||
      die "mariadb-install-db failed (see $D/log/mariadb-install.log)"
    mv "$D/mysql.tmp" "$D/mysql"
    rm -f "$D/state/clustername" # a cluster id that an earlier start without accounting chose
  fi
  if ! pid_of mariadbd >/dev/null; then
    # exec, so that no shell stays behind that holds the lock
    (exec "${CLEAN[@]}" setsid mariadbd --defaults-file="$D/etc/my.cnf" </dev/null >>"$D/log/mariadb.out" 2>&1) &
    wait_for "$TIMEOUT" "MariaDB" database_answers
  fi
}

start_accounting() {
  [[ $DBD == 1 ]] || return 0
  start_database || return 1
  if ! pid_of slurmdbd >/dev/null; then
    # libmariadb takes the socket of host "localhost" from MYSQL_UNIX_PORT
    on ctl env MYSQL_UNIX_PORT="$D/run/mysql.sock" slurmdbd || return 1
  fi
  wait_for "$TIMEOUT" "slurmdbd" client sacctmgr -n list cluster || return 1
  [[ -n $(client sacctmgr -nP list cluster "$CLUSTER" format=cluster) ]] || client sacctmgr -i add cluster "$CLUSTER" >/dev/null || return 1
}

# The accounts and QoS of the options; what is there already stays as it is. The controller must have been up: by it the
# database learns of the resources that limits may name.
add_accounts() {
  local entry name users done=$D/state/accounts words
  [[ $DBD == 1 ]] || return 0
  [[ "$ACCOUNTS/$QOS" != "$(cat "$done" 2>/dev/null)" && $ACCOUNTS$QOS ]] || return 0
  while read -r entry; do
    [[ -n $entry ]] || continue
    read -ra words <<<"$entry"
    quietly client sacctmgr -i add qos "${words[@]}" && quietly client sacctmgr -i modify cluster "$CLUSTER" set "qos+=${words[0]}" || return 1
  done <<<"$QOS"
  for entry in $ACCOUNTS; do
    IFS=: read -r name users <<<"$entry"
    quietly client sacctmgr -i add account "$name" "Description=$name" "Organization=testbed" || return 1
    [[ -z $users ]] || quietly client sacctmgr -i add user "$users" "account=$name" || return 1
  done
  echo "$ACCOUNTS/$QOS" >"$done"
}

# quietly CMD...: its words only when it fails; "Nothing new added" is no failure.
quietly() {
  local words
  words=$("$@" 2>&1) || [[ $words == *"othing new added"* ]] || { echo "$words" >&2; return 1; }
}

start_rest() {
  [[ $REST == 1 ]] || return 0
  pid_of slurmrestd >/dev/null && return 0
  # Never as root or SlurmUser; SLURM_JWT=daemon makes it use JWT towards slurmctld.
  # shellcheck disable=SC2016
  (
    cd / && exec 7>&- 9>&- </dev/null >>"$D/log/slurmrestd.log" 2>&1
    on ctl env SLURM_JWT=daemon bash -c '
      setsid bash -c "echo \$\$ >$2; exec setpriv --reuid=nobody --regid=nogroup --clear-groups slurmrestd -a rest_auth/jwt 127.0.0.1:$1" & disown' \
      _ $((PORT_BASE + 20)) "$D/run/slurmrestd.pid"
  )
  wait_for "$TIMEOUT" "slurmrestd" client bash -c "exec 3<>/dev/tcp/127.0.0.1/$((PORT_BASE + 20))"
}
