# shellcheck shell=bash disable=SC2015
# Programs, images and manifests, built once into the user's cache folder. Sourced by kubernetes-testbed.sh.

VERSION=$(awk '$1 == "k8s.io/kubernetes" && NF == 2 {print $2}' "$HERE/knode/go.mod")
OPERATOR=$(sed -n 's/.*testbed\/training-operator:\(v[0-9.]*\).*/\1/p' "$HERE/addons/training-operator/kustomization.yaml")
readonly VERSION OPERATOR KWOK=v0.8.0
readonly CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/hyperpod-jlab/kubernetes-$VERSION

# gobuild build|install ARG...: programs that need nothing but the kernel.
gobuild() {
  CGO_ENABLED=0 go "$1" -p "${BUILD_JOBS:-$(nproc)}" -buildvcs=false -trimpath "${@:2}" 2> >(grep -v '^go: downloading' >&2)
}

# fresh FILE INPUT...: whether FILE was made from these inputs, by their content. `made FILE` says so afterwards.
fresh() {
  NEW_SUM=$(cat "${@:2}" | sha256sum)
  [[ -e $1 && -e $1.sum && $(<"$1.sum") == "$NEW_SUM" ]]
}
made() { echo "$NEW_SUM" >"$1.sum"; }

# module_dir MODULE VERSION: where its files are.
module_dir() { (cd / && go mod download -json "$1@$2") | awk -F'"' '$2 == "Dir" {print $4}'; }

# file_of PART: what its image and its manifest are called in the cache; of the training operator each version has files of its own.
file_of() { if [[ $1 == training-operator ]]; then echo "$1-$OPERATOR"; else echo "$1"; fi; }

# program_image NAME:TAG BINARY PATH_IN_IMAGE: an image of one program.
program_image() {
  local folder result=0 file
  file=$(file_of "${1%%:*}")
  folder=$(mktemp -d "$CACHE/tmp-$PART.XXXX") || return
  mkdir -p "$folder/tmp" "$folder${3%/*}"
  chmod 1777 "$folder/tmp"
  cp "$2" "$folder$3" &&
    python3 "$HERE/mkimage.py" "localhost/testbed/$1" "$folder" "$CACHE/images/$file.tar" --entrypoint "[\"$3\"]" --user 65532:65532 || result=1
  rm -rf "$folder"
  return $result
}

