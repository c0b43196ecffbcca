"""Write src/api/generated/openapi.json: the REST API's OpenAPI document, from which `jlpm build:types` generates the front end's types.

It needs the packages that hyperpod_jlab needs, but not hyperpod_jlab itself: the build runs it before the package is installed.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "src" / "api" / "generated" / "openapi.json"


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from hyperpod_jlab.server.openapi import describe_api

    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(describe_api(), ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
