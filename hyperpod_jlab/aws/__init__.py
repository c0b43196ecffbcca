"""What AWS knows: HyperPod clusters, and where in Studio this is. boto3 is imported when AWS is first asked, not before."""
