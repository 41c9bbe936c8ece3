"""Makes lines of the records of a shard: one of each record, or of each one that a producer packed into it. No I/O."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from compactor.core.kinesis.aggregation import user_records
from compactor.core.kinesis.ports import Shard, StreamRecord
from compactor.ndjson.codecs import SNIFF_BYTES, sniff

Strays = Literal["keep", "drop"]
"""What becomes of packed records that hash to another shard."""

_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class ShardLines:
    """Gathers the lines of records.

    Attributes:
        shard: Theirs.
        stray_rule: See `Strays`. "drop" leaves out all that are packed with a stray one, as the Kinesis Client Library
            does, because the KPL sends all of these again.
        records: Records as the stream counts them.
        packed: How many of these have others packed into them.
        strays: Packed records that were left out.
        length_bytes: Of the lines.
    """

    shard: Shard
    stray_rule: Strays = "keep"
    records: int = 0
    packed: int = 0
    strays: int = 0
    length_bytes: int = 0
    _lines: list[bytes] = field(default_factory=list)

    def add(self, records: Iterable[StreamRecord]) -> None:
        """Add the lines of further records."""
        for record in records:
            self.records += 1
            for data in self._unpacked(record.data):
                line = data.replace(b"\n", b"\r") if b"\n" in data else data  # JSON treats them alike
                self._lines.append(line)
                self.length_bytes += len(line) + 1

    def _unpacked(self, data: bytes) -> list[bytes]:
        packed = user_records(data)
        if packed is None:
            return [data]
        self.packed += 1
        shard = self.shard
        if self.stray_rule == "drop" and any(
            not shard.first_hash <= each.hash_key <= shard.last_hash for each in packed
        ):
            self.strays += len(packed)
            return []
        return [each.data for each in packed]

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def to_bytes(self) -> bytes:
        """The content of an object with these lines: never one that looks compressed, whatever the first record is."""
        text = b"\n".join(self._lines) + b"\n" if self._lines else b""
        looks_otherwise = text.startswith(_BOM) or sniff(text[:SNIFF_BYTES]) != "none"
        return b" " + text if looks_otherwise else text
