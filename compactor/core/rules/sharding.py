"""Divides the manifests of one prefix among parallel jobs: which shard takes which manifest. No I/O.

Rendezvous hashing: every shard has a weight for every manifest, and the heaviest shard that is present takes it. So a
shard that leaves moves only its own manifests, and one that joins takes its own from all others.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

MAX_SHARDS = 64
"""Each shard reads the heartbeats of all others every few seconds."""

EXPECTED = f'a shard such as "2/4", the second of four; at most {MAX_SHARDS}'

_TEXT = re.compile(r"([1-9][0-9]?)/([1-9][0-9]?)")


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """One of several jobs that share the manifests of a prefix.

    Attributes:
        number: From 1.
        of: How many shards there are.
    """

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def is_home_of(self, name: str) -> bool:
        """Whether this shard takes a manifest while all shards are present; see `taker`."""
        return taker(name, range(1, self.of + 1)) == self.number

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a shard as written by `str`.

        Raises:
            ValueError: It is malformed. The message says what was expected.
        """
        found = _TEXT.fullmatch(text)
        if found is None or int(found[2]) > MAX_SHARDS:
            raise ValueError(EXPECTED)
        shard = cls(int(found[1]), int(found[2]))
        if shard.number > shard.of:
            raise ValueError(f'"1/{shard.of}" to "{shard.of}/{shard.of}", as there are {shard.of} shards')
        return shard


def shard_number(text: str) -> int | None:
    """The shard number in a heartbeat; None for a run that takes all manifests."""
    try:
        return Shard.parse(text).number
    except ValueError:
        return None


def taker(name: str, shards: Collection[int]) -> int:
    """Decide which shard takes a manifest.

    Args:
        name: The manifest's id, as in the name of its object.
        shards: The numbers of the present shards; at least one.
    """
    return max(shards, key=lambda number: (_weight(name, number), number))


def _weight(name: str, number: int) -> bytes:
    return blake2b(f"{number}/{name}".encode("utf-8", "surrogateescape"), digest_size=8).digest()
