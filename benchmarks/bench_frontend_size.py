"""What a browser loads of the front end: the built files, compressed as servers do. Needs a production build (`make build`).

python benchmarks/bench_frontend_size.py [--json] [--quick]
"""

from __future__ import annotations

import sys
from pathlib import Path

from log_fixtures import arguments, report

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from check_wheel_content import MAX_FRONT_END_KB, compressed_kb  # noqa: E402

STATIC = ROOT / "hyperpod_jlab/labextension/static"


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    files = sorted(path for path in STATIC.iterdir() if path.suffix == ".js")
    sizes = {path: compressed_kb(path.read_bytes()) for path in files}
    rows = [
        {"file": path.name[:60], "gzip kB": round(size, 1)}
        for path, size in sorted(sizes.items(), key=lambda item: -item[1])[:6]
    ]
    total = round(sum(sizes.values()), 1)
    rows.append({"file": f"all {len(files)} (limit {MAX_FRONT_END_KB})", "gzip kB": total})
    report(options, "The front end's built files", rows)


if __name__ == "__main__":
    main()
