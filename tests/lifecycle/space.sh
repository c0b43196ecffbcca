#!/bin/bash
# The root of a space of Studio: this machine's, with Studio's user, home, Python and mounts; what is changed in it is gone with it. Run by space.py in
# namespaces of its own (mounts, processes, and the network where the space has none).
#
# space.sh BASE ROOT PARTITION MOUNT_POINT CONDA: BASE has home/ and conda/, which stay; ROOT is an empty folder. CONDA: where the Python lies for good.
set -euo pipefail
base=$1 root=$2 partition=$3 point=$4 conda=$5

mount --make-rprivate /
mount -t tmpfs -o mode=755 space "$root"
mkdir "$root"/{changed,work,conda,conda-work,new}
mount -t overlay -o "lowerdir=/,upperdir=$root/changed,workdir=$root/work" overlay "$root/new"
new=$root/new
# The machine's Python lies in somebody's home.
chmod 755 "$new/root"
mount -t proc proc "$new/proc"
mount --rbind /dev "$new/dev"
# Its root may use the machine's devices, and put nothing in their place.
mount -o remount,bind,ro "$new/dev"
mount --rbind /sys "$new/sys"
mount -t tmpfs -o mode=1777 tmp "$new/tmp"
mount -t tmpfs -o mode=755 run "$new/run"
mkdir -p "$new/opt/conda" "$new/home/sagemaker-user" "$new$point" "$new/opt/ml/metadata"
mount -t overlay -o "lowerdir=$conda,upperdir=$root/conda,workdir=$root/conda-work" overlay "$new/opt/conda"
chown -R 1000:100 "$root/conda"
chown 1000:100 "$new/opt/conda"
mount --bind "$base/home" "$new/home/sagemaker-user"
mount --bind "$partition" "$new$point"
if [[ -e $base/read-only ]]; then mount -o remount,bind,ro "$new$point"; fi
if [[ -e $base/read-only-home ]]; then mount -o remount,bind,ro "$new/home/sagemaker-user"; fi
cp "$base/resource-metadata.json" "$new/opt/ml/metadata/"

sed -i '/:x:1000:/d' "$new/etc/passwd"
echo 'sagemaker-user:x:1000:100::/home/sagemaker-user:/bin/bash' >>"$new/etc/passwd"
echo 'sagemaker-user:*:19000:0:99999:7:::' >>"$new/etc/shadow"
if [[ -e $base/no-sudo ]]; then rm "$new/usr/bin/sudo"; else
  echo 'ALL ALL=(ALL) NOPASSWD: ALL' >"$new/etc/sudoers.d/studio"
  chmod 440 "$new/etc/sudoers.d/studio"
fi
# The image has no Slurm.
rm -rf "$new"/usr/bin/{sbatch,srun,squeue,sinfo,scancel,sacct,scontrol,munge,unmunge} "$new"/usr/sbin/munged "$new"/etc/{munge,slurm,hyperpod-jlab} "$new/var/lib/munge"
ip link set lo up 2>/dev/null || true

cp -r "$base/bin/." "$new/usr/local/bin/"
exec chroot "$new" sleep infinity
