"""Checks what the settings name, in AWS or in a stand-in. It only reads, and gives up early."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from boto3.session import Session
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from compactor.adapters.aws.clients import aws_client
from compactor.adapters.aws.errors import error_code, translated
from compactor.adapters.aws.sqs_queue import SqsQueue
from compactor.control.snapshot import QueueDepth
from compactor.core.errors import AccessError, CompactorError, StoreUnavailable
from compactor.ops.doctor.ports import Absent, JobShape, TableShape

_MISSING = {
    "404",
    "NoSuchBucket",
    "NotFound",
    "NotFoundException",
    "ResourceNotFoundException",
    "EntityNotFoundException",
    "QueueDoesNotExist",
    "AWS.SimpleQueueService.NonExistentQueue",
}
_DENIED = {"403", "AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"}
_REFUSED = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "TokenRefreshRequired",
    "RequestTimeTooSkewed",
}
"""The errors with which S3 refuses the credentials themselves [S3 API, error responses]."""

_CRASHED = "500"
"""S3 itself may answer with this, as may a stand-in that needs signed requests."""


class AwsAccount:
    """An account, with the credentials that AWS tools find.

    Args:
        region: None to take it from the environment.
        endpoint_url: A server other than AWS; None for AWS itself.
        timeout_seconds: How long to wait for the answer to one request.
        attempts: The most times that a request is sent.
    """

    def __init__(self, region: str | None, endpoint_url: str | None, *, timeout_seconds: float, attempts: int) -> None:
        self._where = (region, endpoint_url)
        self._patience: dict[str, Any] = {"attempts": attempts, "timeout_seconds": timeout_seconds}
        self._session = Session()
        self._clients: dict[tuple[str, bool], Any] = {}

    @property
    def endpoint(self) -> str:
        return str(self._of("s3", is_signed=False).meta.endpoint_url)

    def server_time(self, bucket: str) -> datetime:
        client = self._of("s3", is_signed=False)
        try:
            with translated(f"S3 at {self.endpoint}"):
                answer = client.list_objects_v2(Bucket=bucket, MaxKeys=1)
        except ResponseParserError as exc:
            raise self._no_s3("its answer is not XML") from exc
        except CompactorError as exc:
            # A refusal is an answer too, and has the date.
            if not isinstance(exc.__cause__, ClientError):
                raise
            answer = exc.__cause__.response
            if (code := error_code(exc.__cause__)).isdigit() and code != _CRASHED:
                raise self._no_s3(f"HTTP {code} without an error of S3") from exc
        try:
            told = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
        except (KeyError, ValueError) as exc:
            raise self._no_s3("its answer has no date") from exc
        return told.astimezone(UTC)

    def region(self) -> str | None:
        with translated("region"):
            found = self._where[0] or self._session.region_name
        return str(found) if found else None

    def credentials(self) -> str | None:
        with translated("credentials"):
            found = self._session.get_credentials()
        return str(found.method) if found else None

    def refusal(self, bucket: str) -> str:
        try:
            self._of("s3").list_objects_v2(Bucket=bucket, MaxKeys=1)
        except ClientError as exc:
            return error_code(exc) if error_code(exc) in _REFUSED else ""
        return ""

    def bucket(self, name: str) -> Absent | None:
        found = self._ask(f"s3://{name}", lambda: self._of("s3").head_bucket(Bucket=name))
        return found if isinstance(found, Absent) else None

    def table(self, name: str) -> TableShape | Absent:
        client = self._of("dynamodb")
        found = self._ask(f"table {name}", lambda: client.describe_table(TableName=name))
        if isinstance(found, Absent):
            return found
        lifetime = self._ask(f"table {name}", lambda: client.describe_time_to_live(TableName=name))
        if isinstance(lifetime, Absent):
            return lifetime
        table, ttl = found["Table"], lifetime.get("TimeToLiveDescription", {})
        types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
        keys = ((each["AttributeName"], each["KeyType"]) for each in table["KeySchema"])
        is_on = ttl.get("TimeToLiveStatus") in {"ENABLED", "ENABLING"}
        return TableShape(
            tuple((key, kind, types.get(key, "")) for key, kind in keys),
            str(table["TableStatus"]),
            str(ttl.get("AttributeName", "")) if is_on else "",
        )

    def queue(self, url: str) -> QueueDepth | Absent:
        found = self._ask(f"queue {url}", SqsQueue(sqs=self._of("sqs"), cloudwatch=None, url=url).depth)
        return found if isinstance(found, Absent | QueueDepth) else Absent.MISSING

    def topic(self, arn: str) -> Absent | None:
        found = self._ask(f"topic {arn}", lambda: self._of("sns").get_topic_attributes(TopicArn=arn))
        return found if isinstance(found, Absent) else None

    def job(self, name: str) -> JobShape | Absent:
        found = self._ask(f"Glue job {name}", lambda: self._of("glue").get_job(JobName=name))
        if isinstance(found, Absent):
            return found
        job = found["Job"]
        return JobShape(
            kind=str(job.get("Command", {}).get("Name", "")),
            max_concurrent_runs=int(job.get("ExecutionProperty", {}).get("MaxConcurrentRuns", 1)),
            max_retries=int(job.get("MaxRetries", 0)),
            arguments=dict(job.get("DefaultArguments", {})),
        )

    def metrics(self, namespace: str) -> Absent | None:
        asked = self._ask("CloudWatch", lambda: self._of("cloudwatch").list_metrics(Namespace=namespace))
        return asked if isinstance(asked, Absent) else None

    def _no_s3(self, why: str) -> AccessError:
        return AccessError(f"S3 at {self.endpoint}: something else answers, perhaps a proxy ({why})")

    def _ask(self, what: str, call: Any) -> Any:
        """The answer of a call, or why there is none."""
        try:
            with translated(what):
                return call()
        except StoreUnavailable:
            raise
        except CompactorError as exc:
            code = error_code(exc.__cause__) if isinstance(exc.__cause__, ClientError) else ""
            if code in _MISSING:
                return Absent.MISSING
            if code in _DENIED:
                return Absent.DENIED
            raise

    def _of(self, service: str, *, is_signed: bool = True) -> Any:
        found = self._clients.get((service, is_signed))
        if found is None:
            found = aws_client(service, *self._where, **self._patience, is_signed=is_signed, session=self._session)
            self._clients[service, is_signed] = found
        return found
