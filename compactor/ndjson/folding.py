"""Rewrites records for Spark, which finds only the keys that it is told: gathers all others under one key."""

from dataclasses import dataclass

import orjson

from compactor.ndjson.rawjson import texts


@dataclass(frozen=True, slots=True)
class Fold:
    """How to rewrite records.

    Attributes:
        columns: The keys that keep their place.
        name: The key of the gathered entries; not one of `columns`.
    """

    columns: frozenset[str]
    name: str

    def lines(self, block: bytes) -> bytes:
        """Rewrite a block of records. Each line has its line feed.

        A record with keys without a column gets the same texts in another form: every value becomes a string, and the
        entries without a column an array of objects, because Spark reads no key of more than 50,000 characters.
        """
        return b"".join(self._line(line) for line in block.split(b"\n")[:-1])

    def _line(self, line: bytes) -> bytes:
        try:
            if orjson.loads(line).keys() <= self.columns:
                return line + b"\n"
        except orjson.JSONDecodeError:  # a number beyond double
            pass
        kept: dict[str, str] = {}
        entries = bytearray()
        values = texts(line)
        if values.keys() <= self.columns:
            return line + b"\n"
        for key, text in values.items():
            if text is None:
                continue
            if key in self.columns:
                kept[key] = text
            else:
                entries += b',{"key":%s,"value":%s}' % (orjson.dumps(key), orjson.dumps(text))
        members = orjson.dumps(kept)[1:-1]
        return b"{%s%s%s:[%s]}\n" % (members, b"," if members else b"", orjson.dumps(self.name), entries[1:])
