"""Nodes, queues and jobs of the cluster."""
