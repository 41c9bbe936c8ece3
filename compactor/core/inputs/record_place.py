"""Where the records of a JSON document are: a path to an array, and keys beside it to carry along."""

import re
from dataclasses import dataclass

AUTO = "auto"
"""In place of a path: the few that are recognised."""

PATH_EXPECTED = "keys separated by dots, with [] after each array and at the end, such as Records[] or a[].b[]"

_PART = re.compile(r'(\.|^)(?:"([^"\\]+)"|([^.\[\]"\\\s]+))((?:\[\])*)')


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where records are. A document, or each element of a top-level array, is a record if `path` is empty.

    Attributes:
        path: Keys, with `[]` for each array whose elements lead to records.
        keep: Keys of the objects on the path whose values are carried into each record.
    """

    path: str = ""
    keep: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, keep: tuple[str, ...] = ()) -> "RecordPlace":
        """Parse a path. Raises a `ValueError` with what was expected."""
        path = text.removeprefix("[].") if text != "[]" else ""  # top-level arrays are always entered
        place = cls(path, keep)
        if path and not (path.endswith("[]") and place.steps):
            raise ValueError(PATH_EXPECTED)
        return place

    @property
    def steps(self) -> tuple[str | None, ...]:
        """A key for each object on the path, and None for each array; empty also if the path has a fault."""
        steps: list[str | None] = []
        at = 0
        while at < len(self.path):
            found = _PART.match(self.path, at)
            if found is None or bool(found[1]) is not bool(at):
                return ()
            steps += [found[2] or found[3], *[None] * (len(found[4]) // 2)]
            at = found.end()
        return tuple(steps)


DOCUMENTS = RecordPlace()
"""Each document is a record, and so is each element of a top-level array."""

KNOWN_PLACES = {
    "Records": "Records[]",
    "logEvents": "logEvents[]",
    "resourceLogs": "resourceLogs[].scopeLogs[].logRecords[]",
    "resourceMetrics": "resourceMetrics[].scopeMetrics[].metrics[]",
    "resourceSpans": "resourceSpans[].scopeSpans[].spans[]",
}
"""Paths by the key of their first array: CloudTrail and S3 events, CloudWatch Logs subscriptions, and OTLP."""


def path_of_array(key: str) -> str:
    """The path to the records in the array of a top-level key."""
    return KNOWN_PLACES.get(key) or (f"{key}[]" if _PART.fullmatch(key) else f'"{key}"[]')
