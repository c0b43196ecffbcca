"""AWS Lambda functions that configure a domain as ``hpj admin apply`` does: for CloudFormation, for new profiles, and on a schedule.

They run in an account whose VPC may have no internet access: their package contains all dependencies (``make lambda``).
"""
