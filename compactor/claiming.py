"""Claims files for manifests to be written, each file version for exactly one, whatever crashes or runs twice.

A file is claimed for an id before the manifest of that id is written. If the claimant dies in between, the claim's
lease runs out, and another one asks whether the manifest came to be. If not, it makes the id void in the ledger first,
so that no late write of that manifest can ever take effect, and only then takes the file over.

A pending part is claimed in the same way by the manifest that it is sealed into.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from compactor.layout import Layout, canonical
from compactor.ledger import Ledger
from compactor.manifest import ManifestFile
from compactor.ports import Claim, ClaimTable, Clock, ObjectStore
from compactor.records import Accepted

Fate = Literal["exists", "void", "unwritten"]
Standing = Literal["free", "taken", "held"]
"""Whether a claim may be taken over, is for good, or may still become either."""


@dataclass(slots=True)
class Claimed:
    """What became of each key.

    Attributes:
        won: Held by the one who asked.
        taken: In the manifest, or the part, of another one for good.
        held: Claimed by another one who may still write; with the end of its lease.
    """

    won: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    held: dict[str, datetime] = field(default_factory=dict)


class Claimer:
    """Claims keys, and takes them over from holders that did not write in time.

    Args:
        store: Where manifests and pending parts are.
        layout: The places.
        ledger: Says which ids are void.
        claims: Who holds what.
        clock: Dates leases.
        lease_seconds: How long a claimant has to write.
    """

    def __init__(
        self,
        *,
        store: ObjectStore,
        layout: Layout,
        ledger: Ledger,
        claims: ClaimTable,
        clock: Clock,
        lease_seconds: float,
    ) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._claims = claims
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._settled_fates: dict[str, Fate] = {}

    def claim(self, keys: Sequence[str], holder: str) -> Claimed:
        """Claim keys for an id, and take over those whose holder did not write in time.

        Args:
            keys: As `claim_key` or `part_key` make them.
            holder: The id of a manifest or a part that is to be written now.
        """
        now = self._clock.now()
        claimed = Claimed()
        claims = self._claims.claim(keys, holder, now=now, lease_seconds=self._lease_seconds)
        for key, claim in claims.items():
            if claim.holder == holder or self._took_over(key, claim, holder, now):
                claimed.won.add(key)
            elif self._fate(claim.holder) == "exists":
                claimed.taken.add(key)
            else:
                claimed.held[key] = max(claim.lease_until, now)
        return claimed

    def standings(self, keys: Sequence[str]) -> dict[str, tuple[Standing, datetime]]:
        """How each key that is claimed stands, with the end of its lease."""
        return {key: (self._standing(claim), claim.lease_until) for key, claim in self._claims.get_many(keys).items()}

    def _standing(self, claim: Claim) -> Standing:
        fate = self._fate(claim.holder)
        if fate == "exists":
            return "taken"
        if fate == "unwritten" and claim.lease_until > self._clock.now():
            return "held"
        return "free"

    def _took_over(self, key: str, claim: Claim, holder: str, now: datetime) -> bool:
        """Take a key from a holder whose manifest was not written in time, and from now on never takes effect."""
        if self._standing(claim) != "free":
            return False
        if not self._is_void_now(claim.holder, now):
            return False
        return self._claims.take_over(
            key, from_holder=claim.holder, to_holder=holder, now=now, lease_seconds=self._lease_seconds
        )

    def _is_void_now(self, manifest_id: str, now: datetime) -> bool:
        """Make sure that nothing takes effect under this id; False if something was accepted before."""
        if self._fate(manifest_id) == "unwritten":
            record = Accepted(manifest_id=manifest_id, kind="void", date=now.date().isoformat(), accepted_at=now)
            self._ledger.accept(record)
        return self._fate(manifest_id) == "void"

    def _fate(self, holder: str) -> Fate:
        """What became of the manifest or part that was claimed for. Only `unwritten` can still change."""
        if holder not in self._settled_fates:
            fate = self._look_up_fate(holder)
            if fate == "unwritten":
                return fate
            self._settled_fates[holder] = fate
        return self._settled_fates[holder]

    def _look_up_fate(self, holder: str) -> Fate:
        record = self._ledger.accepted(holder)
        if record is not None:
            return "void" if record.kind == "void" else "exists"
        places = (self._layout.manifest(holder), self._layout.pending_part(holder))
        return "exists" if any(self._store.stat(uri) is not None for uri in places) else "unwritten"


def claim_key(file: ManifestFile) -> str:
    """What a file version is claimed under: its place and its version, so that a new version is a new file."""
    return f"{canonical(file.uri)}#{file.etag}"


def part_key(part_id: str) -> str:
    """What a pending part is claimed under."""
    return f"part#{part_id}"


def manifests_of(claims: ClaimTable, holders: Iterable[str]) -> dict[str, str]:
    """By the holder of a file, the manifest that the file is in: for a part, the one that it was sealed into."""
    distinct = list(dict.fromkeys(holders))
    sealed = claims.get_many([part_key(holder) for holder in distinct])
    return {each: sealed[part_key(each)].holder if part_key(each) in sealed else each for each in distinct}
