"""What the doctor asks AWS, as a protocol."""

from datetime import datetime
from enum import Enum
from typing import Any, Protocol


class Absent(Enum):
    """Why AWS does not describe something."""

    MISSING = "missing"
    DENIED = "denied"


class Account(Protocol):
    """An AWS account, or a stand-in. No method changes anything.

    Every method raises `StoreUnavailable` if no answer comes, and `AccessError` for what an operator must change.
    """

    @property
    def endpoint(self) -> str:
        """The URL of S3."""

    def server_time(self, bucket: str) -> datetime:
        """The time of S3 in UTC, to the second; asked without credentials. The bucket need not exist."""

    def region(self) -> str | None:
        """The region that is used; None if none is set anywhere."""

    def credentials(self) -> str | None:
        """Where the credentials come from; None if there are none."""

    def refusal(self, bucket: str) -> str:
        """The error code with which S3 refuses the credentials themselves; empty if it accepts them."""

    def describe(self, service: str, call: str, **arguments: Any) -> dict[str, Any] | Absent:
        """The answer to a call of a service that only reads, such as `glue`, `get_job`, `JobName="a"`."""
