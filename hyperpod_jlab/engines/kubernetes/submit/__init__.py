"""From a spec to an object in the cluster."""
