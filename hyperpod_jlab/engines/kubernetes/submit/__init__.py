"""Submits a spec as an object in the cluster."""
