"""Divides the manifests of one prefix among jobs side by side: which shard takes which manifest. No I/O.

Rendezvous hashing: every shard has a weight for every manifest, and the heaviest shard among those that are there takes
it. So a shard that goes moves its own manifests only, and one that comes takes its own from all others.
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
        """Return whether this shard takes a manifest while all shards are there; see `taker`."""
        return taker(name, range(1, self.of + 1)) == self.number

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a shard as `str` writes it.

        Raises:
            ValueError: It is none. The message says what is expected.
        """
        found = _TEXT.fullmatch(text)
        if found is None or int(found[2]) > MAX_SHARDS:
            raise ValueError(EXPECTED)
        shard = cls(int(found[1]), int(found[2]))
        if shard.number > shard.of:
            raise ValueError(f'"1/{shard.of}" to "{shard.of}/{shard.of}", as there are {shard.of} shards')
        return shard


def shard_number(text: str) -> int | None:
    """The number of a shard as a heartbeat names it; None for a run that works on all manifests."""
    try:
        return Shard.parse(text).number
    except ValueError:
        return None


def taker(name: str, shards: Collection[int]) -> int:
    """Return which of some shards takes a manifest.

    Args:
        name: The id of the manifest, as the name of its object has it.
        shards: The numbers of the shards that take manifests; at least one.
    """
    return max(shards, key=lambda number: (_weight(name, number), number))


def _weight(name: str, number: int) -> bytes:
    return blake2b(f"{number}/{name}".encode("utf-8", "surrogateescape"), digest_size=8).digest()
