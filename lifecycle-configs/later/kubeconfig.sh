# shellcheck shell=bash
# A kubeconfig, for kubectl and helm. aws writes one of its own, of which is taken over what the person's lacks: no context of theirs is changed, and kubectl goes on
# using the one that it uses.

do_access() {
  local made=$WORK/kubeconfig said
  rm -f "$made"
  (umask 077 && timeout 60 aws eks update-kubeconfig --region "$REGION" --name "$EKS" --alias "$CLUSTER" --kubeconfig "$made") ||
    { tell "no kubeconfig was written: 'aws eks update-kubeconfig' failed; hpj needs none"; return 1; }
  said=$("$PYTHON" -m hyperpod_jlab.admin.lifecycle.kubeconfig "$made" "${KUBECONFIG%%:*}" "$CLUSTER" "$NAMESPACE") ||
    { rm -f "$made"; tell "${said:-no kubeconfig was written; see the log}"; return 1; }
  rm -f "$made"
  tell "$said"
}
