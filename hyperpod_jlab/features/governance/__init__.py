"""Task governance: quotas and policies of HyperPod clusters on EKS."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (Command("quotas", "Show the team quotas of a HyperPod cluster on EKS.", section="Clusters", rank=60),)

ROUTES = (Route("get", "clusters/{cluster}/governance", "read", "routes:show_governance"),)
