"""The cluster as tables: nodes, queues and everybody's jobs."""
