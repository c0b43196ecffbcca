"""Whether the far side's Python can load what this side's Python pickled."""

from __future__ import annotations

import sys

from hyperpod_jlab.model.finding import Finding


def python_version_finding(local: tuple[int, ...] | None, far: tuple[int, ...]) -> Finding | None:
    """The finding that refuses a function when the two Pythons differ, or None when they agree.

    A pickled function holds byte code, which is only good for the minor version that compiled it.

    Args:
        local: Version of the Python that pickled, such as ``(3, 11, 7)``; None for this process.
        far: Version of the Python that will run it.
    """
    here = (local or tuple(sys.version_info[:3]))[:2]
    if here == far[:2]:
        return None
    here_text, far_text = (".".join(str(part) for part in version[:2]) for version in (here, far))
    return Finding(
        level="error",
        code="python_version",
        message=f"the function was pickled by Python {here_text}, and the job would run it with Python {far_text}",
        hint=f"choose a Python {here_text} on the cluster with --python or --image, or send a script or notebook instead",
        field="environment.python",
    )
