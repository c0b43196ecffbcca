# shellcheck shell=bash disable=SC2015,SC2016,SC2028
# The configuration files of a testbed. Sourced by slurm-testbed.sh.

# The fake GPUs must be device files: plain ones are counted, but jobs get no CUDA_VISIBLE_DEVICES. Nothing opens them.
make_devices() {
  local i count=$GPUS kind entry
  for entry in $GRES_EXTRA; do
    IFS=: read -r kind _ <<<"$entry"
    [[ $kind != gpu ]] || count=$((count + ${entry##*:}))
  done
  for ((i = 0; i < count; i++)); do
    [[ -c $D/dev/nvidia$i ]] || mknod -m 666 "$D/dev/nvidia$i" c 195 "$i" ||
      die "mknod failed (is $D on a file system without device files?)"
  done
}

# gres_lines NODES: what these nodes have, for gres.conf.
gres_lines() {
  local entry kind type count next=$GPUS
  if [[ $GPUS -gt 0 ]]; then echo "NodeName=$1 Name=gpu Type=$GPU_TYPE File=$D/dev/nvidia[0-$((GPUS - 1))]"; fi
  for entry in $GRES_EXTRA; do
    split_gres "$entry"
    if [[ $kind == gpu ]]; then
      echo "NodeName=$1 Name=gpu Type=$type File=$D/dev/nvidia[$next-$((next + count - 1))]"
      next=$((next + count))
    else
      echo "NodeName=$1 Name=$kind ${type:+Type=$type }Count=$count"
    fi
  done
}

# split_gres NAME[:TYPE]:COUNT: into the caller's kind, type and count.
split_gres() {
  kind=${1%%:*} count=${1##*:} type=${1#*:}
  type=${type%"$count"}
  type=${type%:}
}

write_gres() {
  echo "AutoDetect=off"
  gres_lines "${PREFIX}[1-$NODES]"
  [[ $CLOUD == 0 ]] || gres_lines "cloud[1-$CLOUD]"
}

gres_types() {
  local entry names="gpu"
  for entry in $GRES_EXTRA; do
    [[ ,$names, == *",${entry%%:*},"* ]] || names=$names,${entry%%:*}
  done
  echo "$names"
}
node_gres() {
  local entry list=""
  [[ $GPUS -eq 0 ]] || list=gpu:$GPU_TYPE:$GPUS
  for entry in $GRES_EXTRA; do list=${list:+$list,}$entry; done
  [[ -z $list ]] || echo " Gres=$list"
}
accounted_gres() {
  local entry kind type count list="gres/gpu,gres/gpu:$GPU_TYPE"
  for entry in $GRES_EXTRA; do
    split_gres "$entry"
    [[ $kind == gpu ]] || list=$list,gres/$kind
    [[ -z $type ]] || list=$list,gres/$kind:$type
  done
  echo "$list"
}

# Why the unusual ones: a short cred_expire is also the wait of a requeued job; config_overrides lets a small machine play a
# large node; without DefMemPerCPU one small job fills a node; the scheduler's settings make jobs start at once.
slurm_basics() {
  cat <<EOF
ClusterName=$CLUSTER
SlurmctldHost=ctl($(address ctl))
SlurmctldPort=$((PORT_BASE + 17))
AuthType=auth/munge
AuthInfo=socket=$D/run/munge.socket,cred_expire=10
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$D/state
SlurmdSpoolDir=$D/spool/%n
SlurmctldPidFile=$D/run/slurmctld.pid
SlurmdPidFile=$D/run/slurmd-%n.pid
SlurmctldLogFile=$D/log/slurmctld.log
SlurmdLogFile=$D/log/slurmd-%n.log
SlurmctldDebug=info
SlurmdDebug=info
ProctrackType=proctrack/$PROCTRACK
TaskPlugin=task/$(if [[ $CONSTRAIN == 1 ]]; then echo cgroup; else echo none; fi)
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=5
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=$((MEM / CPUS))
GresTypes=$(gres_types)
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
MaxJobCount=50000
MaxArraySize=20001
MinJobAge=600
SlurmdTimeout=10
SlurmctldTimeout=10
BatchStartTimeout=15
KillWait=5
UnkillableStepTimeout=60
MessageTimeout=10
EOF
}

slurm_accounting() {
  if [[ $DBD == 1 ]]; then
    # Without AccountingStoragePass every command would look for the machine's own munge.
    cat <<EOF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$(address ctl)
AccountingStoragePort=$((PORT_BASE + 19))
AccountingStoragePass=$D/run/munge.socket
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=$(accounted_gres)
PriorityType=priority/multifactor
PriorityWeightQOS=10000
PriorityWeightAge=100
EOF
  else
    echo "AccountingStorageType=accounting_storage/none"
  fi
  if [[ $REST == 1 ]]; then jwt_lines; fi
}
jwt_lines() {
  echo "AuthAltTypes=auth/jwt"
  echo "AuthAltParameters=jwt_key=$D/etc/jwt.key"
}

slurm_modes() {
  if [[ $PREEMPT == 1 ]]; then
    echo "PreemptType=preempt/partition_prio"
    echo "PreemptMode=REQUEUE"
  fi
  if [[ $CLOUD -gt 0 ]]; then
    # PrivateData: or the nodes that are powered down do not show.
    cat <<EOF
SuspendProgram=$D/etc/suspend.sh
ResumeProgram=$D/etc/resume.sh
SuspendTime=3600
ResumeTimeout=60
SuspendTimeout=10
SlurmctldParameters=cloud_dns
PrivateData=cloud
EOF
    local what
    for what in resume suspend; do
      printf '#!/bin/sh\necho "$(date +%%s) %s $*" >>%s/log/power.log\n' "$what" "$D" >"$D/etc/$what.sh"
      chmod 755 "$D/etc/$what.sh"
    done
  fi
}

slurm_nodes() {
  local i port sockets=1 cores=$CPUS
  if ((CPUS % 2 == 0)); then sockets=2 cores=$((CPUS / 2)); fi
  echo "NodeName=DEFAULT CPUs=$CPUS Boards=1 SocketsPerBoard=$sockets CoresPerSocket=$cores ThreadsPerCore=1 RealMemory=$MEM$(node_gres)"
  for ((i = 1; i <= NODES; i++)); do
    port=$((PORT_BASE + 40 + i))
    [[ $NET != ns ]] || port=$((PORT_BASE + 18))
    echo "NodeName=$PREFIX$i NodeAddr=$(address "$PREFIX$i") Port=$port State=UNKNOWN"
  done
  [[ $CLOUD == 0 ]] || echo "NodeName=cloud[1-$CLOUD] State=CLOUD Port=$((PORT_BASE + 18))"
}

# partition NAME NODES [WORDS]: with what --partition-extra says of it.
partition() {
  local line="PartitionName=$1 Nodes=$2 State=UP${3:+ $3}" extra=""
  extra=$(sed -n "s/^$1=//p" <<<"$PARTITION_EXTRA" | paste -sd' ')
  [[ " $extra" == *" MaxTime="* ]] || line="$line MaxTime=INFINITE"
  echo "$line${extra:+ $extra}"
}
slurm_partitions() {
  local entry name range default words
  for entry in $PARTS; do
    IFS=: read -r name range default <<<"$entry"
    words=""
    [[ $default != default ]] || words=Default=YES
    partition "$name" "${PREFIX}[$range]" "$words"
  done
  [[ $PREEMPT == 0 ]] || partition high "${PREFIX}[1-$NODES]" "PriorityTier=10 PreemptMode=OFF"
  [[ $CLOUD == 0 ]] || partition cloud "cloud[1-$CLOUD]"
}

# with_options: standard input with the lines of --option in the place of those of the same name.
with_options() {
  local names
  names=$(cut -d= -f1 <<<"$OPTIONS" | grep . | paste -sd'|')
  if [[ -n $names ]]; then grep -viE "^($names)="; else cat; fi
  [[ -z $OPTIONS ]] || grep . <<<"$OPTIONS"
}

write_slurm_conf() {
  [[ -n $PARTS ]] || PARTS="dev:1-$NODES:default batch:$((NODES / 2 + 1))-$NODES"
  { { slurm_basics && slurm_accounting && slurm_modes; } | with_options
    slurm_nodes
    slurm_partitions
    [[ -z $INCLUDE ]] || cat "$INCLUDE"
  } >"$D/etc/slurm.conf.new" && mv "$D/etc/slurm.conf.new" "$D/etc/slurm.conf" || die "cannot write slurm.conf"
}

write_users() {
  local entry name id host
  { echo "127.0.0.1 localhost"; for host in $(hosts); do echo "$(address "$host") $host"; done; } >"$D/etc/hosts"
  install -d -m 700 "$D/home/root"
  # root has another home there, so that nothing comes into the machine's.
  sed "s|^\(root:[^:]*:0:0:[^:]*\):[^:]*:|\1:$D/home/root:|" /etc/passwd >"$D/etc/passwd"
  cp /etc/group "$D/etc/group"
  echo "root:*:19000:0:99999:7:::" >"$D/etc/shadow"
  for entry in $USERS; do
    IFS=: read -r name id <<<"$entry"
    [[ $name =~ ^[a-z][a-z0-9_-]*$ && $id =~ ^[0-9]+$ ]] || die "--users: NAME:UID, not $entry"
    ! grep -qE "^$name:|^[^:]*:[^:]*:$id:" "$D/etc/passwd" || die "--users: this machine has $name or $id already"
    echo "$name:x:$id:$id::$D/home/$name:/bin/bash" >>"$D/etc/passwd"
    echo "$name:x:$id:" >>"$D/etc/group"
    echo "$name:*:19000:0:99999:7:::" >>"$D/etc/shadow"
    install -d -m 700 -o "$id" -g "$id" "$D/home/$name"
  done
  chmod 644 "$D/etc/hosts" "$D/etc/passwd" "$D/etc/group"
  chmod 600 "$D/etc/shadow"
}

write_config() {
  [[ -f $D/etc/munge.key ]] || head -c 128 /dev/urandom >"$D/etc/munge.key"
  [[ -f $D/etc/jwt.key ]] || head -c 32 /dev/urandom >"$D/etc/jwt.key"
  chmod 600 "$D/etc/munge.key" "$D/etc/jwt.key"
  make_devices
  write_gres >"$D/etc/gres.conf"
  { echo "ConstrainCores=no"
    [[ $CONSTRAIN == 0 ]] || printf '%s\n' "ConstrainDevices=yes" "ConstrainRAMSpace=yes" "AllowedSwapSpace=0"
  } >"$D/etc/cgroup.conf"
  write_users
  write_slurm_conf
  [[ $DBD == 0 ]] || write_accounting_conf
  write_wrappers
  [[ $LOGINS == 0 ]] || write_ssh
  save_state
}

# Whether the machine's clients need DIR/bin: to enter --root, to know the names of --users, to be counted.
through_bin() { [[ -n $ROOT || -n $USERS || $COUNT_CALLS == 1 ]]; }

# DIR/bin: Slurm's commands, which count themselves (--count-calls) and, called on the machine itself, enter ctl. The file's
# name says which command it is. A newline in an argument is written as \n, so that a call is a line.
write_wrappers() {
  local name
  through_bin || return 0
  mkdir -p "$D/bin"
  { echo '#!/bin/bash'
    echo 'name=${0##*/}'
    if [[ $COUNT_CALLS == 1 ]]; then
      echo 'line=$EPOCHREALTIME$'"'\\x1f'"'$name'
      echo 'for word; do line+=$'"'\\x1f'"'${word//$'"'\\n'"'/\\n}; done'
      echo "printf '%s\\n' \"\$line\" >>$D/calls.log"
    fi
    echo 'read -r host </proc/sys/kernel/hostname'
    echo "case ' $(hosts | paste -sd' ') ' in *\" \$host \"*) exec /usr/bin/\"\$name\" \"\$@\" ;; esac"
    echo "export SLURM_CONF=$D/etc/slurm.conf"
    [[ -n $ROOT ]] || echo '[ "$(id -u)" = 0 ] || exec /usr/bin/"$name" "$@"'
    echo "pid=\$(<$D/run/host-ctl.pid) || exit"
    echo "exec nsenter -t \"\$pid\" ${ENTER[*]} --root=/proc/\$pid/root --wd=/proc/\$pid/root -- \\"
    echo "  /bin/bash -c 'cd -- \"\$0\" 2>/dev/null || cd /; exec /usr/bin/\"\$@\"' \"\$PWD\" \"\$name\" \"\$@\""
  } >"$D/bin/.wrapper"
  chmod 755 "$D/bin/.wrapper"
  for name in sacct sacctmgr salloc sattach sbatch sbcast scancel scontrol scrontab sdiag sinfo sprio squeue sreport srun \
    sshare sstat strigger; do
    ln -sf .wrapper "$D/bin/$name"
  done
  if [[ $COUNT_CALLS == 1 && ! -e $D/calls.log ]]; then install -m 666 /dev/null "$D/calls.log"; fi
}
