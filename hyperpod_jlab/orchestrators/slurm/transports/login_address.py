"""A login node as the configuration names it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hyperpod_jlab.model.errors import InvalidInputError

_FORM = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9._@+\\-]*)@)?"
    r"(?:(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]*)|\[(?P<ip>[0-9A-Fa-f:.]+(?:%[A-Za-z0-9]+)?)\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
)


@dataclass(frozen=True)
class LoginAddress:
    """Where a login node is: a host that ssh knows, or one of the ``Host`` names in ssh's configuration."""

    text: str
    host: str
    user: str | None
    port: int | None

    @classmethod
    def of(cls, text: str, user: str | None = None) -> LoginAddress:
        """Read ``[user@]host[:port]``; ``[...]`` stand around an IPv6 address.

        Args:
            text: What the configuration says.
            user: Who logs in when the text does not say.

        Raises:
            InvalidInputError: It has another form, so that ssh might take it for an option.
        """
        found = _FORM.fullmatch(text)
        port = int(found["port"]) if found and found["port"] else None
        if found is None or (port is not None and not 1 <= port <= 65535):
            raise InvalidInputError(
                f"{text!r} is no login node",
                code="invalid_login_node",
                hint="write [user@]host or [user@]host:port; the host may be a name of ssh's configuration",
                detail={"field": "login_nodes", "value": text},
            )
        return cls(text, found["host"] or found["ip"], found["user"] or user, port)

    def words(self) -> list[str]:
        """The words for ssh that say where to, without the host."""
        user = ["-l", self.user] if self.user is not None else []
        return [*user, "-p", str(self.port)] if self.port is not None else user
