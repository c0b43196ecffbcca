"""AWS calls: one boto3 session per process, one client per service and region, each call in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hyperpod_jlab.aws.errors import (
    AwsCall,
    boto3_missing,
    boto3_too_old_error,
    check_content_type,
    keep_unknown_fields,
    no_region,
    translate,
)
from hyperpod_jlab.aws.signed import METER, headers_for, post_form
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.core.errors import HyperpodError

T = TypeVar("T")

PAGE_SIZE = 100
"""Items per page: SageMaker's maximum."""


_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S = 5, 20
"""Timeouts of AWS, in seconds, to connect and to respond."""

_ATTEMPTS = 4
"""Attempts per call when AWS throttles or fails; botocore's back-off is exponential with jitter."""

_FAST_LIMITS = (2, 5, 1)
"""The same three for a fail-fast call."""

_MAX_CONNECTIONS = 16

_threads = ThreadPoolExecutor(_MAX_CONNECTIONS, "aws")
"""Threads for calls: an unresponsive AWS holds them for minutes without blocking other work. They start with the first call."""

_CREDENTIALS = frozenset({"expired_aws_credentials", "invalid_aws_credentials", "no_aws_credentials"})


@dataclass(frozen=True)
class Keys:
    """Credentials of another session, in the form of STS."""

    access_key: str
    secret: str = field(repr=False)
    token: str = field(repr=False)


class _Session:
    """boto3's session and clients. Creating a client is not thread-safe; using one is."""

    def __init__(self, keys: Keys | None = None) -> None:
        self._keys = keys
        self._lock = threading.Lock()
        self._session: Any = None
        self._http: Any = None
        self._clients: dict[tuple[str, str, bool], Any] = {}
        self.home: str | None = None
        """The default region, once found."""

    def client(self, call: AwsCall, *, fail_fast: bool = False) -> Any:
        """The client for a service in a region.

        Args:
            call: The operation.
            fail_fast: Whether to use short timeouts.

        Raises:
            UnsupportedError: boto3 is not installed, or does not know the service.
        """
        key = (call.service, call.region, fail_fast)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._make_client(
                    call, *(_FAST_LIMITS if fail_fast else (_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S, _ATTEMPTS))
                )
            return self._clients[key]

    def region(self) -> str | None:
        """The region of the user's AWS configuration."""
        with self._lock:
            region_name: str | None = self._boto3().region_name
            return region_name

    def signing_session(self, url: str) -> tuple[Any, Any]:
        """Return botocore's session and an HTTP session for requests outside its clients, with the same proxies, certificates and timeouts.

        Raises:
            UnsupportedError: boto3 is not installed.
        """
        with self._lock:
            core = self._boto3()._session  # noqa: SLF001
            if self._http is None:
                from botocore.httpsession import URLLib3Session
                from botocore.utils import get_environ_proxies

                self._http = URLLib3Session(
                    verify=core.get_config_variable("ca_bundle") or True,
                    proxies=get_environ_proxies(url),
                    timeout=(_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S),
                    max_pool_connections=_MAX_CONNECTIONS,
                )
            return core, self._http

    def regions(self, near_region: str | None) -> list[str]:
        """The regions of an AWS partition with SageMaker, as far as this botocore knows them.

        Args:
            near_region: A region of that partition; default: the partition ``aws``.
        """
        from botocore.exceptions import UnknownRegionError

        with self._lock:
            session = self._boto3()
            try:
                partition = session.get_partition_for_region(near_region) if near_region else "aws"
            except UnknownRegionError:
                partition = "aws"
            return sorted(session.get_available_regions("sagemaker", partition))

    def forget(self) -> None:
        """Create a new session for the next call."""
        with self._lock:
            self._session = self._http = None
            self._clients.clear()
            self.home = None

    def _make_client(self, call: AwsCall, connect: float, read_timeout: float, attempts: int) -> Any:
        session = self._boto3()
        from botocore.config import Config
        from botocore.exceptions import UnknownServiceError

        config = Config(
            connect_timeout=connect,
            read_timeout=read_timeout,
            retries={"mode": "standard", "total_max_attempts": attempts},
            max_pool_connections=_MAX_CONNECTIONS,
        )
        try:
            client = session.client(call.service, region_name=call.region, config=config)
        except UnknownServiceError:
            raise boto3_too_old_error(call, _version()) from None
        client.meta.events.register("after-call", check_content_type)
        client.meta.events.register("after-call", keep_unknown_fields)
        METER.count(client)
        return client

    def _boto3(self) -> Any:
        if self._session is None:
            try:
                import boto3
                import botocore.session
            except ImportError:
                raise boto3_missing() from None
            core = botocore.session.Session()
            # Outside EC2 the metadata address does not respond; and a non-regional STS is not
            # reachable in a VPC.
            core.set_config_variable("metadata_service_timeout", 1)
            core.set_config_variable("metadata_service_num_attempts", 1)
            core.set_config_variable("sts_regional_endpoints", "regional")
            keys = self._keys
            credentials = (keys.access_key, keys.secret, keys.token) if keys else ()
            self._session = boto3.Session(*credentials, botocore_session=core)
        return self._session


_session = _Session()


def forget_session() -> None:
    """Drop the process's session and clients, so that the next call reads credentials and configuration again."""
    _session.forget()


def home_region() -> str | None:
    """The default region, as `Aws` finds it; None if it is not set. May read files the first time."""
    if _session.home is None:
        with contextlib.suppress(HyperpodError):
            _session.home = _find_region()
    return _session.home


