"""Limits of accounts in Slurm's accounting: GPU minutes of an account and all accounts below it (``GrpTRESMins``)."""

from __future__ import annotations

import re
import shlex

from hyperpod_jlab.core.cluster import AccountLimit
from hyperpod_jlab.core.errors import DeniedError, InvalidInputError, NotFoundError
from hyperpod_jlab.engines.slurm.client import SlurmClient, parse_error
from hyperpod_jlab.engines.slurm.facts import ClusterFacts, SlurmSettings

_ACCOUNT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")
_GPU_MINUTES = re.compile(r"(?:^|,)gres/gpu=(\d+)(?:,|$)")
_MAX_HOURS = 1e9


class SlurmAccountLimits:
    """Limits of accounts, for Slurm administrators."""

    def __init__(self, client: SlurmClient, facts: ClusterFacts) -> None:
        self._client = client
        self._facts = facts

    async def account_limit(self, account: str, gpu_hours: float) -> AccountLimit:
        """What sets the limit of an account's GPU-hours, and the limit now.

        Raises:
            InvalidInputError: A value is not valid.
            NotFoundError: The accounting does not know the account.
            UnreachableError: There is no accounting.
        """
        if not _ACCOUNT.fullmatch(account):
            raise InvalidInputError(
                f"--account: '{account[:60]}' is not a name", detail={"field": "account"}
            )
        if not 0 <= gpu_hours <= _MAX_HOURS:
            raise InvalidInputError(
                f"--gpu-hours: must be from 0 to {_MAX_HOURS:.0f}, not {gpu_hours:g}",
                detail={"field": "gpu_hours"},
            )
        settings = await self._facts.settings()
        cluster = settings.cluster
        text = await self._client.query(
            [
                *("sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "associations"),
                *("where", f"accounts={account}", f"clusters={cluster}"),
                "format=User,GrpTRESMins",
            ]
        )
        limits = [
            line.partition("|")[2] for line in text.splitlines() if line.partition("|")[0] == ""
        ]
        if not limits:
            raise NotFoundError(
                f"Slurm's accounting has no account {account} on the cluster {cluster}",
                code="no_such_account",
                hint=f"create it: sacctmgr add account {account} cluster={cluster}",
                detail={"field": "account"},
            )
        match = _GPU_MINUTES.search(limits[0])
        current = int(match[1]) / 60 if match else None
        command = shlex.join(_command(account, cluster, gpu_hours))
        return AccountLimit(
            account, gpu_hours, current, (command,), tuple(limit_warnings(settings))
        )

    async def set_limit(self, limit: AccountLimit) -> None:
        """Set a limit.

        Raises:
            DeniedError: This user may not.
        """
        cluster = (await self._facts.settings()).cluster
        output = await self._client.run(_command(limit.account, cluster, limit.gpu_hours))
        if output.code == 0 or limit.is_set:
            return
        error = parse_error("sacctmgr", output)
        if isinstance(error, DeniedError):
            raise DeniedError(
                "you do not have the permission to change limits of Slurm accounts: only administrators and operators of Slurm may do this",
                code="missing_right",
                hint=f"ask one to run: {'; '.join(limit.commands)}",
                detail=error.detail,
            )
        raise error


def _command(account: str, cluster: str, gpu_hours: float) -> list[str]:
    return [
        *("sacctmgr", "--immediate", "modify", "account"),
        *("where", f"name={account}", f"cluster={cluster}"),
        *("set", f"GrpTRESMins=gres/gpu={round(gpu_hours * 60)}"),
    ]


def limit_warnings(settings: SlurmSettings) -> list[str]:
    """Why limits of GPU-hours would not hold, or not by the month; one sentence each.

    Args:
        settings: The controller's configuration.
    """
    warnings = []
    if not settings.enforced & {"limits", "safe", "all"}:
        warnings.append(
            "Slurm does not enforce limits: add limits to AccountingStorageEnforce in slurm.conf."
        )
    if "gres/gpu" not in settings.counted:
        warnings.append(
            "Slurm does not count GPUs: add gres/gpu to AccountingStorageTRES in slurm.conf."
        )
    if settings.usage_reset != "MONTHLY":
        warnings.append(
            f"Slurm does not reset the usage each month (PriorityUsageResetPeriod={settings.usage_reset}): "
            "set it to MONTHLY in slurm.conf."
        )
    if settings.usage_decays:
        warnings.append(
            "Slurm lets the usage decay, so more than the limit can be used: set PriorityDecayHalfLife=0 in slurm.conf."
        )
    return warnings
