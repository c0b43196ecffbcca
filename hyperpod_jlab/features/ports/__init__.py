"""Ports and shells of running runs."""
