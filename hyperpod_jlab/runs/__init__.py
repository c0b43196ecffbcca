"""Runs: submit, list, show, act, clean; their routes and commands."""
