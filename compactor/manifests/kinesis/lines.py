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
        lines: How many there are.
        taken_bytes: The length of the records, also of those of which nothing was kept.
    """

    shard: Shard
    stray_rule: Strays = "keep"
    records: int = 0
    packed: int = 0
    strays: int = 0
    lines: int = 0
    taken_bytes: int = 0
    _text: bytearray = field(default_factory=bytearray)  # producers can pack very many lines, which are short

    def add(self, records: Iterable[StreamRecord]) -> None:
        """Add the lines of further records."""
        for record in records:
            self.records += 1
            self.taken_bytes += len(record.data)
            for data in self._unpacked(record.data):
                self.lines += 1
                self._text += data.replace(b"\n", b"\r") if b"\n" in data else data  # JSON treats them alike
                self._text += b"\n"

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
    def length_bytes(self) -> int:
        """The length of the lines."""
        return len(self._text)

    @property
    def weight_bytes(self) -> int:
        """How much work they are: that of the lines, or of the records if little of these was kept."""
        return max(self.length_bytes, self.taken_bytes)

    def to_bytes(self) -> bytes:
        """The content of an object with these lines: never one that looks compressed, whatever the first record is."""
        text = bytes(self._text)
        looks_otherwise = text.startswith(_BOM) or sniff(text[:SNIFF_BYTES]) != "none"
        return b" " + text if looks_otherwise else text
