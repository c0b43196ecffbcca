#!/usr/bin/env bash
# rootfs.sh DIR: a small Debian root file system with python3 and busybox, from packages, without their scripts.
set -eu
root=$1 work=$(mktemp -d "$1.XXXX")
trap 'rm -rf "$work"' EXIT
packages=(base-files libc6 libc-bin libgcc-s1 zlib1g libcrypt1 libexpat1 libssl3 libffi8 libbz2-1.0 liblzma5 libuuid1 libncursesw6 libtinfo6
  libreadline8 libsqlite3-0 libnsl2 libtirpc3 libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0 libcom-err2 libkeyutils1
  libpython3.11-minimal libpython3.11-stdlib python3.11-minimal python3.11 dash busybox-static
  libstdc++6 bash)
mkdir -p "$root"
(cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "${packages[@]}")
for package in "$work"/*.deb; do dpkg-deb -x "$package" "$root"; done
mkdir -p "$root"/{bin,dev,etc,proc,root,run,sys,tmp,var/tmp}
chmod 1777 "$root/tmp" "$root/var/tmp"
ln -sf dash "$root/bin/sh"
ln -sf python3.11 "$root/usr/bin/python3"
ln -sf python3.11 "$root/usr/bin/python"
for applet in $(chroot "$root" /bin/busybox --list); do
  [[ -e $root/bin/$applet || -e $root/usr/bin/$applet ]] || ln -s /bin/busybox "$root/bin/$applet"
done
# busybox's nslookup fails when any one of the search domains has no such name, and then the operator's init container never
# ends; its shell would take its own nslookup before this one, hence dash as sh
rm -f "$root/bin/nslookup" "$root/usr/bin/nslookup"
# shellcheck disable=SC2016
printf '#!/bin/sh\nexec getent hosts "$1"\n' >"$root/bin/nslookup"
chmod +x "$root/bin/nslookup"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
rm -rf "$root"/usr/share/{doc,man,info,lintian,locale} "$root"/usr/lib/*/gconv "$root/usr/lib/python3.11/test"
ldconfig -r "$root"
