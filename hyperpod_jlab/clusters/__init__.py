"""Clusters: configuration, what the scheduler and AWS know of them; their routes and commands."""
