"""AWS: HyperPod clusters, and the Studio environment. boto3 is imported at the first call to AWS."""
