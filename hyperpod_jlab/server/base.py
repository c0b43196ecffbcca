"""Shared by all our HTTP handlers: the resource for the authorizer, and the error shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, Literal, ParamSpec, TypeVar, cast

import tornado.web
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado.web import HTTPError, RequestHandler

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.server.process import ServerProcess

API_VERSION: Final = 1
API_PREFIX: Final = f"/hyperpod/api/v{API_VERSION}"

_CODES: Final = {400: "invalid_input", 401: "denied", 403: "denied", 404: "not_found", 409: "conflict"}

AUTH_RESOURCE: Final = "hyperpod"
"""The resource name for a Jupyter authorizer, with the action ``read``, ``write`` or ``execute``."""


_P = ParamSpec("_P")
_R = TypeVar("_R")


def guarded(action: Literal["read", "write", "execute"]) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a verb: require a user, then the authorizer's permission for this action on our resource.

    Jupyter's bare ``@authorized`` caches the action and resource of its first call, so a
    method that serves two verbs, or two handlers, would authorise the second as the first. Here both
    are always given, and the order of the two checks is fixed.
    """

    def decorate(method: Callable[_P, _R]) -> Callable[_P, _R]:
        checked: Any = authorized(action=action, resource=AUTH_RESOURCE)(method)
        # Outermost, since Jupyter recognises a guarded handler by tornado's own wrapper.
        return cast("Callable[_P, _R]", tornado.web.authenticated(checked))

    return decorate


class ErrorShape(JupyterHandler):
    """Responds to every error with the error shape and its real HTTP status."""

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write an exception as ``{code, message, hint, detail}``."""
        exc_info = kwargs.get("exc_info")
        error = exc_info[1] if exc_info else None
        if isinstance(error, HyperpodError):
            self.set_status(error.status)
            body = error.to_dict()
        else:
            body = _error_body(status_code, error)
        if status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            self.set_header("Allow", ", ".join(self._verbs()))
        self.log.warning("%s %s: %s", self.request.method, self.request.path, body["message"])
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(body))

    def log_exception(self, *exc_info: Any) -> None:
        """Log a traceback only for internal errors, not for user errors."""
        if not isinstance(exc_info[1], HyperpodError):
            super().log_exception(*exc_info)

    def _verbs(self) -> list[str]:
        default_verb = RequestHandler.get.__name__
        verbs = ("GET", "POST")
        return [verb for verb in verbs if getattr(self, verb.lower()).__name__ != default_verb]


class HyperPodHandler(ExtensionHandlerMixin, ErrorShape, APIHandler):
    """Base of the REST handlers. Every verb of every subclass carries `guarded`."""

    auth_resource = AUTH_RESOURCE

    @property
    def process(self) -> ServerProcess:
        """The state that all requests share."""
        return process_of(self)


def process_of(handler: ExtensionHandlerMixin) -> ServerProcess:
    """The state that all requests to the handler's server share."""
    app: Any = handler.extensionapp
    process: ServerProcess = app.process
    return process


def _error_body(status_code: int, error: BaseException | None) -> dict[str, Any]:
    """The error shape of an error from tornado or Jupyter, or of an internal error."""
    try:
        status = HTTPStatus(status_code)
        phrase, name = status.phrase, status.name.lower()
    except ValueError:
        phrase, name = f"HTTP {status_code}", f"http_{status_code}"
    if isinstance(error, HTTPError):
        message = error.reason or error.log_message or phrase
        return {"code": _CODES.get(status_code, name), "message": message, "hint": None, "detail": {}}
    # The cause is only logged: it may contain paths and names that this user must not see.
    return {
        "code": HyperpodError.default_code,
        "message": phrase,
        "hint": "the server's log has the details",
        "detail": {},
    }
