"""A monthly AWS budget with alerts for a HyperPod cluster."""
