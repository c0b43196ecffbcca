"""The embedded cluster: N nodes as N process groups on this machine. For trying, teaching, smoke runs and tests; it is no scheduler."""
