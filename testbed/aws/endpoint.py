"""The endpoint without its socket: a request in, checked against the model; an answer out, checked too."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from functools import cache
from typing import Any

import botocore.session

from testbed.aws import (
    aps,
    cbor_wire,
    cloudwatch,
    ec2,
    ec2_wire,
    eks,
    fsx,
    logs,
    mlflow,
    pricing,
    rest_wire,
    roles,
    s3,
    s3_wire,
    sagemaker,
    ssm,
    sts,
    trail,
)
from testbed.aws.cbor_wire import CborWire
from testbed.aws.ec2_wire import Ec2Wire
from testbed.aws.faults import Faults
from testbed.aws.iam import Asked, Verdict, decide, denied
from testbed.aws.operations import Request, Resource, Service
from testbed.aws.presigned import opened
from testbed.aws.query_wire import QueryWire
from testbed.aws.replies import ApiError, DriftError, Reply
from testbed.aws.rest_wire import RestWire
from testbed.aws.s3_wire import S3Wire
from testbed.aws.shapes import problems
from testbed.aws.signature import PRESIGNED_WINDOW, WINDOW, Scope, check, scope_of
from testbed.aws.state import Account
from testbed.aws.wire import JsonWire, Wire

SERVICES = {
    "sagemaker": sagemaker.SERVICE,
    "sts": sts.SERVICE,
    "ec2": ec2.SERVICE,
    "eks": eks.SERVICE,
    "fsx": fsx.SERVICE,
    "logs": logs.SERVICE,
    "ssm": ssm.SERVICE,
    "iam": roles.SERVICE,
    "s3": s3.SERVICE,
    "monitoring": cloudwatch.SERVICE,
    "cloudtrail": trail.SERVICE,
    "pricing": pricing.SERVICE,
}
"""By the name that requests are signed for."""


@cache
def service_model(name: str) -> Any:
    """A service as botocore knows it. To load one takes a tenth of a second, so it is done once in a process."""
    return botocore.session.Session().get_service_model(name)


def wire_of(model: Any, headers: Message, path: str, verb: str = "POST") -> Wire:
    """The protocol of a request. A service may speak several; which one is asked for depends on how new the client's botocore is."""
    spoken = model.metadata.get("protocols", [model.metadata["protocol"]])
    if cbor_wire.PROTOCOL in spoken and headers.get("smithy-protocol") == "rpc-v2-cbor":
        return CborWire(model, path)
    if s3_wire.PROTOCOL in spoken:
        return S3Wire(model, verb, path)
    if rest_wire.PROTOCOL in spoken:
        return RestWire(model, verb, path)
    if ec2_wire.PROTOCOL in spoken:
        return Ec2Wire(model)
    if "query" in spoken and "X-Amz-Target" not in headers:
        return QueryWire(model)
    return JsonWire(model)


@dataclass(frozen=True)
class Call:
    """A call that reached a service, with its input as it came."""

    action: str
    region: str
    given: dict[str, Any]


