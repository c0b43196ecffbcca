"""Write hyperpod_jlab/server/openapi.json: the REST API's document, from which the front end's build makes its types.

`--check` writes nothing and exits with 1 when the file is not up to date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hyperpod_jlab.server.openapi import document

FILE = Path(__file__).parents[1] / "hyperpod_jlab" / "server" / "openapi.json"


def main() -> int:
    described = document()
    # The version is the wheel's business: it changes without the API.
    info = {name: value for name, value in described["info"].items() if name != "x-package-version"}
    text = json.dumps(described | {"info": info}, indent=1) + "\n"
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text, encoding="utf-8")
        return 0
    if not FILE.exists() or FILE.read_text(encoding="utf-8") != text:
        print(f"{FILE} is not up to date; run: {sys.argv[0]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
