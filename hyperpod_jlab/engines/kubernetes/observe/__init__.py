"""Observation of runs: their objects, pods, logs and records."""
