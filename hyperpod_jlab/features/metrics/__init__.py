"""Metrics of clusters, nodes and runs."""
