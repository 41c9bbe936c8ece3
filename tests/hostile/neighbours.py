"""Honest manifests, and the exact rows that must come of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import pyarrow as pa

COUNT = 5
FILES = 2
RECORDS = "Records[]"
"""Where records are in a document, for attacks on that form of input."""

GROK = r"^%{DATA:id}\|%{DATA:amount}\|%{DATA:tags}\|%{DATA:text}\|%{NUMBER:end}$"
"""The pattern of text lines, for attacks on that form of input."""

_FILLER = "x" * 200
_TAGS = '["a", {"b": null}]'


@dataclass(frozen=True)
class Neighbours:
    """Five honest manifests of two files each.

    Attributes:
        rows: Rows of each file.
        form: `lines` of JSON, `records` in a document, or lines of text for a `grok` pattern.
    """

    rows: int = 10
    form: str = "lines"
    keys: ClassVar = frozenset({"id", "amount", "tags", "text"})

    def ids(self) -> tuple[str, ...]:
        """The manifest ids; attacks have ids that are listed before them."""
        return tuple(f"honest-{number}" for number in range(COUNT))

    def files(self, manifest_id: str) -> Iterator[tuple[str, bytes]]:
        """The files of a manifest: name and bytes."""
        for number in range(FILES):
            rows = self.of_file(manifest_id, number)
            if self.form == "grok":
                text = "".join(f"{key}|1.{amount:02}0|{_TAGS}|{_FILLER}|7\n" for key, amount in rows)
            else:
                lines = [
                    f'{{"id": "{key}", "amount": 1.{amount:02}0, "tags": {_TAGS}, "text": "{_FILLER}"}}\n'
                    for key, amount in rows
                ]
                text = "".join(lines) if self.form == "lines" else f'{{"Records": [{",".join(lines)}]}}'
            yield f"{manifest_id}-{number}.ndjson", text.encode()

    def expected(self, manifest_id: str) -> pa.Table:
        """The rows of a manifest in the order of keys and ids: every value is the text that its line holds."""
        return _expected(self, manifest_id)

    def of_file(self, manifest_id: str, number: int) -> Iterator[tuple[str, int]]:
        """The id and a number of each row of a file."""
        for row in range(self.rows):
            yield f"{manifest_id}-{number}-{row}", row % 100


@cache
def _expected(neighbours: Neighbours, manifest_id: str) -> pa.Table:
    rows = [
        {"amount": f"1.{amount:02}0", "id": key, "tags": _TAGS, "text": _FILLER}
        for number in range(FILES)
        for key, amount in neighbours.of_file(manifest_id, number)
    ]
    return pa.Table.from_pylist(rows).sort_by("id")
