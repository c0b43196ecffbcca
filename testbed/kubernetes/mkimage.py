"""mkimage.py NAME ROOTDIR|LAYER.tar OUT.tar [--entrypoint JSON] [--cmd JSON] [--env K=V ...] [--user UID].

Makes a one-layer OCI image archive that `ctr images import` reads, from a root folder or a tar of one.
"""

import argparse
import hashlib
import io
import json
import platform
import tarfile
import tempfile
from pathlib import Path

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OCI = "application/vnd.oci.image"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def layer_of(folder: Path, path: Path):
    """All of the folder's files, as root's."""

    def as_root(info: tarfile.TarInfo):
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return info

    with tarfile.open(path, "w") as tar:
        for entry in sorted(folder.iterdir()):
            tar.add(entry, entry.name, filter=as_root)


class Blobs(dict):
    """JSON blobs by their hash."""

    def put(self, value, kind: str):
        """Keeps it; returns what names it in other blobs."""
        data = json.dumps(value, sort_keys=True).encode()
        name = hashlib.sha256(data).hexdigest()
        self[name] = data
        return {"mediaType": f"{OCI}.{kind}+json", "digest": "sha256:" + name, "size": len(data)}


def write(options: argparse.Namespace, layer: Path, out: Path):
    """The archive, with one layer."""
    with layer.open("rb") as file:
        digest = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
    size = layer.stat().st_size
    settings = {"Env": [PATH, *options.env], "Entrypoint": options.entrypoint, "Cmd": options.cmd, "User": options.user}
    blobs = Blobs()
    config = blobs.put(
        {
            "architecture": ARCHITECTURES[platform.machine()],
            "os": "linux",
            "config": {key: value for key, value in settings.items() if value},
            "rootfs": {"type": "layers", "diff_ids": [digest]},
        },
        "config.v1",
    )
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": config,
        "layers": [{"mediaType": f"{OCI}.layer.v1.tar", "digest": digest, "size": size}],
    }
    named = blobs.put(manifest, "manifest.v1")
    named["annotations"] = {"io.containerd.image.name": options.name}
    index = {"schemaVersion": 2, "manifests": [named]}
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode()}
    files |= {"blobs/sha256/" + name: data for name, data in blobs.items()}
    with tarfile.open(out, "w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        info = tarfile.TarInfo("blobs/sha256/" + digest.removeprefix("sha256:"))
        info.size = size
        with layer.open("rb") as file:
            tar.addfile(info, file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--entrypoint", type=json.loads)
    parser.add_argument("--cmd", type=json.loads)
    parser.add_argument("--user")
    parser.add_argument("--env", action="append", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.out.resolve().parent) as folder:
        layer = options.source
        if layer.is_dir():
            layer = Path(folder, "layer.tar")
            layer_of(options.source, layer)
        image = Path(folder, "image.tar")
        write(options, layer, image)
        image.replace(options.out)


if __name__ == "__main__":
    main()
