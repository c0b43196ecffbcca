"""Load the installed server extension and fail when one of its endpoints lets anybody in without a token.

Jupyter Server itself finds such endpoints, but only warns. It can't see a missing authorizer: tests/server does.
"""

import sys
import warnings

from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import JupyterServerAuthWarning


def main() -> int:
    app = ServerApp(
        allow_unauthenticated_access=False,
        jpserver_extensions={"hyperpod_jlab": True},
        reraise_server_extension_failures=True,
    )
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        app.initialize(argv=[], find_extensions=False, new_httpserver=False)
    found = [str(r.message) for r in records if issubclass(r.category, JupyterServerAuthWarning)]
    print("\n".join(found) if found else "Every endpoint asks for a user.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
