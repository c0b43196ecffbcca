"""The Kubernetes engine: a run as a PyTorchJob, TrainJob, HyperPodPyTorchJob or Job."""
