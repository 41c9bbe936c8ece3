"""Shows how far behind streams of Kinesis planning is."""

from collections.abc import Iterable, Iterator

from compactor.core.kinesis.places import SCHEME
from compactor.manifests.kinesis.streams_seen import StreamSeen


def kinesis_lines(streams: Iterable[StreamSeen]) -> list[str]:
    """A line for each stream, and why plans failed if they did."""
    return [line for each in streams for line in _lines(each)]


def _lines(stream: StreamSeen) -> Iterator[str]:
    name = stream.name.removeprefix(SCHEME)
    yield f"{name}: {stream.words}"
    if stream.error:
        yield f"{name}: {stream.error}"
