"""The API server: credentials, requests, watches, pods' logs."""
