#!/bin/bash
# Make the folder of wheels that scripts install from: ours, and of what it needs that which SageMaker's images lack. Its list SHA256SUMS covers all of them;
# the SHA-256 of the list is printed, and is what the lifecycle configuration is given. To be run where the package index can be reached.
#
# make-package.sh WHEEL FOLDER [PYTHON_VERSION...]   (3.11 and 3.12, as in the images 2 to 4 of SageMaker Distribution)
set -euo pipefail
if (($# < 2)); then
  sed -n 's/^# \{0,1\}//; 2,5p' "$0" >&2
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
for version; do
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$folder" --only-binary :all: \
    --implementation cp --python-version "$version" --platform manylinux2014_x86_64 \
    'cloudpickle>=2.2,<4' 'asyncinotify>=4,<5' 'sniffio>=1.3' 'websockets>=15' 'httpx>=0.25,<1' 'pyyaml>=6'
done
cd "$folder"
sha256sum -- *.whl >SHA256SUMS
chmod 644 -- *.whl SHA256SUMS
sha256sum <SHA256SUMS | cut -d ' ' -f 1
