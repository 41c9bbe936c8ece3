"""The messages from feeder to builder: S3 notifications about files on the local disk."""

from compactor.core.documents.manifest import ManifestFile
from compactor.sources.events.messages import Announcement, parse_body
from tests.support.s3_messages import notification

_BUCKET = "disk"


def announcement(file: ManifestFile) -> str:
    """Make the notification that S3 would send about a file with an absolute path. The disk is the bucket."""
    if file.event_time is None:
        raise ValueError(f"{file.uri}: expected the time of its event")
    time = file.event_time.isoformat()
    return notification(_BUCKET, file.uri.removeprefix("/"), file.size_bytes or 0, file.etag or "", time=time)


def read_announcement(body: str | bytes) -> Announcement:
    """Read such a notification, with paths for URIs. The rest is as the builder reads it on AWS.

    Raises:
        EventError: It is not such a notification.
    """
    said = parse_body(body)
    files = (file.model_copy(update={"uri": file.uri.removeprefix(f"s3://{_BUCKET}")}) for file in said.files)
    return Announcement(tuple(files), said.ignored)
