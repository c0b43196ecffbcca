"""Events of HyperPod clusters."""
