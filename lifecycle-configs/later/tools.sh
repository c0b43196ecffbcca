# shellcheck shell=bash
# kubectl, helm and the Session Manager plugin, as an admin has put them into one archive: into the folder of hpj, which every terminal has on its PATH.

# put FILE TO: a program, in one step.
put() {
  install -m 755 "$1" "$2.new" 2>/dev/null && mv -f "$2.new" "$2" && return
  root install -m 755 "$1" "$2.new" && root mv -f "$2.new" "$2" && return
  rm -f "$2.new"
  return 1
}

# unpack_tools: the archive's programs, into $WORK/tools/bin.
unpack_tools() {
  local archive
  rm -rf "$WORK/tools"
  mkdir "$WORK/tools" || return
  fetch "$TOOLS" "$TOOLS_SHA256" "$WORK/tools" || return
  archive=$WORK/tools/${TOOLS##*/}
  if tar -tzf "$archive" | grep -q -E -v '^(\./)?(bin/)?([a-z0-9-]+)?$'; then
    tell "$TOOLS holds more than programs in bin, and was not unpacked"
    return 1
  fi
  tar -xzf "$archive" -C "$WORK/tools" --no-same-owner || { tell "$TOOLS cannot be unpacked; see the log"; return 1; }
}

# put_tools BIN MARK: those that are not somebody else's there. MARK: the archive's SHA-256, and on a second line which programs are ours.
put_tools() {
  local file name before="" ours="" others="" mark=$2
  before=" $(sed -n 2p "$mark" 2>/dev/null) "
  for file in "$WORK"/tools/bin/*; do
    name=${file##*/}
    if [[ -e $1/$name && $before != *" $name "* ]]; then others+=" $name"; else ours+=" $name"; fi
  done
  # Before the first one: what is broken off is done again.
  printf '\n%s\n' "${ours# }" >"$WORK/tools/mark"
  put "$WORK/tools/mark" "$mark" || { tell "$1 cannot be written"; return 1; }
  for name in $ours; do
    put "$WORK/tools/bin/$name" "$1/$name" || { tell "$name cannot be written to $1"; return 1; }
  done
  printf '%s\n%s\n' "$TOOLS_SHA256" "${ours# }" >"$WORK/tools/mark"
  put "$WORK/tools/mark" "$mark" || { tell "$1 cannot be written"; return 1; }
  tell "${ours:+in terminals:$ours}${others:+${ours:+; }the image has its own:$others}"
}

do_tools() {
  local bin mark code=0
  bin=$(dirname "$PYTHON")
  mark=$bin/hyperpod_jlab.tools
  if [[ $(head -n 1 "$mark" 2>/dev/null) == "$TOOLS_SHA256" ]]; then tell "in terminals already: $(sed -n 2p "$mark")"; return 0; fi
  unpack_tools && put_tools "$bin" "$mark" || code=$?
  rm -rf "$WORK/tools"
  return $code
}
