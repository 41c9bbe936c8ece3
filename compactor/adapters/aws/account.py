"""Looks up the resources in the settings, in AWS or a stand-in. Read-only, with short time-outs."""

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, partial
from typing import Any

from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from compactor.adapters.aws.clients import aws_session
from compactor.adapters.aws.errors import answered_code, error_code, translated
from compactor.core.errors import AccessError, CompactorError, StoreUnavailable
from compactor.ops.doctor.findings import Absent

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
"""Codes with which S3 refuses the credentials themselves [S3 API, error responses]."""

_CRASHED = "500"
"""S3 itself may send this, and so may a stand-in that cannot handle an unsigned request."""


class AwsAccount:
    """The account of the credentials that boto3 finds.

    Args:
        region: The region in the settings; None for that of the environment.
        new_client: Creates a boto3 client of a service; takes the other arguments of `aws_client`.
    """

    def __init__(self, region: str | None, new_client: Callable[..., Any]) -> None:
        self._session = aws_session()
        self._region = region
        self._client = cache(partial(new_client, session=self._session))

    @property
    def endpoint(self) -> str:
        return str(self._client("s3", is_signed=False).meta.endpoint_url)

    def server_time(self, bucket: str) -> datetime:
        client = self._client("s3", is_signed=False)
        try:
            with translated(f"S3 at {self.endpoint}"):
                answer = client.list_objects_v2(Bucket=bucket, MaxKeys=1)
        except ResponseParserError as exc:
            raise self._no_s3("its response is not XML") from exc
        except CompactorError as exc:
            # A refusal is a response, too, and has a date.
            if not isinstance(exc.__cause__, ClientError):
                raise
            answer = exc.__cause__.response
            if (code := error_code(exc.__cause__)).isdigit() and code != _CRASHED:
                raise self._no_s3(f"HTTP {code}, which S3 never sends") from exc
        try:
            time = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
        except (KeyError, ValueError) as exc:
            raise self._no_s3("its response has no date") from exc
        return time.astimezone(UTC)

    def region(self) -> str | None:
        with translated("region"):
            found = self._region or self._session.region_name
        return str(found) if found else None

    def credentials(self) -> str | None:
        with translated("credentials"):
            found = self._session.get_credentials()
        return str(found.method) if found else None

    def refusal(self, bucket: str) -> str:
        try:
            self._client("s3").list_objects_v2(Bucket=bucket, MaxKeys=1)
        except ClientError as exc:
            return error_code(exc) if error_code(exc) in _REFUSED else ""
        return ""

    def describe(self, service: str, call: str, **arguments: Any) -> dict[str, Any] | Absent:
        try:
            with translated(f"{service} {next(iter(arguments.values()))}"):
                answer: dict[str, Any] = getattr(self._client(service), call)(**arguments)
        except StoreUnavailable:
            raise
        except CompactorError as exc:
            code = answered_code(exc)
            if code in _MISSING:
                return Absent.MISSING
            if code in _DENIED:
                return Absent.DENIED
            raise
        return answer

    def _no_s3(self, why: str) -> AccessError:
        return AccessError(f"S3 at {self.endpoint}: a different server responds there, perhaps a proxy ({why})")