def load(service: str) -> None:
    """Load a service's dependencies, so that the first call does not wait for them: about 0.25 s. Does nothing without boto3 or a region; does not call AWS."""

    def work() -> Any:
        return _session.client(AwsCall(service, "", _find_region()))

    with contextlib.suppress(HyperpodError):
        _translated(AwsCall(service, "", ""), work)


async def known_regions() -> tuple[str | None, list[str]]:
    """The default region, and the known regions. Does not call AWS.

    Raises:
        UnsupportedError: boto3 is not installed.
    """

    def find() -> tuple[str | None, list[str]]:
        home = home_region()
        return home, _session.regions(home)

    return await asyncio.get_running_loop().run_in_executor(_threads, find)


class Aws:
    """AWS in one region.

    Args:
        region: The region; default: ``AWS_REGION``, ``AWS_DEFAULT_REGION``, the region of the AWS configuration, or Studio's.
        fail_fast: Whether calls use short timeouts: for optional data that is not worth waiting for.
        keys: Other credentials than the process's own.
    """

    def __init__(self, region: str | None = None, *, fail_fast: bool = False, keys: Keys | None = None) -> None:
        self._region = region
        self._fail_fast = fail_fast
        self._keys = keys
        self._session = _session if keys is None else _Session(keys)
        self.calls = 0
        """Number of calls, without retries."""

    def at(self, region: str) -> Aws:
        """The same AWS in another region."""
        return Aws(region, fail_fast=self._fail_fast, keys=self._keys)

    async def region(self) -> str:
        """The region.

        Raises:
            InvalidInputError: It is not set, or the AWS configuration is invalid.
            UnsupportedError: boto3 is not installed.
        """
        if self._region is None:
            self._region = await self._run(AwsCall("sts", "GetCallerIdentity", ""), _find_region)
        return self._region

    async def call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        """Call an operation.

        Args:
            service: The service by boto3's name, such as ``sagemaker``.
            operation: The operation by the API's name, such as ``DescribeCluster``.
            parameters: Its input.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        call = AwsCall(service, operation, await self.region())

        def work() -> dict[str, Any]:
            client = self._session.client(call, fail_fast=self._fail_fast)
            response: dict[str, Any] = getattr(client, _method(client, call))(**parameters)
            return response

        self.calls += 1
        return await self._run(call, work)

    async def check(self, service: str, operation: str) -> None:
        """Check that an operation can be called. Does not call AWS.

        Raises:
            UnsupportedError: boto3 is not installed, or does not know it.
            InvalidInputError: The region is not set, or the AWS configuration is invalid.
        """
        call = AwsCall(service, operation, await self.region())
        await self._run(call, lambda: _method(self._session.client(call), call))

    async def pages(self, service: str, operation: str, **parameters: Any) -> AsyncIterator[dict[str, Any]]:
        """Call an operation page by page.

        Raises:
            HyperpodError: See `aws.errors`; earlier pages remain valid.
        """
        call = AwsCall(service, operation, await self.region())

        def begin() -> Any:
            client = self._session.client(call, fail_fast=self._fail_fast)
            paginator = client.get_paginator(_method(client, call))
            return iter(paginator.paginate(**parameters, PaginationConfig={"PageSize": PAGE_SIZE}))

        iterator = await self._run(call, begin)
        while (page := await self._run(call, lambda: next(iterator, None))) is not None:
            self.calls += 1
            yield page

    async def post(self, call: AwsCall, url: str, form: Mapping[str, str]) -> Any:
        """Post a form to an AWS URL that boto3 has no operation for; returns the response's JSON.

        Args:
            call: The operation: the service for the signature, the IAM action, and the region.
            url: The URL.
            form: The form's fields.

        Raises:
            HyperpodError: See `aws.errors`.
        """

        def work() -> Any:
            return post_form(*self._session.signing_session(url), call, url, form)

        self.calls += 1
        return await self._run(call, work)

    async def signed(self, call: AwsCall, url: str) -> dict[str, str]:
        """The signature headers for opening a URL.

        Args:
            call: The operation: the service for the signature, the IAM action, and the region.
            url: The URL.

        Raises:
            HyperpodError: See `aws.errors`.
        """

        def work() -> dict[str, str]:
            core, _ = _session.signing_session(url)
            return headers_for(core, call, url)

        return await self._run(call, work)

    async def _run(self, call: AwsCall, work: Callable[[], T]) -> T:
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(_threads, _translated, call, work)
        except HyperpodError as error:
            if error.code in _CREDENTIALS:
                forget_session()  # the user logs in again, and this process continues
            raise


def _translated(call: AwsCall, work: Callable[[], T]) -> T:
    try:
        return work()
    except HyperpodError:
        raise
    except Exception as error:
        raise translate(error, call) from error


def _method(client: Any, call: AwsCall) -> str:
    """The client's method for an operation.

    Raises:
        UnsupportedError: The installed boto3 does not know it.
    """
    from botocore import xform_name

    if call.operation not in client.meta.service_model.operation_names:
        raise boto3_too_old_error(call, _version())
    return str(xform_name(call.operation))


def _version() -> str:
    import boto3

    return str(boto3.__version__)


def _find_region() -> str:
    return find_region(_session.region)


def find_region(configured: Callable[[], str | None]) -> str:
    """The default region.

    Args:
        configured: Returns the region of the user's AWS configuration; called only if the environment has none.

    Raises:
        InvalidInputError: The region is not set.
    """
    # boto3 only reads the second variable.
    environment_region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    region = environment_region or configured()
    if region is None:
        studio = find_studio()
        region = studio.region if studio else None
    if region is None:
        raise no_region()
    return region
