"""Reboot, replace, drain and resume nodes."""
