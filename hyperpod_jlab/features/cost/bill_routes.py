"""Requests about the bill of HyperPod clusters."""

from __future__ import annotations

from hyperpod_jlab.features.cost.bill import read_compared_bill
from hyperpod_jlab.features.cost.bill_models import ComparedBill
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel


class BillQuery(RequestModel):
    """Which bill."""

    tag: str | None = None
    """The tag by which AWS assigns the cluster's costs, as KEY=VALUE. Default: the cluster's tag ClusterName."""


class BillRequest(BillQuery):
    """Which bill, and whether it may cost money."""

    ask: bool = False
    """Make requests to Cost Explorer, for which AWS charges $0.01 each, unless there is an answer of the last six hours."""
    refresh: bool = False
    """Make them even then."""


async def show_bill(call: Call, cluster: str, query: BillQuery) -> ComparedBill:
    """Get the bill of a HyperPod cluster if AWS was asked for it in the last six hours. It makes no paid request."""
    return await read_compared_bill(await call.hyperpod(), cluster, tag=query.tag)


async def request_bill(call: Call, cluster: str, body: BillRequest) -> ComparedBill:
    """Ask Cost Explorer for the bill of a HyperPod cluster. AWS charges for it, so ask must be true."""
    services = await call.hyperpod()
    return await read_compared_bill(
        services,
        cluster,
        tag=body.tag,
        ask=body.ask,
        refresh=body.refresh and body.ask,
    )
