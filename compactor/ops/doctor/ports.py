"""What the doctor asks of the machine and of AWS, as protocols."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Literal, Protocol

from compactor.control.snapshot import QueueDepth
from compactor.ops.doctor.java import Java


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk that a path is on.

    Attributes:
        name: Tells one disk from another.
        free_bytes: What this user may still write.
        has_free_files: Whether another file may be made.
    """

    name: str
    free_bytes: int
    has_free_files: bool = True


@dataclass(frozen=True, slots=True)
class SparkFound:
    """Spark, as this Python would start it.

    Attributes:
        version: As in `4.1.1`.
        s3a: Whether the jars of S3A come with Spark, were fetched beside this Python, or are fetched at each start.
    """

    version: str
    s3a: Literal["shipped", "fetched", "at start"]


class Machine(Protocol):
    """The machine this runs on."""

    def python_version(self) -> tuple[int, ...]:
        """As in (3, 11, 2)."""

    def java(self) -> Java:
        """The Java that Spark would start."""

    def spark(self) -> SparkFound | None:
        """None where pyspark is not installed."""

    def has_native(self) -> bool:
        """Whether the native engine can be loaded."""

    def scratch_folders(self) -> tuple[str, ...]:
        """Where Spark and Python put what they need for a while, if the settings do not say."""

    def disk(self, path: str) -> Disk:
        """The disk of a path, or of its nearest folder that is there.

        Raises:
            AccessError: It cannot be told.
        """

    def tidied(self, path: str) -> AbstractContextManager[None]:
        """Removes folders on the way to a path, and itself, that were made meanwhile and are empty."""


class Absent(Enum):
    """Why something of AWS cannot be described."""

    MISSING = "missing"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table of DynamoDB.

    Attributes:
        keys: Its key: name, kind (`HASH` or `RANGE`) and type (`S`, `N`, `B`) of each part.
        status: As in `ACTIVE`.
        ttl_attribute: Names the attribute by which items are removed; nothing if none are.
    """

    keys: tuple[tuple[str, str, str], ...]
    status: str
    ttl_attribute: str


@dataclass(frozen=True, slots=True)
class JobShape:
    """A job of Glue.

    Attributes:
        kind: As in `gluestreaming`.
        max_concurrent_runs: How many runs Glue allows at once.
        max_retries: How often Glue itself starts a failed run again.
        arguments: Its default arguments by name.
    """

    kind: str
    max_concurrent_runs: int
    max_retries: int
    arguments: dict[str, str] = field(default_factory=dict)


class Account(Protocol):
    """An account of AWS, or a stand-in. Nothing here changes anything.

    Every method raises `StoreUnavailable` where there is no answer, and `AccessError` for what a person must change.
    """

    @property
    def endpoint(self) -> str:
        """Where S3 is asked."""

    def server_time(self, bucket: str) -> datetime:
        """The time there, in UTC, to the second; asked without credentials.

        Args:
            bucket: Any; it need not exist.
        """

    def region(self) -> str | None:
        """The region that is spoken to; None if none is named anywhere."""

    def credentials(self) -> str | None:
        """Where the credentials come from; None if there are none."""

    def refusal(self, bucket: str) -> str:
        """Why S3 does not take these credentials, in one word of its own; nothing if it does.

        Args:
            bucket: One to ask for; whether it is there, and may be listed, makes no difference.
        """

    def bucket(self, name: str) -> Absent | None:
        """None if the bucket is there."""

    def table(self, name: str) -> TableShape | Absent: ...

    def queue(self, url: str) -> QueueDepth | Absent: ...

    def topic(self, arn: str) -> Absent | None:
        """None if the topic is there."""

    def job(self, name: str) -> JobShape | Absent: ...

    def metrics(self, namespace: str) -> Absent | None:
        """None if CloudWatch answers."""
