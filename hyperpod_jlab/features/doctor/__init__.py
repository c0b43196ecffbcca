"""Checks of each step a run takes, from this machine to a node and back."""
