# shellcheck shell=bash
# A kubeconfig, for kubectl; aws adds to one that is there.

do_access() {
  timeout 60 aws eks update-kubeconfig --region "$REGION" --name "$EKS" --alias "$CLUSTER" ||
    { tell "no kubeconfig was written: 'aws eks update-kubeconfig' failed; hpj needs none"; return 1; }
  tell "$CLUSTER is a context of ~/.kube/config"
}
