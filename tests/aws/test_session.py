"""Asking AWS: threads, one client each, retries, and every way in which it fails as an error of ours."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from datetime import timedelta
from types import SimpleNamespace

import boto3
import botocore.endpoint
import botocore.session
import pytest

from hyperpod_jlab.aws import session
from hyperpod_jlab.aws.session import Aws, forget_session
from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnreachableError,
    UnsupportedError,
)
from testbed.aws.endpoint import service_model
from testbed.aws.replies import Reply
from tests.aws.conftest import KEY, REGION

LIST = ("sagemaker", "ListClusters")
ACTION = "sagemaker:ListClusters"


@pytest.fixture
def waits(monkeypatch):
    """The seconds that botocore would have waited between two attempts; it does not."""
    found: list[float] = []
    monkeypatch.setattr(botocore.endpoint, "time", SimpleNamespace(sleep=found.append))
    return found


async def refused(kind: type[HyperpodError], *words: str, **given) -> HyperpodError:
    """The error that a call ends with."""
    with pytest.raises(kind) as caught:
        await Aws().call(*(words or LIST), **given)
    return caught.value


async def test_a_call_and_its_answer(endpoint):
    aws = Aws()
    told = await aws.call("sts", "GetCallerIdentity")
    assert told["Account"] == endpoint.account.account_id
    assert await aws.region() == REGION
    assert [call.action for call in endpoint.calls] == ["sts:GetCallerIdentity"]
    assert aws.calls == 1


async def test_one_session_and_one_client_for_each_service_and_region(endpoint, monkeypatch):
    sessions, clients, threads = [], [], set()
    make_client = boto3.Session.client

    class Counted(boto3.Session):
        def __init__(self, **given):
            sessions.append(given)
            super().__init__(**given)

        def client(self, *words, **given):
            threads.add(threading.current_thread())
            clients.append((words[0], given["region_name"]))
            return make_client(self, *words, **given)

    monkeypatch.setattr(boto3, "Session", Counted)
    for region in (REGION, "eu-west-1"):
        await asyncio.gather(*(Aws(region).call(*LIST) for _ in range(6)))
        await asyncio.gather(*(Aws(region).call("sts", "GetCallerIdentity") for _ in range(6)))
    assert len(sessions) == 1
    assert len(clients) == len(set(clients)) == 4
    assert threading.main_thread() not in threads


async def test_the_event_loop_goes_on_while_aws_thinks(endpoint):
    await Aws().call(*LIST)
    endpoint.faults.slow[ACTION] = 0.5
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await Aws().call(*LIST)
    ticking.cancel()
    assert ticks > 15


async def test_throttled_calls_are_tried_again_after_growing_waits(endpoint, waits):
    endpoint.faults.throttled[ACTION] = 3
    assert (await Aws().call(*LIST))["ClusterSummaries"] == []
    assert len(waits) == 3
    endpoint.faults.throttled[ACTION] = 1000
    error = await refused(UnreachableError)
    assert error.code == "aws_throttled"
    assert ACTION in error.message
    assert len(endpoint.calls) == 4 + 4


async def test_a_service_that_fails_is_tried_again(endpoint, waits):
    endpoint.faults.broken[ACTION] = 1
    await Aws().call(*LIST)
    endpoint.faults.broken[ACTION] = 1000
    error = await refused(UnreachableError)
    assert error.code == "aws_failed"
    assert "InternalFailure" in error.message


async def test_denied_with_the_action_that_is_missing(endpoint):
    endpoint.faults.deny(ACTION)
    error = await refused(DeniedError)
    assert (error.code, error.exit_code, error.status) == ("missing_right", 4, 403)
    assert ACTION in error.message
    assert ACTION in (error.hint or "")
    assert error.detail["right"] == {"action": ACTION}
    assert len(endpoint.calls) == 1  # nothing that trying again would mend
    json.dumps(error.to_dict())


async def test_no_credentials(endpoint, no_aws):
    no_aws.delenv("AWS_ACCESS_KEY_ID")
    no_aws.delenv("AWS_SECRET_ACCESS_KEY")
    begin = time.monotonic()
    assert (await refused(DeniedError)).code == "no_aws_credentials"
    assert time.monotonic() - begin < 5
    assert endpoint.calls == []
    no_aws.setenv("AWS_ACCESS_KEY_ID", KEY)
    assert (await refused(DeniedError)).code == "no_aws_credentials"  # half of a pair
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", "of-the-testbed")
    await Aws().call(*LIST)  # the same process, once there are some


@pytest.mark.parametrize("region", [None, REGION])
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("AWS_PROFILE", "nobody", "nobody"),
        ("AWS_CONFIG_FILE", "broken-config", "broken-config"),
        ("AWS_ENDPOINT_URL", "nonsense", "nonsense"),
    ],
)
async def test_a_configuration_of_aws_that_is_wrong(endpoint, no_aws, tmp_path, region, name, value, words):
    (tmp_path / "broken-config").write_text("[default\nregion = eu-west-1")
    no_aws.chdir(tmp_path)
    no_aws.setenv(name, value)
    no_aws.delenv("AWS_REGION")
    if region is None and name == "AWS_ENDPOINT_URL":
        region = REGION  # without one it is not even looked at
    with pytest.raises(InvalidInputError, match=words) as caught:
        await Aws(region).call(*LIST)
    assert caught.value.code == "invalid_aws_config"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_ENDPOINT_URL", "http://user:s3cret@127.0.0.1:1"),
        ("AWS_ENDPOINT_URL", "http://user:s3@cret@no-such.invalid"),
        ("HTTP_PROXY", "socks9://user:s3cret@127.0.0.1:1"),
        ("HTTP_PROXY", "http://user:s3cret@127.0.0.1:1"),
    ],
)
async def test_no_password_of_an_endpoint_or_a_proxy_is_told(endpoint, waits, no_aws, name, value):
    if name == "HTTP_PROXY":
        no_aws.setenv("AWS_ENDPOINT_URL", "http://aws.invalid")
        no_aws.setenv("NO_PROXY", "")
        no_aws.setenv("no_proxy", "")
    no_aws.setenv(name, value)
    error = await refused(UnreachableError)
    assert "cret" not in json.dumps(error.to_dict())


async def test_a_program_for_credentials_that_fails(endpoint, no_aws, tmp_path):
    no_aws.delenv("AWS_ACCESS_KEY_ID")
    no_aws.delenv("AWS_SECRET_ACCESS_KEY")
    (tmp_path / "config").write_text("[default]\ncredential_process = false\n")
    no_aws.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    error = await refused(DeniedError)
    assert error.code == "no_aws_credentials"
    assert "custom-process" in error.message


async def test_something_else_answers(endpoint, waits, monkeypatch):
    page = Reply(200, b"<html>log in to the network</html>", {"Content-Type": "text/html"})
    monkeypatch.setattr(endpoint, "answer", lambda *_: page)
    # botocore alone takes it for the answer of an account without clusters.
    for words in (LIST, ("sts", "GetCallerIdentity"), ("cloudwatch", "ListMetrics")):
        error = await refused(UnreachableError, *words)
        assert error.code == "aws_unreachable"
    with pytest.raises(UnreachableError, match="a server other than AWS answered, with text/html"):
        _ = [page async for page in Aws().pages(*LIST)]


@pytest.mark.parametrize("words", [LIST, ("sts", "GetCallerIdentity")])
async def test_expired_credentials_and_new_ones_in_the_same_process(endpoint, no_aws, words):
    endpoint.account.add_caller("AKIAOLD", expired=True)
    no_aws.setenv("AWS_ACCESS_KEY_ID", "AKIAOLD")
    assert (await refused(DeniedError, *words)).code == "expired_aws_credentials"
    no_aws.setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY")
    error = await refused(DeniedError, *words)
    assert error.code == "invalid_aws_credentials"
    assert REGION in (error.hint or "")
    no_aws.setenv("AWS_ACCESS_KEY_ID", KEY)
    await Aws().call(*words)


@pytest.mark.parametrize(("minutes", "words"), [(8, "behind"), (-8, "ahead")])
@pytest.mark.parametrize("call", [LIST, ("sts", "GetCallerIdentity")])
async def test_a_wrong_clock_is_named_with_its_error(endpoint, waits, minutes, words, call):
    endpoint.faults.clock = timedelta(minutes=minutes)
    error = await refused(DeniedError, *call)
    assert error.code == "clock_skew"
    assert words in error.message
    assert error.detail["behind_s"] == pytest.approx(minutes * 60, abs=20)


async def test_nobody_answers(no_aws, waits):
    for name, value in (("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", "x")):
        no_aws.setenv(name, value)
    no_aws.setenv("AWS_REGION", REGION)
    no_aws.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    error = await refused(UnreachableError)
    assert (error.code, error.exit_code) == ("aws_unreachable", 5)
    assert f"check that {REGION} is the right region" in (error.hint or "")
    assert "sagemaker.api" in (error.hint or "")  # the VPC endpoint's name


async def test_an_answer_that_takes_too_long(endpoint, waits, monkeypatch):
    monkeypatch.setattr(session, "_READ_TIMEOUT_S", 0.2)
    monkeypatch.setattr(session, "_ATTEMPTS", 1)
    endpoint.faults.slow[ACTION] = 0.6
    error = await refused(UnreachableError)
    assert error.detail["error"] == "ReadTimeoutError"


async def test_what_is_not_there_and_what_is_no_input(endpoint):
    error = await refused(NotFoundError, "sagemaker", "DescribeCluster", ClusterName="nope")
    assert "nope" in error.message
    for given in ({"SortBy": "SIZE"}, {"MaxResults": 0}, {"Colour": "red"}):
        error = await refused(InvalidInputError, *LIST, **given)
        assert error.code == "aws_invalid_input"
        assert next(iter(given)) in error.message


async def test_the_region_is_the_first_that_anybody_says(endpoint, no_aws, tmp_path):
    metadata = tmp_path / "metadata.json"
    metadata.write_text(json.dumps({"DomainId": "d-1", "ResourceArn": "arn:aws-cn:sagemaker:cn-north-1:1:app/d-1/x"}))
    config = tmp_path / "config"
    config.write_text("[default]\nregion = eu-west-3\n")
    no_aws.setenv("RESOURCE_METADATA_FILE", str(metadata))
    no_aws.setenv("AWS_CONFIG_FILE", str(config))
    no_aws.setenv("AWS_DEFAULT_REGION", "eu-west-2")
    assert await Aws("eu-west-1").region() == "eu-west-1"
    assert await Aws().region() == REGION
    no_aws.delenv("AWS_REGION")
    assert await Aws().region() == "eu-west-2"
    no_aws.delenv("AWS_DEFAULT_REGION")
    forget_session()
    assert await Aws().region() == "eu-west-3"
    config.unlink()
    forget_session()
    assert await Aws().region() == "cn-north-1"
    metadata.unlink()
    with pytest.raises(InvalidInputError) as caught:
        await Aws().region()
    assert caught.value.code == "no_aws_region"


async def test_a_region_that_can_be_none(endpoint):
    with pytest.raises(InvalidInputError) as caught:
        await Aws("us west 2").call(*LIST)
    assert caught.value.code == "no_aws_region"
    assert "us west 2" in caught.value.message


async def test_boto3_is_not_installed(endpoint, monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    error = await refused(UnsupportedError)
    assert (error.code, error.exit_code) == ("boto3_missing", 2)
    assert "pip install" in (error.hint or "")


@pytest.mark.parametrize(
    ("operation", "needs"), [("BatchRebootClusterNodes", "boto3 >= 1.41.1"), ("DescribeTrainingPlan", "a newer boto3")]
)
async def test_an_operation_that_this_boto3_does_not_have(endpoint, no_aws, tmp_path, operation, needs):
    loader = botocore.session.Session().get_component("data_loader")
    model = loader.load_service_model("sagemaker", "service-2")
    less = {**model, "operations": {k: v for k, v in model["operations"].items() if k != operation}}
    folder = tmp_path / "models" / "sagemaker" / service_model("sagemaker").api_version
    folder.mkdir(parents=True)
    (folder / "service-2.json").write_text(json.dumps(less))
    no_aws.setenv("AWS_DATA_PATH", str(tmp_path / "models"))
    error = await refused(UnsupportedError, "sagemaker", operation)
    assert error.code == "boto3_too_old"
    assert f"boto3 {boto3.__version__} does not know sagemaker:{operation}: it needs {needs}" in error.message
    await Aws().call(*LIST)
    assert (await refused(UnsupportedError, "teleport", "Beam")).code == "boto3_too_old"


def test_nothing_of_boto3_is_loaded_before_aws_is_asked():
    code = (
        "import sys; import hyperpod_jlab.run.services, hyperpod_jlab.clusters.commands; "
        "print([name for name in ('boto3', 'botocore') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
