"""MLflow's REST API with the standard library, as far as runs are read.

For a tracking server or an MLflow App of SageMaker it does what the package ``sagemaker-mlflow`` does: address, header and signature (version 0.5.0). The
signature needs botocore, which is looked for when the first request is signed.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from hyperpod_jlab.launcher.mlflow_variables import ATTEMPT_TAG, MLFLOW_URI, RUN_TAG


class MlflowFault(Exception):  # noqa: N818 - it is the server's, and no error of the run
    """The server did not do what it was asked for."""

    def __init__(self, message: str, status: int | None = None, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code


class SagemakerServer(NamedTuple):
    """Where a tracking server or an MLflow App of SageMaker answers."""

    address: str
    region: str
    service: str
    header: str


def find_sagemaker_server(arn: str, environment: Mapping[str, str]) -> SagemakerServer:
    """The server of an ARN."""
    _, _, _, region, _, resource = arn.split(":", 5)
    custom = environment.get("SAGEMAKER_MLFLOW_CUSTOM_ENDPOINT")
    if resource.startswith("mlflow-app/"):
        address = custom or f"https://mlflow.sagemaker.{region}.app.aws"
        return SagemakerServer(address, region, "sagemaker", "x-sm-mlflow-app-arn")
    address = custom or f"https://{region}.experiments.sagemaker.aws"
    return SagemakerServer(address, region, "sagemaker-mlflow", "x-mlflow-sm-tracking-server-arn")


class MlflowApi:
    """Calls one tracking server. It blocks.

    Args:
        tracking_uri: A URL, or an ARN of SageMaker.
        environment: Variables of MLflow: user, password, token, certificates.
        timeout: Seconds for each step of a request.
        seconds: Seconds for all requests together; None: no limit.
    """

    MAX_ANSWER = 16 << 20

    def __init__(
        self, tracking_uri: str, environment: Mapping[str, str], timeout: float = 3.0, seconds: float | None = None
    ) -> None:
        self._environment = environment
        self._timeout = timeout
        self._end = None if seconds is None else time.monotonic() + seconds
        self._headers = {"Content-Type": "application/json"}
        self._sagemaker: SagemakerServer | None = None
        self._session: Any = None
        if tracking_uri.startswith("arn:"):
            self._sagemaker = find_sagemaker_server(tracking_uri, environment)
            self._headers[self._sagemaker.header] = tracking_uri
            self._address = self._sagemaker.address
        else:
            self._address = re.sub(r"(?<=://)[^/]*@", "", tracking_uri.rstrip("/"))
            self._log_in()
        self._host = re.sub(r"^https?://", "", without_user_info(self._address))
        self._opener = self._make_opener()

    def post(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Call an operation; its answer.

        Raises:
            MlflowFault: There is no such answer.
        """
        return self._call("POST", path, json.dumps(document, allow_nan=False).encode("utf-8"))

    def get(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """The same with GET.

        Raises:
            MlflowFault: There is no such answer.
        """
        from urllib.parse import quote, urlencode

        return self._call("GET", f"{path}?{urlencode(query, quote_via=quote)}", None)

    def find_experiment(self, name: str) -> str | None:
        """The id of an experiment; None if there is none of that name.

        Raises:
            MlflowFault: The server does not say.
        """
        try:
            answer = self.get("experiments/get-by-name", {"experiment_name": name})
        except MlflowFault as fault:
            if fault.code == "RESOURCE_DOES_NOT_EXIST":
                return None
            raise
        try:
            return str(answer["experiment"]["experiment_id"])
        except (KeyError, TypeError, IndexError):
            raise MlflowFault(f"{self._host} did not answer as an MLflow server does") from None

    def search(self, experiment_ids: list[str], run_id: str) -> list[dict[str, Any]]:
        """The runs of MLflow with the tag of one of our runs, in these experiments, newest first.

        Raises:
            MlflowFault: The server does not say.
        """
        document = {"experiment_ids": experiment_ids, "filter": f"tags.`{RUN_TAG}` = '{run_id}'", "max_results": 200}
        found = self.post("runs/search", document).get("runs")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def _log_in(self) -> None:
        import base64

        # A secret that was made of a file often ends with the file's last line end.
        user, password, token = (
            self._environment.get("MLFLOW_TRACKING_" + name, "").strip("\r\n")
            for name in ("USERNAME", "PASSWORD", "TOKEN")
        )
        if user and password:  # in this order, as MLflow itself does
            text = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
            self._headers["Authorization"] = "Basic " + text
        elif token:
            self._headers["Authorization"] = "Bearer " + token

    def _make_opener(self) -> Any:
        import ssl
        import urllib.request

        class NoRedirect(urllib.request.HTTPRedirectHandler):
            """The password must not follow to another host."""

            def redirect_request(self, *_: Any) -> None:
                return None

        handlers: list[Any] = [NoRedirect()]
        certificate = self._environment.get("MLFLOW_TRACKING_SERVER_CERT_PATH")
        is_insecure = self._environment.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("true", "1")
        if self._address.startswith("https:") and (certificate or is_insecure):
            try:
                context = ssl.create_default_context(cafile=certificate)
            except OSError as error:
                raise MlflowFault(f"MLFLOW_TRACKING_SERVER_CERT_PATH cannot be read: {error}") from None
            if is_insecure:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            handlers.append(urllib.request.HTTPSHandler(context=context))
        return urllib.request.build_opener(*handlers)

    def _call(self, method: str, path: str, data: bytes | None) -> dict[str, Any]:
        import http.client
        import urllib.error
        import urllib.request

        url = f"{self._address}/api/2.0/mlflow/{path}"
        headers = dict(self._headers)
        if self._sagemaker is not None:
            headers.update(self._sign(self._sagemaker, method, url, data))
        # Only http and https come here: the spec and the configuration allow nothing else.
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
        try:
            with self._opener.open(request, timeout=self._remaining()) as response:
                body = self._read(response)
        except urllib.error.HTTPError as error:
            raise self._fault(error) from None
        except (ValueError, http.client.InvalidURL):  # their texts have the password or the token
            raise MlflowFault(
                f"MLflow at {self._host} cannot be asked: its address or a header is invalid; check {MLFLOW_URI} and MLFLOW_TRACKING_TOKEN"
            ) from None
        except (OSError, http.client.HTTPException, RecursionError) as error:
            reason = getattr(error, "reason", None) or error
            if isinstance(reason, ConnectionRefusedError):
                raise MlflowFault(f"MLflow at {self._host} refuses connections") from None
            text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise MlflowFault(f"MLflow at {self._host} did not answer: {one_line(str(text))}") from None
        try:
            answer = json.loads(body.decode("utf-8"))
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise MlflowFault(f"{self._host} did not answer as an MLflow server does")
        return answer

    def _remaining(self) -> float:
        if self._end is None:
            return self._timeout
        return max(0.01, min(self._timeout, self._end - time.monotonic()))

    def _read(self, response: Any) -> bytes:
        """All of an answer, unless it is too long or comes too slowly."""
        end = time.monotonic() + self._remaining() if self._end is None else self._end
        parts: list[bytes] = []
        size = 0
        while size <= self.MAX_ANSWER:
            part = response.read1(1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
            if time.monotonic() > end:
                raise TimeoutError("timed out")
        raise MlflowFault(f"MLflow at {self._host} did not answer: its answer is too long")

    def _fault(self, error: Any) -> MlflowFault:
        status, code, text = int(error.code), "", ""
        try:
            document = json.loads(error.read(4096).decode("utf-8"))
            code = str(document.get("error_code") or "")  # AWS has a message only
            text = one_line(str(document.get("message") or ""))
        except Exception:  # noqa: BLE001 - the status says enough, whatever came with it
            text = ""
        finally:
            error.close()
        if status in (401, 403):
            message = f"MLflow at {self._host} denies access (HTTP {status})"
            if self._sagemaker is None:
                message += "; check MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
        elif 300 <= status < 400:
            message = f"MLflow at {self._host} redirects to another address (HTTP {status})"
        else:
            message = f"MLflow at {self._host} failed (HTTP {status})"
        return MlflowFault(f"{message}: {text}" if text else message, status, code)

    def _sign(self, server: SagemakerServer, method: str, url: str, data: bytes | None) -> dict[str, str]:
        """The headers of a request to SageMaker."""
        import hashlib

        try:
            from botocore.auth import SigV4Auth
            from botocore.awsrequest import AWSRequest
            from botocore.session import Session
        except ImportError:
            raise MlflowFault("requests to MLflow on SageMaker need boto3, which this Python does not have") from None
        self._session = self._session or Session()
        headers = dict(self._headers)
        headers["X-Amz-Content-SHA256"] = hashlib.sha256(data or b"").hexdigest()
        request = AWSRequest(method=method, url=url, data=data, headers=headers)
        try:
            credentials = self._session.get_credentials()
            if credentials is None:
                raise MlflowFault("requests to MLflow on SageMaker need AWS credentials; none were found")
            SigV4Auth(credentials, server.service, server.region).add_auth(request)
        except MlflowFault:
            raise
        except Exception as error:  # noqa: BLE001 - of any kind, from many ways to credentials
            text = one_line(str(error))
            raise MlflowFault(f"the request to MLflow on SageMaker cannot be signed: {text}") from None
        return dict(request.headers.items())


def pick_mlflow_run(runs: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The MLflow run to show for a run of ours: the first one of the newest attempt that is not a child of another."""
    tags = [(tags_of(one), one) for one in runs]
    numbers = [number for number in (attempt_of(found) for found, _ in tags) if number is not None]
    newest = max(numbers, default=None)
    return min(
        ((found, one) for found, one in tags if attempt_of(found) == newest),
        key=lambda pair: ("mlflow.parentRunId" in pair[0], started_at(pair[1])),
        default=(None, None),
    )[1]


def tags_of(run: Mapping[str, Any]) -> dict[str, str]:
    """The tags of a run of MLflow."""
    try:
        return {str(tag["key"]): str(tag["value"]) for tag in run["data"].get("tags") or ()}
    except (KeyError, TypeError, AttributeError):
        return {}


def attempt_of(tags: Mapping[str, str]) -> int | None:
    """The attempt in its tags."""
    text = tags.get(ATTEMPT_TAG, "")
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def started_at(run: Mapping[str, Any]) -> int:
    """When it started, in milliseconds since 1970; 0 if that is unknown."""
    try:
        return int(run["info"]["start_time"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0


def without_user_info(address: str) -> str:
    """An address as a message may show it: without a user and a password, even one with a slash."""
    return re.sub(r"(?<=://).*@", "", address, flags=re.DOTALL)


def one_line(text: str) -> str:
    """A text of a server as one short line."""
    return "".join(one if one.isprintable() else " " for one in text[:400]).strip()
