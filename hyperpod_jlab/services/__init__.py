"""What the faces call: configuration, runs, clusters, logs. The only layer with state."""
