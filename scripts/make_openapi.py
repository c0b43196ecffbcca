"""Write hyperpod_jlab/server/openapi.json: the REST API's OpenAPI document, from which the front end's types are generated.

`--check` writes nothing and exits with 1 when the file is not up to date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hyperpod_jlab.server.openapi import document

FILE = Path(__file__).parents[1] / "hyperpod_jlab" / "server" / "openapi.json"


def text() -> str:
    """The document without the package's version, which every release changes. A line for each value, but no indentation: a wheel is 0.1 MB smaller."""
    described = document()
    about = {name: one for name, one in described["info"].items() if name != "x-package-version"}
    return json.dumps({**described, "info": about}, indent=0, ensure_ascii=False) + "\n"


def main() -> int:
    made = text()
    if "--check" in sys.argv[1:]:
        stale = not FILE.exists() or FILE.read_text(encoding="utf-8") != made
        print("run scripts/make_openapi.py" if stale else f"{FILE}: up to date")
        return int(stale)
    FILE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
