"""Honest manifests, and the exact rows that must come of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

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
                for key, amount in self._of_file(manifest_id, number)
            )
            yield f"{manifest_id}-{number}.ndjson", "".join(lines).encode()

    def expected(self, manifest_id: str) -> dict[str, dict[str, str]]:
        """The rows of a manifest by their id: every value is the text that its line holds."""
        return {
            key: {"id": key, "amount": f"1.{amount:02}0", "tags": '["a", {"b": null}]', "text": _FILLER}
            for number in range(FILES)
            for key, amount in self._of_file(manifest_id, number)
        }

    def _of_file(self, manifest_id: str, number: int) -> Iterator[tuple[str, int]]:
        for row in range(self.rows):
            yield f"{manifest_id}-{number}-{row}", row % 100
