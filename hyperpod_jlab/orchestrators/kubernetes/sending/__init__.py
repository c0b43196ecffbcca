"""From a spec to an object that the cluster has taken."""
