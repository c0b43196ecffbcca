"""The embedded cluster: N nodes as N process groups on this machine, for trials, teaching and smoke tests."""
