# shellcheck shell=bash disable=SC2015,SC2016,SC2153
# Hosts of a testbed: each is a set of namespaces (name, mounts, network), held by a process that sleeps. Sourced by slurm-testbed.sh.
#
# All have a root folder of their own (a tmpfs in which the machine's folders, or those of --root, are bound), an /etc of
# their own (users, host names), and see everything else as the machine does. The mounts are private: they end with the hosts.
# Jobs of root may use the machine's devices, and put nothing in their place.

ENTER=(--uts --mount)
[[ $NET != ns ]] || ENTER+=(--net)

CLEAN=(env -i "PATH=$PATH" LANG=C.UTF-8 "SLURM_CONF=$D/etc/slurm.conf" "SLURM_TESTBED=$D")
clean() { "${CLEAN[@]}" "$@"; }

# on HOST CMD...: as a daemon of that host is run.
on() {
  local pid
  pid=$(pid_of "host-$1") || { say "host $1 does not run"; return 1; }
  shift
  clean nsenter -t "$pid" "${ENTER[@]}" "--root=/proc/$pid/root" "--wd=/proc/$pid/root" -- "$@"
}

# client CMD...: a Slurm command, for our own questions.
client() { on ctl "$@"; }

# reachable PATH: whether everyone may go there.
reachable() {
  local path=$1
  while [[ $path != / ]]; do
    [[ $(stat -c %A "$path") == *[xt] ]] || return 1
    path=${path%/*}
    path=${path:-/}
  done
}

# The first parts of paths that take the place of a folder of the same name, instead of showing it.
hidden_tops() {
  local path top
  while read -r path; do
    [[ -n $path ]] || continue
    top=${path#/}
    top=${top%%/*}
    if [[ -z $ROOT ]]; then
      reachable "$path" || echo "$top"
    elif [[ ! -d $ROOT$path && " root home opt srv mnt media " == *" $top "* ]]; then
      echo "$top"
    fi
  done <<<"$BINDS"
}

# The paths that must be bound one by one: all with another root; else those in folders that are hidden for them.
bound_paths() {
  local path hidden
  hidden=" $(hidden_tops | tr '\n' ' ') "
  { echo "$BINDS"; echo "$D"; mount_sources; [[ -z $ROOT ]] || printf '%s\n' /proc /sys /dev /tmp; } | while read -r path; do
    [[ -n $path ]] || continue
    local top=${path#/}
    if [[ -n $ROOT || $hidden == *" ${top%%/*} "* ]]; then echo "$path"; fi
  done
}

mount_sources() { cut -d: -f1 <<<"$MOUNTS"; }

check_mounts() {
  local source target only top
  while IFS=: read -r source target only; do
    [[ -n $source ]] || continue
    [[ -d $source ]] || die "--mount: no folder $source"
    [[ $target == /?* ]] || die "--mount: SRC:DST[:NODES] with absolute paths"
    [[ $D/ != "$source"/* ]] || die "--mount: $D must not lie in $source"
    top=${target#/}
    [[ -d $ROOT$target || ! -e $ROOT/${top%%/*} ]] || die "--mount: /${top%%/*} is there already; choose another place than $target"
  done <<<"$MOUNTS"
}

# The root folder, in the namespace from which all hosts' are made. Arguments: folder, --root or nothing, cgroup's name, the
# hidden names, then the paths to bind.
readonly MAKE_ROOT='set -e
d=$1 from=$2 group=$3 hidden=$4 new=$1/root
shift 4
for p in /sys/fs/cgroup/*/"$group"; do [ ! -d "$p" ] || mount --bind "$p" "${p%/*}"; done
mount -t tmpfs -o mode=755,size=512m testbed "$new"
mount --make-unbindable "$new"
for p in "$from"/* "$from"/.[!.]*; do
  name=${p##*/}
  case $name in etc) cp -a "$p" "$new/etc"; continue ;; esac
  if [ -n "$from" ]; then case $name in proc|sys|dev|tmp) continue ;; esac; fi
  case " $hidden " in *" $name "*) mkdir "$new/$name"; continue ;; esac
  if [ -L "$p" ]; then cp -P "$p" "$new/"
  elif [ -d "$p" ]; then mkdir "$new/$name"; mount --rbind "$p" "$new/$name"
  elif [ -f "$p" ]; then touch "$new/$name"; mount --bind "$p" "$new/$name"; fi
done
for p; do
  if [ -f "$p" ]; then mkdir -p "$new${p%/*}"; touch "$new$p"; else mkdir -p "$new$p"; fi
  mount --rbind "$p" "$new$p"
done
mount -o remount,bind,ro "$new/dev"
for p in hosts passwd group shadow; do rm -f "$new/etc/$p"; cp -p "$d/etc/$p" "$new/etc/$p"; done
: >"$new/etc/ld.so.preload"
: >"$new/etc/faketimerc"
exec chroot "$new" bash -c "echo \$\$ >$d/run/host-base.pid; exec sleep infinity"'

