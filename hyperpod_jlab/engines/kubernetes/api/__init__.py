"""The API server: credentials, requests, watches, pod logs."""
