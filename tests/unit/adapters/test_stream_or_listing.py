"""Manifests are found although Spark's stream cannot get past one of their objects."""

from collections.abc import Callable, Sequence

import pytest

from compactor.adapters.spark.stream import StreamOrListing
from compactor.core.errors import EngineFailed

DENIED = "java.nio.file.AccessDeniedException: s3://lake/manifests/closed.json: getFileStatus: Status Code: 403"
OF_ANOTHER_PLACE = "java.nio.file.AccessDeniedException: s3://lake/state/checkpoint/1/offsets: Status Code: 403"


class Source:
    """Delivers its name, and may fail."""

    def __init__(self, name: str, cause: str = "") -> None:
        self.name = name
        self.cause = cause
        self.is_running = False

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:  # noqa: ARG002 - of the port
        self.is_running = True
        on_batch([self.name])

    def wait(self, timeout_seconds: float) -> bool:  # noqa: ARG002 - of the port
        if self.cause:
            raise EngineFailed("the stream failed") from RuntimeError(self.cause)
        return False

    def is_idle(self) -> bool:
        return self.name == "listing"

    def stop(self) -> None:
        self.is_running = False


@pytest.mark.parametrize(
    ("cause", "after"),
    [
        (DENIED, "listing"),
        (OF_ANOTHER_PLACE, "stream"),
        ("[PATH_NOT_FOUND] s3://lake/manifests/ does not exist", "stream"),
    ],
)
def test_listings_take_the_place_of_a_stream_that_cannot_open_a_manifest(cause: str, after: str) -> None:
    """The error is raised, so that the job starts its source again; trouble of other places changes nothing."""
    stream, listing = Source("stream", cause), Source("listing")
    source = StreamOrListing(stream=stream, listing=listing, manifests="s3://lake/manifests/")
    found: list[str] = []
    source.start(found.extend, once=False)
    with pytest.raises(EngineFailed):
        source.wait(0)
    assert stream.is_running == (after == "stream")
    source.start(found.extend, once=False)
    assert found == ["stream", after]
    assert source.is_idle() == (after == "listing")
    if after == "listing":
        assert not source.wait(0)
    source.stop()
    assert not stream.is_running
    assert not listing.is_running
