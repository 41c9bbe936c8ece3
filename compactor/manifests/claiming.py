"""Claims files for manifests to be written, each file version for exactly one, whatever crashes or runs twice.

A file is claimed for an id before the manifest of that id is written, and once it is written the id is tied to it in
the ledger. If the claimant dies or is held up, the claim's lease runs out, and another one asks what became of the id.
What was written is tied then, by whoever asks; what was not is made void, so that no late write under that id can ever
take effect, and only then are the files taken over. Tied and void exclude each other. Whoever writes late finds the id
void, and has to begin anew before telling anybody that the files are safe.

A pending part is claimed in the same way by the manifest that it is sealed into.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Literal

from compactor.core.errors import ObjectNotFound
from compactor.core.layout import Layout, canonical, digest
from compactor.core.manifest import Manifest, ManifestFile
from compactor.core.ports import Claim, ClaimTable, Clock, ObjectStore
from compactor.core.records import Accepted, read_record
from compactor.ledger.ledger import Ledger

Fate = Literal["exists", "revoked", "unwritten"]
Kind = Literal["manifest", "part"]
KINDS: tuple[Kind, ...] = ("manifest", "part")
ClaimState = Literal["free", "taken", "held"]
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
        others = {key: claim for key, claim in claims.items() if claim.holder != holder}
        claimed.won.update(claims.keys() - others.keys())
        fates = self._fates(others.values())
        for other in {claim.holder for claim in others.values() if _state(claim, fates, now) == "free"}:
            self._revoke(other, now)
            fates[other] = self._fate(other)
        claimed.taken.update(key for key, claim in others.items() if fates[claim.holder] == "exists")
        for other in {claim.holder for claim in others.values() if fates[claim.holder] == "revoked"}:
            left = [key for key, claim in others.items() if claim.holder == other]
            claimed.won |= self._take_over(left, other, holder, now)
        rest = others.keys() - claimed.taken - claimed.won
        claimed.held = {key: max(others[key].lease_until, now) for key in rest}
        return claimed

    def states(self, keys: Sequence[str]) -> dict[str, tuple[ClaimState, datetime]]:
        """How each key that is claimed stands, with the end of its lease."""
        claims = self._claims.get_many(keys)
        fates, now = self._fates(claims.values()), self._clock.now()
        return {key: (_state(claim, fates, now), claim.lease_until) for key, claim in claims.items()}

    def tie(self, manifest: Manifest, kind: Kind) -> bool:
        """Tie an id to what was written under it, so that nobody can give it up any more.

        Args:
            manifest: What was written, or is pending.
            kind: Which of the two.

        Returns:
            False if the id was given up meanwhile: what was written never takes effect.
        """
        return self._bound(manifest, manifest.to_json(), kind) == "exists"

    def _bound(self, manifest: Manifest, data: bytes, kind: Kind) -> Fate:
        record = self._ledger.accept(
            Accepted(
                manifest_id=manifest.manifest_id,
                kind=kind,
                date=manifest.date,
                digest=digest(data),
                source_uri=self._place(manifest.manifest_id, kind),
                accepted_at=self._clock.now(),
                manifest=manifest if kind == "manifest" else None,
            )
        )
        return _fate_by(record)

    def _take_over(self, keys: Sequence[str], other: str, holder: str, now: datetime) -> set[str]:
        return self._claims.take_over(
            keys, from_holder=other, to_holder=holder, now=now, lease_seconds=self._lease_seconds
        )

    def _revoke(self, holder: str, now: datetime) -> None:
        """Make sure that nothing takes effect under this id, unless something was tied to it before."""
        record = Accepted(manifest_id=holder, kind="revoked", date=now.date().isoformat(), accepted_at=now)
        self._ledger.accept(record)

    def _fates(self, claims: Iterable[Claim]) -> dict[str, Fate]:
        return {holder: self._fate(holder) for holder in {claim.holder for claim in claims}}

    def _fate(self, holder: str) -> Fate:
        """What became of the manifest or part that was claimed for. Only `unwritten` can still change."""
        if holder not in self._settled_fates:
            record = self._ledger.accepted(holder)
            fate = _fate_by(record) if record is not None else self._fate_of_untied(holder)
            if fate == "unwritten":
                return fate
            self._settled_fates[holder] = fate
        return self._settled_fates[holder]

    def _fate_of_untied(self, holder: str) -> Fate:
        """Tie what was written and not tied yet: to be there alone is not to be safe."""
        for kind in KINDS:
            try:
                data = self._store.read(self._place(holder, kind))
            except ObjectNotFound:
                continue
            read = partial(read_record, Manifest.model_validate_json, data, self._place(holder, kind))
            return self._bound(read(expected=f"a {kind} of the id {holder}"), data, kind)
        record = self._ledger.accepted(holder)  # it may have been archived, or sealed, between the two looks
        return "unwritten" if record is None else _fate_by(record)

    def _place(self, holder: str, kind: Kind) -> str:
        return self._layout.manifest(holder) if kind == "manifest" else self._layout.pending_part(holder)


def _fate_by(record: Accepted) -> Fate:
    return "revoked" if record.kind == "revoked" else "exists"


def _state(claim: Claim, fates: Mapping[str, Fate], now: datetime) -> ClaimState:
    fate = fates[claim.holder]
    if fate == "exists":
        return "taken"
    if fate == "unwritten" and claim.lease_until > now:
        return "held"
    return "free"


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
