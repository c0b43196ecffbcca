#!/bin/bash
# The Python of a space, at /opt/conda: JupyterLab and what else SageMaker's images have, of the versions that we test with. In a namespace of mounts of its own.
#
# conda.sh FOLDER PYTHON UV CONSTRAINTS: into FOLDER.
set -euo pipefail
folder=$1 python=$2 uv=$3 constraints=$4
root=$(mktemp -d)
mount --make-rprivate /
mount -t tmpfs image "$root"
mkdir "$root"/{changed,work,new}
mount -t overlay -o "lowerdir=/,upperdir=$root/changed,workdir=$root/work" overlay "$root/new"
mount --rbind /dev "$root/new/dev"
mount -t proc proc "$root/new/proc"
mkdir -p "$root/new/opt/conda"
mount --bind "$folder" "$root/new/opt/conda"
chroot "$root/new" "$python" -m venv /opt/conda
chroot "$root/new" "$uv" pip install --quiet --python /opt/conda/bin/python --constraint "$constraints" \
  jupyterlab boto3 httpx websockets pyyaml pydantic click ipykernel supervisor
# The AWS CLI, as the image has one beside this Python.
chroot "$root/new" "$python" -m venv /opt/conda/aws
chroot "$root/new" "$uv" pip install --quiet --python /opt/conda/aws/bin/python awscli
ln -s ../aws/bin/aws "$folder/bin/aws"
chown -R 1000:100 "$folder"
