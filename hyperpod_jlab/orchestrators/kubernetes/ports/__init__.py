"""Ports of pods, reached through this machine."""
