"""Terminals on nodes, and SSH configuration for login nodes."""
