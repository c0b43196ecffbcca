"""Lifecycle configurations of Studio: scripts that make a space ready for the cluster when it starts."""
