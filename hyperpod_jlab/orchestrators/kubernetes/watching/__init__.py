"""What becomes of runs: their objects, their pods, their logs."""
