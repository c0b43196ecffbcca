"""IAM policies for the features."""
