"""Records as the answers of Kinesis have them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from compactor.adapters.aws.errors import error_code, translated
from compactor.core.errors import StoreUnavailable
from compactor.core.logs.ports import LogRecord

_NOT_FOUND = "ResourceNotFoundException"


@contextmanager
def reading(place: str) -> Iterator[None]:
    """Translate errors about a shard. One that is gone since it was listed is passing trouble."""
    with translated(place):
        try:
            yield
        except ClientError as exc:
            if error_code(exc) == _NOT_FOUND:
                raise StoreUnavailable(f"{place}: it is gone since it was listed") from exc
            raise


def record_of(answered: Mapping[str, Any]) -> LogRecord:
    """A record of an answer."""
    arrived: datetime = answered["ApproximateArrivalTimestamp"]
    return LogRecord(int(answered["SequenceNumber"]), bytes(answered["Data"]), arrived.astimezone(UTC))
