"""The claims of one stream in the table that all streams have together: each holder is kept with its stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from compactor.core.inputs.routes import of_stream
from compactor.core.ports import Claim, ClaimTable


@dataclass(frozen=True, slots=True)
class StreamClaims:
    """A `ClaimTable` for one stream. Keys are the same for all streams, so that a file belongs to one of them.

    Holders of this stream are plain ids. Those of another stream are as `of_stream` names them, also those that claimed
    before the settings had streams, whose stream has no name.

    Attributes:
        claims: The table.
        stream: The name of the stream.
    """

    claims: ClaimTable
    stream: str

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        found = self.claims.claim(keys, self._kept(holder), now=now, lease_seconds=lease_seconds)
        return self._seen(found)

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        before, after = self._kept(from_holder), self._kept(to_holder)
        return self.claims.take_over(keys, from_holder=before, to_holder=after, now=now, lease_seconds=lease_seconds)

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        return self._seen(self.claims.get_many(keys))

    def _kept(self, holder: str) -> str:
        """A holder as the table has it."""
        stream, separator, plain = holder.rpartition(":")
        if not separator:
            return of_stream(self.stream, holder)
        return of_stream(stream, plain) if stream else plain

    def _seen(self, claims: dict[str, Claim]) -> dict[str, Claim]:
        """Claims as this stream sees them."""
        own = of_stream(self.stream, "")

        def holder(kept: str) -> str:
            return kept.removeprefix(own) if kept.startswith(own) else kept if ":" in kept else of_stream("", kept)

        return {key: Claim(holder(claim.holder), claim.lease_until) for key, claim in claims.items()}
