"""Tells which stream an object belongs to: that of the longest prefix. Decisions, no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compactor.core.layout import canonical, folder, is_within


def of_stream(stream: str, holder: str) -> str:
    """The id of a manifest with its stream, as claims have it. No id contains a colon."""
    return f"{stream}:{holder}"


@dataclass(frozen=True)
class Routes:
    """The prefixes of all streams. No prefix is of two streams.

    Attributes:
        prefixes: Those of each stream, by its name.
    """

    prefixes: Mapping[str, Sequence[str]]
    _streams: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name, prefixes in self.prefixes.items():
            self._streams.update({folder(canonical(prefix)): name for prefix in prefixes})

    def stream_of(self, uri: str) -> str | None:
        """Return the stream with the longest prefix that an object is below; None if it is below none."""
        path = canonical(uri)
        end = len(path)
        while (end := path.rfind("/", 0, end)) >= 0:
            above = path[: end + 1]
            if (stream := self._streams.get(above)) is not None:
                return stream if is_within(uri, above) or path == above else None
        return None
