"""An AWS API on loopback for tests and demos, checked against botocore's own service models in both directions."""
