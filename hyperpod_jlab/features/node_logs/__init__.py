"""Logs of HyperPod nodes in CloudWatch."""
