"""Mount the cluster's FSx file system in the spaces of a Studio domain."""
