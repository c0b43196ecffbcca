"""Accounts and qualities of service that a user may name, from the accounting (sacctmgr)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NO_ACCOUNTING = "accounting_storage/none"


@dataclass(frozen=True)
class Settings:
    """What `scontrol show config` says that matters here.

    Attributes:
        cluster: The cluster's own name.
        accounting: Whether there is a database of accounts.
        enforced: What of it is enforced: associations, limits, qos, ...
        private: What of others is not shown to a user (PrivateData): jobs, users, ...
    """

    cluster: str
    accounting: bool
    enforced: frozenset[str]
    private: frozenset[str] = frozenset()


def parse_settings(text: str) -> Settings:
    """What `scontrol show config` was answered."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            values.setdefault(name.strip(), value.strip())
    enforced = values.get("AccountingStorageEnforce", "")
    return Settings(
        cluster=values.get("ClusterName", ""),
        accounting=values.get("AccountingStorageType", NO_ACCOUNTING)
        not in {NO_ACCOUNTING, "(null)", ""},
        enforced=frozenset(word for word in enforced.split(",") if word not in {"none", ""}),
        private=frozenset(values.get("PrivateData", "").split(",")),
    )


@dataclass(frozen=True)
class Accounts:
    """What one user may charge, and how.

    Attributes:
        user: The user's name on the cluster.
        qos: Names of the qualities of service by account.
    """

    user: str
    qos: Mapping[str, frozenset[str]]

    @property
    def names(self) -> list[str]:
        """The accounts."""
        return sorted(self.qos)

    def qos_of(self, account: str | None) -> list[str]:
        """The qualities of service with an account, or with any."""
        of = self.qos.values() if account is None else [self.qos.get(account, frozenset())]
        return sorted(frozenset[str]().union(*of))


def accounts_command(user: str, cluster: str) -> list[str]:
    """The command that lists the associations of a user."""
    return [
        "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "associations",
        "where", f"users={user}", f"clusters={cluster}", "format=Account,QOS",
    ]  # fmt: skip


def parse_accounts(user: str, text: str) -> Accounts:
    """What the command of `accounts_command` was answered."""
    qos: dict[str, frozenset[str]] = {}
    for row in text.splitlines():
        account, bar, names = row.partition("|")
        if bar and account:
            known = frozenset(name for name in names.split(",") if name)
            qos[account] = qos.get(account, frozenset()) | known
    return Accounts(user, qos)
