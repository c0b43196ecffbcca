"""The configuration of a HyperPod cluster before it is made: what stands in its files, and what is wrong with it."""
