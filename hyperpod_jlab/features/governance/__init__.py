"""Task governance: quotas and policies of HyperPod clusters on EKS."""
