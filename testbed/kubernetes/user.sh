#!/usr/bin/env bash
# user.sh KUBECONFIG NAME NAMESPACE [--certificate] [--rules FILE]: someone on the cluster of that (administrator's) kubeconfig
# who may work in one namespace only; prints a kubeconfig for that person. The namespace is made when it is not there.
#
# What one may do is a Role: --rules FILE has its rules, as a list in YAML or JSON; without it: PyTorchJobs, and reading pods,
# their logs and events. One is known by a service account's token that is good for a day or, with --certificate, as a user
# by a certificate that the cluster signs. Works with any cluster; KUBECTL names the kubectl (default: the one in PATH).
set -euo pipefail
die() { echo "user.sh: $*" >&2; exit 1; }
[[ $# -ge 3 ]] || die "user.sh KUBECONFIG NAME NAMESPACE [--certificate] [--rules FILE]"
config=$1 name=$2 namespace=$3 certificate=false
shift 3
rules='- {apiGroups: [kubeflow.org], resources: [pytorchjobs], verbs: [create, get, list, watch, patch, delete]}
- {apiGroups: [""], resources: [pods, pods/log, events], verbs: [get, list, watch]}'
while [[ $# -gt 0 ]]; do
  case $1 in
    --certificate) certificate=true ;;
    --rules)
      [[ -r ${2-} ]] || die "--rules takes a file"
      rules=$(<"$2")
      shift
      ;;
    *) die "unknown option $1" ;;
  esac
  shift
done
[[ $name =~ ^[a-z0-9]([a-z0-9-]*[a-z0-9])?$ && $namespace =~ ^[a-z0-9]([a-z0-9-]*[a-z0-9])?$ ]] || die "names have a-z, 0-9 and - only"
kc() { "${KUBECTL:-kubectl}" --kubeconfig="$config" "$@"; }

subject="{kind: ServiceAccount, name: $name, namespace: $namespace}"
[[ $certificate == false ]] || subject="{kind: User, name: $name, apiGroup: rbac.authorization.k8s.io}"
kc apply --server-side -f - >/dev/null <<EOF
apiVersion: v1
kind: Namespace
metadata: {name: $namespace}
EOF
kc apply -n "$namespace" -f - >/dev/null <<EOF
apiVersion: v1
kind: ServiceAccount
metadata: {name: $name}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: $name}
rules:
  ${rules//$'\n'/$'\n'  }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: $name}
subjects: [$subject]
roleRef: {kind: Role, name: $name, apiGroup: rbac.authorization.k8s.io}
EOF

# signed FOLDER: has FOLDER/key's certificate signed by the cluster, into FOLDER/crt.
signed() {
  local request=$namespace-$name i
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$name" -keyout "$1/key" -out "$1/csr" 2>/dev/null
  kc delete csr "$request" --ignore-not-found >/dev/null
  kc apply -f - >/dev/null <<EOF
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: $request}
spec: {signerName: kubernetes.io/kube-apiserver-client, usages: [client auth], request: $(base64 -w0 "$1/csr")}
EOF
  kc certificate approve "$request" >/dev/null
  for ((i = 0; i < 150; i++)); do
    kc get csr "$request" -o 'jsonpath={.status.certificate}' >"$1/crt"
    [[ ! -s $1/crt ]] || break
    sleep 0.2
  done
  [[ -s $1/crt ]] || die "the cluster signs no certificates of users"
  kc delete csr "$request" >/dev/null
}

if [[ $certificate == true ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  signed "$folder"
  credentials="{client-certificate-data: $(<"$folder/crt"), client-key-data: $(base64 -w0 "$folder/key")}"
else
  credentials="{token: $(kc -n "$namespace" create token "$name" --duration=24h)}"
fi
cat <<EOF
apiVersion: v1
kind: Config
clusters: [{name: cluster, cluster: $(kc config view --raw --minify --flatten -o 'jsonpath={.clusters[0].cluster}')}]
users: [{name: $name, user: $credentials}]
contexts: [{name: $name, context: {cluster: cluster, user: $name, namespace: $namespace}}]
current-context: $name
EOF
