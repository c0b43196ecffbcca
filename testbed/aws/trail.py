"""CloudTrail's one operation that we use: what was done in the account. Events come there by `Account.trail`, as plain data."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.pages import page


def lookup_events(request: Request) -> dict[str, Any]:
    wanted = {one["AttributeKey"]: one["AttributeValue"] for one in request.given.get("LookupAttributes", ())}
    found = [one for one in request.account.trail if one["eventName"] == wanted.get("EventName", one["eventName"])]
    shown, following = page(found, lambda one: [one["eventTime"], one["eventID"]], request.given)
    return {"Events": [_event(one) for one in shown], **following}


def _event(record: dict[str, Any]) -> dict[str, Any]:
    return {
        "EventId": record["eventID"],
        "EventName": record["eventName"],
        "EventTime": datetime.fromisoformat(record["eventTime"]),
        "EventSource": record["eventSource"],
        "CloudTrailEvent": json.dumps(record),
    }


SERVICE = Service("cloudtrail", {"LookupEvents": lookup_events}, lambda _: Resource(None, "*"))
