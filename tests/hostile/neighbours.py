"""Honest manifests, and the exact rows that must come of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import pyarrow as pa

COUNT = 5
FILES = 2
_FILLER = "x" * 200


@dataclass(frozen=True)
class Neighbours:
    """Five honest manifests of two files each.

    Attributes:
        rows: Rows of each file.
    """

    rows: int = 10
    keys: ClassVar = frozenset({"id", "amount", "tags", "text"})

    def ids(self) -> tuple[str, ...]:
        """The manifest ids; attacks have ids that are listed before them."""
        return tuple(f"honest-{number}" for number in range(COUNT))

    def files(self, manifest_id: str) -> Iterator[tuple[str, bytes]]:
        """The files of a manifest: name and bytes."""
        for number in range(FILES):
            lines = (
                f'{{"id": "{key}", "amount": 1.{amount:02}0, "tags": ["a", {{"b": null}}], "text": "{_FILLER}"}}\n'
                for key, amount in self.of_file(manifest_id, number)
            )
            yield f"{manifest_id}-{number}.ndjson", "".join(lines).encode()

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
        {"amount": f"1.{amount:02}0", "id": key, "tags": '["a", {"b": null}]', "text": _FILLER}
        for number in range(FILES)
        for key, amount in neighbours.of_file(manifest_id, number)
    ]
    return pa.Table.from_pylist(rows).sort_by("id")
