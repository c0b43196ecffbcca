"""The Jupyter Server extension: HTTP in front of the services. The only package that imports Jupyter."""

from hyperpod_jlab.contributions import Route

ROUTES = (
    Route("get", "version", "read", "app:version"),
    Route("get", "openapi.json", "read", "openapi:show_openapi"),
    Route("get", "aws/calls", "read", "aws_calls:show_aws_calls"),
    Route("get", "aws/regions", "read", "aws_calls:list_aws_regions"),
)
