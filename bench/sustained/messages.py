"""The messages from feeder to builder: S3 notifications, by a pipe, or by a queue of SQS."""

import json
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from compactor.adapters.aws.clients import sqs_client
from compactor.core.documents.manifest import ManifestFile
from compactor.core.layout import is_s3
from compactor.sources.events.messages import Announcement, parse_body
from tests.support.s3_messages import notification

_DISK = "disk"
_OF_ONE_CALL = 10  # SQS's limit
_PAUSE_SECONDS = 0.2


def announcement(file: ManifestFile) -> str:
    """Make the notification that S3 would send about a file. For one with an absolute path, the disk is the bucket."""
    if file.event_time is None:
        raise ValueError(f"{file.uri}: expected the time of its event")
    bucket, _, key = file.uri.removeprefix("s3://").partition("/") if is_s3(file.uri) else (_DISK, "", file.uri[1:])
    return notification(bucket, key, file.size_bytes or 0, file.etag or "", time=file.event_time.isoformat())


def read_announcement(body: str | bytes) -> Announcement:
    """Read such a notification, with paths for URIs of the disk. The rest is as the builder reads it on AWS.

    Raises:
        EventError: It is not such a notification.
    """
    said = parse_body(body)
    files = (file.model_copy(update={"uri": file.uri.removeprefix(f"s3://{_DISK}")}) for file in said.files)
    return Announcement(tuple(files), said.ignored)


@dataclass(frozen=True, slots=True)
class Message:
    """A message for the builder, with what SQS deletes it by."""

    body: str
    receipt: str = ""


class Inbox(Protocol):
    """Takes messages however slow the builder is."""

    @property
    def is_over(self) -> bool:
        """Whether no message waits, and none will arrive."""

    def take(self, most: int, window_seconds: float) -> list[Message]:
        """Take the next batch: the most that a call may have, or what arrives within the window."""

    def settle(self, done: Sequence[Message], again: Sequence[Message]) -> None:
        """End a batch: what is done does not come again, the rest does."""


class PipedInbox(Inbox):
    """A queue in memory.

    Args:
        lines: The messages, as they arrive.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self._waiting: deque[Message] = deque()
        self._changed = threading.Condition()
        self._ended = False
        threading.Thread(target=self._fill, name="inbox", daemon=True).start()

    @property
    def is_over(self) -> bool:
        with self._changed:
            return self._ended and not self._waiting

    def take(self, most: int, window_seconds: float) -> list[Message]:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or len(self._waiting) >= most, window_seconds)
            return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def settle(self, done: Sequence[Message], again: Sequence[Message]) -> None:  # noqa: ARG002 - taken is done
        with self._changed:
            self._waiting.extend(again)

    def _fill(self) -> None:
        for line in self._lines:
            with self._changed:
                self._waiting.append(Message(line))
                self._changed.notify()
        with self._changed:
            self._ended = True
            self._changed.notify()


@dataclass(slots=True)
class QueueInbox(Inbox):
    """A queue of SQS.

    Attributes:
        url: Its URL, of a server on this machine.
        region: Any; clients need one.
        end: A file that the feeder writes after its last message.
    """

    url: str
    region: str
    end: Path
    _client: Any = field(default=None, init=False)
    _is_empty: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._client = _client(self.url, self.region)

    @property
    def is_over(self) -> bool:
        return self._is_empty and self.end.exists()

    def take(self, most: int, window_seconds: float) -> list[Message]:
        taken: list[Message] = []
        until = time.monotonic() + window_seconds
        while len(taken) < most:
            left_seconds, has_ended = until - time.monotonic(), self.end.exists()
            # No long poll: during one, moto was seen to take no messages.
            got = self._client.receive_message(QueueUrl=self.url, MaxNumberOfMessages=_OF_ONE_CALL).get("Messages", [])
            taken += [Message(each["Body"], each["ReceiptHandle"]) for each in got]
            self._is_empty = has_ended and not got
            if left_seconds <= 0 or self._is_empty:
                break
            if not got:
                time.sleep(min(_PAUSE_SECONDS, left_seconds))
        return taken

    def settle(self, done: Sequence[Message], again: Sequence[Message]) -> None:
        for some in _tens(done):
            self._client.delete_message_batch(
                QueueUrl=self.url,
                Entries=[{"Id": str(number), "ReceiptHandle": each.receipt} for number, each in enumerate(some)],
            )
        for each in again:
            self._client.change_message_visibility(QueueUrl=self.url, ReceiptHandle=each.receipt, VisibilityTimeout=0)


@dataclass(slots=True)
class QueueSender:
    """Sends notifications to a queue of SQS, ten in a message: moto needs 20 ms for each message.

    Attributes:
        url: Its URL, of a server on this machine.
        region: Any; clients need one.
    """

    url: str
    region: str
    _client: Any = field(default=None, init=False)
    _waiting: list[Any] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._client = _client(self.url, self.region)

    def send(self, message: str) -> None:
        """Send a notification with the next ones."""
        self._waiting += json.loads(message)["Records"]
        if len(self._waiting) >= _OF_ONE_CALL:
            self.flush()

    def flush(self) -> None:
        """Send what waits."""
        if self._waiting:
            self._client.send_message(QueueUrl=self.url, MessageBody=json.dumps({"Records": self._waiting}))
            self._waiting.clear()


def _client(url: str, region: str) -> Any:
    return sqs_client(region, "/".join(url.split("/")[:3]))


def _tens(messages: Sequence[Message]) -> Iterable[Sequence[Message]]:
    return (messages[start : start + _OF_ONE_CALL] for start in range(0, len(messages), _OF_ONE_CALL))
