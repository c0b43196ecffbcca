"""Functions of AWS Lambda that wire a domain as ``hpj admin apply`` does: for CloudFormation, for profiles that are made, and by a schedule.

They run in an account whose VPC may have no way out: all that they need is in their package (``make lambda``).
"""
