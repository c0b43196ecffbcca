"""Lifecycle configurations of Studio: scripts that prepare a space for the cluster at startup."""