# manifest NAME FOLDER: our addons/NAME over that kustomize folder, as manifests/NAME.yaml.
manifest() {
  local folder result=0
  folder=$(mktemp -d "$CACHE/tmp-$PART.XXXX") || return
  cp "$HERE/addons/$1"/*.yaml "$folder"
  ln -s "$2" "$folder/base"
  "$CACHE/bin/knode" kubectl kustomize "$folder" >"$folder/out" && mv "$folder/out" "$CACHE/manifests/$(file_of "$1").yaml" || result=1
  rm -rf "$folder"
  return $result
}

# What kubectl and others show as their version, which a build from a module does not know.
version_flags() {
  local package flags="-s -w" minor=${VERSION#v1.}
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=$VERSION -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
    flags+=" -X $package.gitTreeState=clean -X $package.gitCommit=module -X $package.buildDate=1970-01-01T00:00:00Z"
  done
  echo "$flags"
}

fresh_knode() { fresh "$CACHE/bin/knode" "$HERE"/knode/{go.mod,go.sum,main.go,pause/main.go}; }
fresh_python() { fresh "$CACHE/images/python.tar" "$HERE/rootfs.sh" "$HERE/mkimage.py"; }
fresh_operator() { fresh "$CACHE/manifests/$(file_of training-operator).yaml" "$HERE"/addons/training-operator/*.yaml; }

# do_built: whether a start with the training operator builds nothing.
do_built() { command -v containerd >/dev/null && fresh_knode && fresh_python && fresh_operator; }

build_core() {
  "${HERE%/*}/install-kubernetes.sh" || die "Debian's packages are missing"
  if ! fresh_knode; then
    say "building Kubernetes $VERSION (4 to 10 minutes with an empty Go cache)"
    (cd "$HERE/knode" && gobuild build -ldflags "$(version_flags)" -o "$CACHE/bin/" . ./pause) || die "building knode failed"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nexec "$(dirname "$0")/knode" kubectl "$@"\n' >"$CACHE/bin/kubectl"
    chmod +x "$CACHE/bin/kubectl"
    program_image pause:1 "$CACHE/bin/pause" /pause || die "making the pause image failed"
    made "$CACHE/bin/knode"
  fi
  if ! fresh_python; then
    say "making the python image"
    rm -rf "$CACHE/tmp-core.rootfs"
    "$HERE/rootfs.sh" "$CACHE/tmp-core.rootfs" &&
      python3 "$HERE/mkimage.py" localhost/testbed/python:3.11 "$CACHE/tmp-core.rootfs" "$CACHE/images/python.tar" --cmd '["/bin/sh"]' ||
      die "making the python image failed"
    rm -rf "$CACHE/tmp-core.rootfs"
    made "$CACHE/images/python.tar"
  fi
}

build_training_operator() {
  local module=github.com/kubeflow/training-operator folder
  fresh_operator && return
  say "building the training operator $OPERATOR"
  (cd / && GOBIN="$CACHE/bin" gobuild install -ldflags '-s -w' "$module/cmd/training-operator.v1@$OPERATOR") &&
    program_image "training-operator:$OPERATOR" "$CACHE/bin/training-operator.v1" /manager &&
    folder=$(module_dir "$module" "$OPERATOR") &&
    manifest training-operator "$folder/manifests/overlays/standalone" || die "building the training operator failed"
  made "$CACHE/manifests/$(file_of training-operator).yaml"
}

# build_queueing NAME PACKAGE MODULE FOLDER: a program of the module in queueing/, with the manifests in the module's FOLDER.
build_queueing() {
  local version folder
  fresh "$CACHE/manifests/$1.yaml" "$HERE"/queueing/go.{mod,sum} "$HERE/addons/$1"/*.yaml && return
  say "building $1"
  version=$(cd "$HERE/queueing" && go list -m -f '{{.Version}}' "$3") && folder=$(module_dir "$3" "$version") &&
    (cd "$HERE/queueing" && gobuild build -ldflags '-s -w' -o "$CACHE/bin/$1" "$2") &&
    program_image "$1:test" "$CACHE/bin/$1" /manager && manifest "$1" "$folder/$4" || die "building $1 failed"
  made "$CACHE/manifests/$1.yaml"
}

build_kueue() { build_queueing kueue sigs.k8s.io/kueue/cmd/kueue sigs.k8s.io/kueue config/default; }

build_trainer() {
  local module=github.com/kubeflow/trainer/v2
  build_queueing jobset sigs.k8s.io/jobset sigs.k8s.io/jobset config/default
  build_queueing trainer $module/cmd/trainer-controller-manager $module manifests
}

build_kwok() {
  local module=sigs.k8s.io/kwok folder
  fresh "$CACHE/manifests/kwok-stages.yaml" <(echo "$KWOK") && return
  say "building kwok $KWOK"
  (cd / && GOBIN="$CACHE/bin" gobuild install -ldflags '-s -w' "$module/cmd/kwok@$KWOK") && folder=$(module_dir $module "$KWOK") &&
    "$CACHE/bin/knode" kubectl kustomize "$folder/kustomize/stage/fast" >"$CACHE/kwok.stages" &&
    mv "$CACHE/kwok.stages" "$CACHE/manifests/kwok-stages.yaml" || die "building kwok failed"
  made "$CACHE/manifests/kwok-stages.yaml"
}

# do_build [PART...]: each by one at a time on this machine; core comes first, whatever is named.
do_build() {
  [[ $# -gt 0 ]] || set -- core training-operator
  local go
  go=$("${HERE%/*}/install-go.sh") || die "there is no Go 1.26 or newer, and it cannot be installed (https://go.dev/doc/install)"
  PATH=$go:$PATH
  mkdir -p "$CACHE"/{bin,images,manifests} || die "cannot make $CACHE"
  [[ $1 == core ]] || set -- core "$@"
  for PART; do
    case $PART in
      core | training-operator | kueue | trainer | kwok) ;;
      *) die "unknown part $PART" ;;
    esac
    exec 8>"$CACHE/$PART.lock"
    flock 8
    rm -rf "$CACHE/tmp-$PART".* # what an interrupted one left
    "build_${PART//-/_}"
    exec 8>&-
  done
}
