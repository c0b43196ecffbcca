"""The embedded cluster: N nodes as N process groups on this machine, to try things, to teach, for a smoke run."""
