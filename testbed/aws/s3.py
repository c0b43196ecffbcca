"""S3's one operation that we use: which keys a bucket has below a prefix."""

from __future__ import annotations

from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.replies import ApiError
from testbed.aws.state import START


def list_objects(request: Request) -> dict[str, Any]:
    given = request.given
    bucket, prefix = given["Bucket"], given.get("Prefix", "")
    keys = request.account.ground.buckets.get(bucket)
    if keys is None:
        raise ApiError("NoSuchBucket", "The specified bucket does not exist", 404)
    most = given.get("MaxKeys", 1000)
    found = sorted(key for key in keys if key.startswith(prefix))
    contents = [{"Key": key, "LastModified": START, "Size": 100, "StorageClass": "STANDARD"} for key in found[:most]]
    return {
        "Name": bucket,
        "Prefix": prefix,
        "MaxKeys": most,
        "KeyCount": len(contents),
        "IsTruncated": len(found) > most,
        **({"Contents": contents} if contents else {}),
    }


def _resource(request: Request) -> Resource:
    bucket = request.given["Bucket"]
    return Resource(bucket, f"arn:{request.account.partition}:s3:::{bucket}")


SERVICE = Service("s3", {"ListObjectsV2": list_objects}, _resource, {"ListObjectsV2": "s3:ListBucket"})
