#!/bin/bash
# Make the folder of wheels that lifecycle configurations install from. Its list SHA256SUMS covers all of them; the SHA-256 of the list is printed, and is what
# `hpj admin lifecycle` and install.sh are given. To be run where the package index can be reached.
#
# make-package.sh [--all] WHEEL FOLDER [PYTHON_VERSION...]
#
# Without --all: ours, and of what it needs that which SageMaker's images lack or have too old. With it: everything, for a machine that has nothing.
# Python versions: 3.11 and 3.12, as in the images 2 to 4 of SageMaker Distribution.
set -euo pipefail
all=false
if [[ ${1:-} == --all ]]; then
  all=true
  shift
fi
if (($# < 2)); then
  sed -n '5p' "$0" >&2
  exit 2
fi
wheel=$1 folder=$2
shift 2
(($#)) || set -- 3.11 3.12
mkdir -p "$folder"
if [[ -n $(ls -A "$folder") ]]; then
  echo "$folder is not empty: each version has a folder of its own" >&2
  exit 1
fi
cp "$wheel" "$folder/"
wanted=(--no-deps 'cloudpickle>=2.2,<4' 'asyncinotify>=4,<5' 'sniffio>=1.3' 'websockets>=15' 'httpx>=0.25,<1' 'pyyaml>=6' 'pathspec>=1,<2' 'tomlkit>=0.13,<1'
  'regex>=2024.4.16')
if $all; then wanted=("${wheel}[aws,kubernetes]"); fi
for version; do
  python3 -m pip download --quiet --disable-pip-version-check --dest "$folder" --only-binary :all: \
    --implementation cp --python-version "$version" --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 "${wanted[@]}"
done
cd "$folder"
sha256sum -- *.whl >SHA256SUMS
chmod 644 -- *.whl SHA256SUMS
sha256sum <SHA256SUMS | cut -d ' ' -f 1
