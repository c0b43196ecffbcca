"""What the cluster holds: nodes, queues, jobs."""
