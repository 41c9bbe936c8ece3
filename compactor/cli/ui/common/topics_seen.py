"""Shows how far behind topics planning is."""

from collections.abc import Iterable, Iterator

from compactor.core.kafka.ranges import SCHEME
from compactor.manifests.kafka.topics_seen import TopicSeen


def topic_lines(topics: Iterable[TopicSeen]) -> list[str]:
    """A line for each topic, the worst partition of one that waits, and why plans or brokers failed if they did."""
    return [line for each in topics for line in _lines(each)]


def _lines(topic: TopicSeen) -> Iterator[str]:
    name = topic.name.removeprefix(SCHEME)
    yield f"{name}: {topic.words}"
    if topic.worst_partition is not None and topic.worst_offsets < topic.unplanned_offsets:
        yield f"{name}: {topic.worst_offsets:,} of them in partition {topic.worst_partition}"
    if topic.not_asked:
        yield f"{name}: as jobs noted; {topic.not_asked}"
    if topic.unseen_error and topic.unseen_error != topic.error:
        yield f"{name}: {topic.unseen_error}"
    if topic.error:
        yield f"{name}: {topic.error}"
