"""The control planes of EKS clusters, as far as the account knows of them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class AccessEntry:
    """What a role is in an EKS cluster: a user of these groups. Without a name its sessions are called by their ARNs, as on EKS."""

    groups: tuple[str, ...] = ()
    username: str | None = None


@dataclass
class ControlPlane:
    """The control plane of an EKS cluster that answers: where, by which authority (base64 of its certificate), and whom it lets in (roles by their ARNs).

    A private one says that its address is known in its VPC only.
    """

    endpoint: str
    authority: str
    entries: dict[str, AccessEntry] = field(default_factory=dict)
    private: bool = False
