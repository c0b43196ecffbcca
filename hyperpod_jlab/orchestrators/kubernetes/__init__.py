"""The Kubernetes engine: a run as a PyTorchJob, over an async client of our own."""
