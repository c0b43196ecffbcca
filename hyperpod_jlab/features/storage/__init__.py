"""File systems, partitions, and files that are linked to S3."""
