# shellcheck shell=bash
# The way to EKS: nothing to be prepared, hyperpod_jlab signs its own tokens.

do_access() {
  tell "no kubeconfig was asked for, and hpj needs none"
  return 2
}
