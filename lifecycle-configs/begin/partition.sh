# shellcheck shell=bash
# The storage partition: where it is mounted, which folder of the file system it is, and a link to it for the file browser.

# Sets MOUNT and PART (such as /alice; empty for the whole file system) from the table of mounts: to look at a mount itself can take for ever.
find_mount() {
  local point kind source
  MOUNT="" PART=""
  while read -r _ _ _ _ point _ rest; do
    read -r kind source _ <<<"${rest#*- }"
    [[ $kind == lustre && $point == /mnt/custom-file-systems/fsx_lustre/${FILE_SYSTEM:-fs-*} ]] || continue
    [[ $source =~ ^[^/]*:/[^/]+(/[A-Za-z0-9._/-]*)?$ ]] || continue
    MOUNT=$point PART=${BASH_REMATCH[1]%/}
    return
  done <"${HYPERPOD_MOUNT_TABLE:-/proc/self/mountinfo}"
}

do_partition() {
  local link=$HOME/hyperpod-partition
  if [[ -z $MOUNT ]]; then tell "no folder of ${FILE_SYSTEM:-a file system} is mounted in this space"; return 1; fi
  if [[ $(readlink "$link") == "$MOUNT" ]]; then tell "${PART:-/} is at $link already"; return 0; fi
  if [[ -e $link || -L $link ]]; then tell "${PART:-/} is at $MOUNT; $link is something else, and stays"; return 0; fi
  ln -s "$MOUNT" "$link" || { tell "${PART:-/} is at $MOUNT; $link cannot be made"; return 1; }
  tell "${PART:-/} is at $link"
}
