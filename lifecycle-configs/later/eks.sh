# shellcheck shell=bash
# The way to EKS: nothing to be prepared, hyperpod_jlab signs its own tokens.

do_access() {
  tell "no kubeconfig is needed, and none was asked for"
  return 2
}
