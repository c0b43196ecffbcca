#!/bin/bash
# Make the archive of programs for terminals of spaces: kubectl, helm and the Session Manager plugin, for Linux on x86_64. Its SHA-256 is printed, and is what
# `hpj admin lifecycle` is given as tools_sha256.
#
# make-tools.sh [--kubectl vX.Y.Z] [--helm vX.Y.Z] [--plugin X.Y.Z.W] ARCHIVE     downloads them (needs curl, gpg and dpkg-deb)
# make-tools.sh --from FOLDER ARCHIVE                                              takes the programs that lie in FOLDER
#
# kubectl and helm are checked against the checksums that their publishers give, the plugin against AWS' signature. kubectl should be within one minor version of
# the cluster's Kubernetes.
set -euo pipefail
kubectl=v1.34.4 helm=v3.22.0 plugin=1.2.792.0 from=""
readonly NAMES=(kubectl helm session-manager-plugin)
# The key of "AWS Systems Manager Session Manager Plugin Linux Signer" (Systems Manager's user guide: verify the signature of the Session Manager plugin).
readonly SIGNER=7959637124CE093AD501D47A2C4D4AFF6F6757EE
readonly SIGNERS_KEY='mFIEZ5ERQxMIKoZIzj0DAQcCAwQjuZy+IjFoYg57sLTGhF3aZLBaGpzB+gY6j7Ix
P7NqbpXyjVj8a+dy79gSd64OEaMxUb7vw/jug+CfRXwVGRMNtIBBV1MgU1NNIFNl
c3Npb24gTWFuYWdlciA8c2Vzc2lvbi1tYW5hZ2VyLXBsdWdpbi1zaWduZXJAYW1h
em9uLmNvbT4gKEFXUyBTeXN0ZW1zIE1hbmFnZXIgU2Vzc2lvbiBNYW5hZ2VyIFBs
dWdpbiBMaW51eCBTaWduZXIgS2V5KYkBAAQQEwgAqAUCZ5ERQ4EcQVdTIFNTTSBT
ZXNzaW9uIE1hbmFnZXIgPHNlc3Npb24tbWFuYWdlci1wbHVnaW4tc2lnbmVyQGFt
YXpvbi5jb20+IChBV1MgU3lzdGVtcyBNYW5hZ2VyIFNlc3Npb24gTWFuYWdlciBQ
bHVnaW4gTGludXggU2lnbmVyIEtleSkWIQR5WWNxJM4JOtUB1HosTUr/b2dX7gIe
AwIbAwIVCAAKCRAsTUr/b2dX7rO1AQCa1kig3lQ78W/QHGU76uHx3XAyv0tfpE9U
oQBCIwFLSgEA3PDHt3lZ+s6m9JLGJsy+Cp5ZFzpiF6RgluR/2gA861M='

die() {
  echo "make-tools.sh: $*" >&2
  exit 1
}

# download ADDRESS FILE
download() { curl -fsSL --proto '=https' --tlsv1.2 --retry 3 -o "$2" "$1" || die "$1 cannot be downloaded"; }

# same FILE SHA256
same() { [[ $2 =~ ^[0-9a-f]{64}$ && $(sha256sum <"$1") == "$2  -" ]] || die "${1##*/} does not have the checksum that its publisher gives"; }

get_kubectl() {
  local address=https://dl.k8s.io/release/$kubectl/bin/linux/amd64/kubectl
  download "$address" "$work/kubectl"
  download "$address.sha256" "$work/sum"
  same "$work/kubectl" "$(cut -d ' ' -f 1 "$work/sum")"
  mv "$work/kubectl" "$work/bin/"
}

get_helm() {
  local file=helm-$helm-linux-amd64.tar.gz
  download "https://get.helm.sh/$file" "$work/$file"
  download "https://get.helm.sh/$file.sha256sum" "$work/sum"
  same "$work/$file" "$(cut -d ' ' -f 1 "$work/sum")"
  tar -xzf "$work/$file" -C "$work" linux-amd64/helm
  mv "$work/linux-amd64/helm" "$work/bin/"
}

get_plugin() {
  local address=https://s3.amazonaws.com/session-manager-downloads/plugin/$plugin/ubuntu_64bit/session-manager-plugin.deb deb=$work/session-manager-plugin.deb
  download "$address" "$deb"
  download "$address.sig" "$deb.sig"
  signed "$deb" || die "session-manager-plugin.deb does not have AWS' signature"
  dpkg-deb --fsys-tarfile "$deb" | tar -xO ./usr/local/sessionmanagerplugin/bin/session-manager-plugin >"$work/bin/session-manager-plugin"
}

# signed FILE: whether FILE.sig is AWS' signature of it.
signed() {
  local home=$work/gnupg
  mkdir -m 700 "$home"
  base64 -d <<<"$SIGNERS_KEY" | gpg --homedir "$home" --batch --quiet --import
  gpg --homedir "$home" --batch --status-fd 1 --verify "$1.sig" "$1" 2>/dev/null | grep -q "^\[GNUPG:\] VALIDSIG $SIGNER "
}

while (($# > 1)); do
  case $1 in
    --kubectl | --helm) [[ $2 =~ ^v[0-9]+(\.[0-9]+){2}$ ]] || die "'$2' is no version, such as v1.34.4" ;;&
    --plugin) [[ $2 =~ ^[0-9]+(\.[0-9]+){3}$ ]] || die "'$2' is no version, such as 1.2.792.0" ;;&
    --kubectl) kubectl=$2 ;;
    --helm) helm=$2 ;;
    --plugin) plugin=$2 ;;
    --from) from=$2 ;;
    *) break ;;
  esac
  shift 2
done
if (($# != 1)) || [[ $1 != *.tar.gz ]]; then
  sed -n '5,6p' "$0" >&2
  exit 2
fi
[[ ! -e $1 ]] || die "$1 is there already: each version has an archive of its own"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
if [[ -n $from ]]; then
  for name in "${NAMES[@]}"; do
    [[ ! -f $from/$name ]] || cp -L "$from/$name" "$work/bin/"
  done
  [[ -n $(ls -A "$work/bin") ]] || die "$from has none of ${NAMES[*]}"
else
  get_kubectl
  get_helm
  get_plugin
fi
chmod 755 "$work"/bin/*
(cd "$work" && tar -c --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner bin | gzip -n >"$work/made")
install -m 644 "$work/made" "$1"
ls "$work/bin" >&2
sha256sum <"$1" | cut -d ' ' -f 1