@dataclass
class Endpoint:
    """All services over one account.

    Attributes:
        account: What there is.
        faults: What goes wrong.
        calls: What was asked, in order.
        most_at_once: The most calls that were under way at the same time.
        drift: Answers of ours that the model does not allow; a test that sees one fails.
    """

    account: Account = field(default_factory=Account)
    faults: Faults = field(default_factory=Faults)
    calls: list[Call] = field(default_factory=list)
    most_at_once: int = 0
    drift: list[str] = field(default_factory=list)
    _under_way: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def answer(self, headers: Message, body: bytes, path: str = "/", verb: str = "POST") -> Reply:
        """Answer one request, whatever is wrong with it."""
        request_id = f"00000000-0000-4000-8000-{next(self._numbers):012d}"
        try:
            presigned = opened(headers, path)
            if presigned is not None:
                headers, body = presigned.headers, presigned.body
            scope = scope_of(headers)
        except ApiError as error:
            return JsonWire(service_model("sagemaker")).fail(error, request_id)
        if scope.service == aps.SERVICE:
            return self._query(scope, headers, body, path, verb)
        if path.startswith(mlflow.PREFIX):
            return self._ask_mlflow(scope, headers, body, path, verb)
        service = SERVICES.get(scope.service)
        if service is None:
            return Reply(501, f"testbed/aws has no service {scope.service}".encode())
        model = service_model(service.name)
        wire = wire_of(model, headers, path, verb)
        now = datetime.now(UTC) + self.faults.clock
        try:
            window = WINDOW if presigned is None else PRESIGNED_WINDOW
            caller = check(headers, scope, self.account, now, window)
            name, given = wire.read(headers, body)
            operation = self._operation(service, name)
            request = Request(self.account, scope.region, caller, given)
            with self._counted(Call(service.action(name), scope.region, given)):
                answer = self._do(service, operation, request)
            return wire.write(operation, answer, request_id)
        except ApiError as error:
            return wire.fail(error, request_id)
        except DriftError as error:
            self.drift.append(str(error))
            return wire.fail(ApiError("TestbedDrift", str(error), 501), request_id)

    def _query(self, scope: Scope, headers: Message, body: bytes, path: str, verb: str) -> Reply:
        """A query of a workspace of Prometheus, for which botocore has no model."""
        try:
            caller = check(headers, scope, self.account, datetime.now(UTC) + self.faults.clock)
            query = aps.Query(headers, scope, caller, verb, path, body)
            return aps.answer(
                *(self.account, self.faults, query), lambda given: self._counted(Call(aps.ACTION, scope.region, given))
            )
        except ApiError as error:
            return aps.fail(error)

    def _ask_mlflow(self, scope: Scope, headers: Message, body: bytes, path: str, verb: str) -> Reply:
        """A request to an MLflow server."""
        try:
            caller = check(headers, scope, self.account, datetime.now(UTC) + self.faults.clock)
            query = aps.Query(headers, scope, caller, verb, path, body)
            return mlflow.answer(
                *(self.account, self.faults, query), lambda action: self._counted(Call(action, scope.region, {}))
            )
        except ApiError as error:
            return mlflow.fail(error)

    @staticmethod
    def _operation(service: Service, name: str) -> Any:
        model = service_model(service.name)
        if name not in model.operation_names:
            raise ApiError("UnknownOperationException", f"there is no operation {name}")
        if name not in service.operations:
            raise ApiError("TestbedHasNone", f"testbed/aws has no {service.name}:{name}", 501)
        return model.operation_model(name)

    def _do(self, service: Service, operation: Any, request: Request) -> dict[str, Any]:
        """The answer, with what was put on after its check."""
        action = service.action(operation.name)
        time.sleep(self.faults.slow.get(action, 0))
        self.faults.before(action)
        wrong = list(problems(request.given, operation.input_shape, wire=True))
        if wrong:
            some = "; ".join(wrong)
            errors = "error" if len(wrong) == 1 else "errors"
            words = f"{len(wrong)} validation {errors} detected: {some}"
            raise ApiError("ValidationException", words)
        self._check_right(operation.name, service, request)
        with self.changing():
            answer = service.operations[operation.name](request)
        wrong = list(problems(answer, operation.output_shape, wire=False))
        if wrong:
            raise DriftError(f"{action}: {'; '.join(wrong)}")
        self.faults.after(action)
        change = self.faults.later.get(action)
        if change is not None:
            change(answer)
        return answer

    def _check_right(self, operation: str, service: Service, request: Request) -> None:
        """Ask the caller's policies, and the rights that were taken away."""
        protocol = service_model(service.name).metadata["protocol"]
        self._ask(service.action(operation), service.resource(request), request, protocol)
        besides = service.besides.get(operation)
        for action, resource in besides(request) if besides else ():
            with self._counted(Call(action, request.region, {})):
                self._ask(action, resource, request, protocol)

    def _ask(self, action: str, resource: Resource, request: Request, protocol: str) -> None:
        caller = request.caller
        context: dict[str, str | tuple[str, ...]] = {
            "aws:RequestedRegion": request.region,
            "aws:PrincipalAccount": request.account.account_id,
            "aws:userid": caller.user_id,
        }
        if tags := _tag_keys(request.given):
            context["aws:TagKeys"] = tags
        # An action that is done to nothing single is allowed by "Resource": "*" only, whatever its message names.
        subject = "*" if resource.name is None else resource.arn
        for arn in (subject, *resource.also):
            verdict = decide(caller.policies, Asked(action, arn, context), caller.session)
            if self.faults.denies(action, resource.name):
                verdict = Verdict(allowed=False)
            if not verdict.allowed:
                named = resource.arn if arn == "*" else arn
                asked = Asked(action, named, context)
                raise denied(protocol, caller.arn, asked, explicit=verdict.explicit)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Nothing else is answered meanwhile, and what was due by now has happened."""
        with self._lock:
            self.account.timeline.settle()
            yield

    def advance(self, by: timedelta) -> None:
        """Move the account's clock, which stands still otherwise."""
        with self._lock:
            self.account.timeline.advance(by)

    @contextmanager
    def _counted(self, call: Call) -> Iterator[None]:
        with self._lock:
            self.calls.append(call)
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1


def _tag_keys(given: dict[str, Any]) -> tuple[str, ...]:
    """The names of the tags that a call sets or removes."""
    named = given.get("TagKeys") or [one["Key"] for one in given.get("Tags") or ()]
    return tuple(map(str, named))