# A host: its name, the shared folders (FROM:TO), for a login node a /run in which sshd may have its folder.
readonly MAKE_HOST='set -e
d=$1 host=$2 kind=$3
shift 3
hostname "$host"
for p; do
  from=${p%%:*} to=${p#*:}
  if [ -n "$to" ]; then mkdir -p "$to"; mount --rbind "$from" "$to"; fi
  [ ! -d "$from" ] || mount -t tmpfs -o mode=755,size=4k,ro hidden "$from"
done
if [ "$kind" = login ]; then mount -t tmpfs -o mode=755,size=4m run /run; mkdir /run/sshd; fi
echo $$ >"$d/run/host-$host.pid"
exec sleep infinity'

# mounts_of HOST: FROM:TO lines; an empty TO where the host does not have the folder.
mounts_of() {
  local source target only
  [[ $1 != ctl ]] || return 0
  while IFS=: read -r source target only; do
    [[ -n $source ]] || continue
    if is_login "$1" || [[ -z $only || ",$only," == *",$1,"* ]]; then echo "$source:$target"; else echo "$source:"; fi
  done <<<"$MOUNTS"
}

# hold NAME CMD...: start a process that holds namespaces, in the background, and wait until it has said who it is.
hold() {
  local name=$1 i
  shift
  pid_of "host-$name" >/dev/null && return 0
  rm -f "$D/run/host-$name.pid"
  (
    [[ $name == base ]] || exec 7>&-
    exec "${CLEAN[@]}" setsid "$@" 9>&- </dev/null >>"$D/log/hosts.log" 2>&1
  ) &
  for ((i = 0; i < 1000; i++)); do
    [[ ! -s $D/run/host-$name.pid ]] || return 0
    sleep 0.01
    kill -0 $! 2>/dev/null || break
  done
  [[ -s $D/run/host-$name.pid ]] || { say "host $name did not start"; return 1; }
}

hosts_up() {
  local host kind base net mounts bound
  mkdir -p "$D/root"
  mapfile -t bound < <(bound_paths)
  hold base unshare --uts --mount --propagation private bash -c "$MAKE_ROOT" _ "$D" "$ROOT" "$(cgroup_name)" \
    "$(hidden_tops | tr '\n' ' ')" ${bound[@]+"${bound[@]}"} || return 1
  base=$(pid_of host-base) || return 1
  for host in $(hosts); do
    kind=node
    ! is_login "$host" || kind=login
    net=()
    [[ $NET != ns ]] || net=(nsenter "--net=/run/netns/$(net_name "$host")")
    mapfile -t mounts < <(mounts_of "$host")
    hold "$host" ${net[@]+"${net[@]}"} nsenter -t "$base" --mount "--root=/proc/$base/root" "--wd=/proc/$base/root" -- \
      unshare --uts --mount --propagation private bash -c "$MAKE_HOST" _ "$D" "$host" "$kind" ${mounts[@]+"${mounts[@]}"} || return 1
  done
}

# cgroups (v1) go below one group of our own in each hierarchy, shown to our processes as its root, so that two
# testbeds with nodes of the same name do not share them.
cgroup_name() { echo "tb$PORT_BASE"; }
cgroups_up() {
  local controller group file
  group=$(cgroup_name)
  for controller in freezer memory devices cpuset cpuacct; do
    [[ -w /sys/fs/cgroup/$controller ]] && grep -q " /sys/fs/cgroup/$controller cgroup " /proc/mounts || continue
    mkdir -p "/sys/fs/cgroup/$controller/$group" 2>/dev/null || continue
    if [[ $controller == cpuset ]]; then
      for file in cpuset.cpus cpuset.mems; do
        cat "/sys/fs/cgroup/$controller/$file" >"/sys/fs/cgroup/$controller/$group/$file"
      done
    fi
  done 2>/dev/null
  return 0
}
cgroups_down() {
  local group
  for group in /sys/fs/cgroup/*/"$(cgroup_name)"; do
    [[ ! -d $group ]] || find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
  done
  return 0
}
freezer_v1() {
  awk '$3 == "cgroup" && $4 ~ /(^|,)freezer(,|$)/ {found = 1} END {exit !found}' /proc/mounts && [[ -w /sys/fs/cgroup/freezer ]]
}

net_name() { echo "tb$PORT_BASE$1"; }
net_up() {
  [[ $NET == ns ]] || return 0
  local control i name
  control=$(net_name ctl)
  [[ ! -e /run/netns/$control ]] || return 0
  ip netns add "$control" && ip -n "$control" link set lo up && ip -n "$control" link add br0 type bridge &&
    ip -n "$control" addr add "$(address ctl)/15" dev br0 && ip -n "$control" link set br0 up || die "cannot make network namespaces"
  for ((i = 1; i <= NODES; i++)); do
    name=$(net_name "$PREFIX$i")
    ip netns add "$name" && ip -n "$name" link set lo up && ip -n "$control" link add "v$i" type veth peer name eth0 netns "$name" &&
      ip -n "$control" link set "v$i" master br0 up && ip -n "$name" addr add "$(address "$PREFIX$i")/15" dev eth0 &&
      ip -n "$name" link set eth0 up || die "cannot make network namespace $name"
  done
}
net_down() {
  [[ $NET == ns ]] || return 0
  local host
  for host in $(hosts); do ip netns del "$(net_name "$host")" 2>/dev/null; done
  return 0
}
