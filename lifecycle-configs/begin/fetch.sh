# shellcheck shell=bash
# Files from the partition or from S3, copied to where nobody else can write and checked before anything reads them.

# root COMMAND...: as root, where this user may.
root() {
  if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

# has FILE SHA256
has() { [[ $(sha256sum <"$1") == "$2  -" ]]; }

# place NAME: where a setting's path leads to here; empty when it is on a partition that is not mounted.
place() {
  if [[ $1 == /* || $1 == s3://* ]]; then echo "$1"; elif [[ -n $MOUNT ]]; then echo "$MOUNT/$1"; fi
}

# copy FROM TO: a file; no pipe that never ends, and nothing over 2 GiB.
copy() {
  if [[ $1 == s3://* ]]; then
    aws s3 cp --only-show-errors --region "$REGION" "$1" "$2"
  else
    [[ -f $1 ]] && (ulimit -f 2097152 && cp "$1" "$2")
  fi
}

# fetch WHAT SHA256 FOLDER: the file, or the folder with its SHA256SUMS, into FOLDER.
fetch() {
  local from name check=$2
  from=$(place "$1")
  if [[ -z $from ]]; then tell "no partition is mounted, which $1 is to be on"; return 1; fi
  if [[ $from != */ && ! -d $from ]]; then
    name=${from##*/}
    copy "$from" "$3/$name" || { tell "$from cannot be read"; return 1; }
    has "$3/$name" "$check" || { tell "$from does not have the SHA-256 that was set: nothing of it is used"; return 1; }
    return
  fi
  from=${from%/}
  copy "$from/SHA256SUMS" "$3/SHA256SUMS" || { tell "$from/SHA256SUMS cannot be read"; return 1; }
  has "$3/SHA256SUMS" "$check" || { tell "$from/SHA256SUMS does not have the SHA-256 that was set: nothing of it is used"; return 1; }
  while read -r _ name; do
    name=${name#\*}
    if [[ $name == */* || $name == .* ]]; then tell "$from/SHA256SUMS names $name, which is no file beside it"; return 1; fi
    copy "$from/$name" "$3/$name" || { tell "$from/$name cannot be read"; return 1; }
  done <"$3/SHA256SUMS"
  (cd "$3" && sha256sum --check --strict --quiet SHA256SUMS) || { tell "a file of $from is not the one in its SHA256SUMS"; return 1; }
}
