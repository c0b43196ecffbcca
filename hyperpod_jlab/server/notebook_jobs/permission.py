"""What Jupyter's authorizer says about the user of the current request. jupyter-scheduler itself only asks for a login."""

from __future__ import annotations

import json
from typing import Literal

from jupyter_core.utils import ensure_async
from jupyter_server import CallContext
from jupyter_server.base.handlers import APIHandler, JupyterHandler

from hyperpod_jlab.core.errors import DeniedError
from hyperpod_jlab.server.base import AUTH_RESOURCE

Action = Literal["read", "execute"]


async def is_allowed(action: Action) -> bool:
    """Whether the user of the current request may do this with our clusters; false outside of a request."""
    handler = CallContext.get(CallContext.JUPYTER_HANDLER)
    if not isinstance(handler, JupyterHandler) or handler.current_user is None:
        return False
    answer = handler.authorizer.is_authorized(handler, handler.current_user, action, AUTH_RESOURCE)
    return bool(await ensure_async(answer))


async def require(action: Action) -> None:
    """End the current request with 403 unless its user may do this with our clusters.

    Raises:
        DeniedError: The user may not, or no request is known.
    """
    if await is_allowed(action):
        return
    error = DeniedError(f"you do not have the permission to {action} notebook jobs on clusters")
    handler = CallContext.get(CallContext.JUPYTER_HANDLER)
    if isinstance(handler, APIHandler):
        # jupyter-scheduler makes a 500 of every exception, but a response that is finished stays.
        handler.set_status(error.status)
        handler.finish(json.dumps(error.to_dict()))
    raise error
