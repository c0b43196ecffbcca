"""What the cluster has to say about a run before it is sent."""
