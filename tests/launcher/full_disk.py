"""What happens on a disk without room: `python -m tests.launcher.full_disk CASE FOLDER`, with a small file system at FOLDER."""

import json
import os
import sys
import sysconfig
import tempfile
from pathlib import Path

from tests.launcher.conftest import make_bundle
from tests.tiny_packages import wheel


def environment(folder: Path) -> dict[str, object]:
    """Build an environment that is larger than the disk."""
    with tempfile.TemporaryDirectory() as outside:
        text = "x" * (8 << 20)
        packages = Path(outside, "packages")
        wheel(packages, "large", extra={"large.txt": text})
        bundle = make_bundle(folder / ".hyperpod" / "runs" / "ab" / "one")
        document = {
            "format": 1,
            "platform": sysconfig.get_platform(),
            "requirements": f"--no-index\n--find-links {packages}\nlarge\n",
        }
        (bundle.folder / "code" / "environment.json").write_text(json.dumps(document))
        bundle.script("import large", environment="code/environment.json")
        variables = {**os.environ, "UV_CACHE_DIR": str(Path(outside, "cache"))}
        done = bundle.run(env=variables)
        return {
            "exit_code": done.returncode,
            "error": bundle.node()["error"],
            "builds": [str(path) for path in folder.glob(".hyperpod/environments/*")],
        }


if __name__ == "__main__":
    print(json.dumps({"environment": environment}[sys.argv[1]](Path(sys.argv[2]))))
