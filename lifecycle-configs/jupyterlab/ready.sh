# shellcheck shell=bash disable=SC2154
# A server that started before the package was there does not know it: it is started anew, once, unless somebody works in it already.

# process WORDS: whether a process of ours has them in its command line.
process() {
  local line
  for line in /proc/[0-9]*/cmdline; do
    [[ -O $line && $(tr '\0' ' ' 2>/dev/null <"$line") == *$1* ]] && return
  done
  return 1
}

ready() {
  [[ -e $WORK/new ]] || return 0
  process bin/jupyter-lab || return 0
  if process ipykernel_launcher; then
    MESSAGE[package]+="; a kernel runs, so run restart-jupyter-server when it suits you"
  elif restart-jupyter-server 9>&- || supervisorctl -s unix:///var/run/supervisord/supervisor.sock restart jupyterlabserver; then
    MESSAGE[package]+="; the server was started anew"
  else
    MESSAGE[package]+="; start the server anew to see it"
  fi
}
