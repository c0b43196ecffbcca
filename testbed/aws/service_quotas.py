"""Service Quotas' one operation that we use: the quotas of SageMaker."""

from __future__ import annotations

from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.pages import page
from testbed.aws.replies import ApiError


def list_service_quotas(request: Request) -> dict[str, Any]:
    service = request.given["ServiceCode"]
    if service != "sagemaker":
        raise ApiError("NoSuchResourceException", f"testbed/aws knows no quotas of {service}")
    found = [
        {"ServiceCode": service, "QuotaCode": f"L-{number:08X}", "QuotaName": name, "Value": value}
        for number, (name, value) in enumerate(sorted(request.account.ground.quotas.items()))
    ]
    shown, following = page(found, lambda one: [one["QuotaCode"]], request.given)
    return {"Quotas": shown, **following}


SERVICE = Service(
    "service-quotas",
    {"ListServiceQuotas": list_service_quotas},
    lambda _: Resource(None, "*"),
    {"ListServiceQuotas": "servicequotas:ListServiceQuotas"},
)
