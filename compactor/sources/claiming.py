"""Claims each file version for exactly one manifest, even after a crash or with concurrent claimants.

A claimant claims files for an id, writes the manifest with that id, and then binds the id to it in the ledger. If the
claimant dies or is delayed, its lease expires, and the next claimant settles the id: it binds the id if the manifest
was written, and revokes it if not. Binding and revoking exclude each other, so a manifest written under a revoked id
never takes effect, and its files can be taken over. A claimant that finds its id revoked starts again before it
acknowledges the files.

Pending parts are claimed in the same way for the manifest into which they are sealed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Accepted
from compactor.core.errors import ObjectNotFound, SettingsError
from compactor.core.layout import canonical, digest
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import Claim, ClaimTable
from compactor.core.versions import length_of
from compactor.ledger.state import State

Fate = Literal["exists", "revoked", "unwritten"]
Kind = Literal["manifest", "part"]
KINDS: tuple[Kind, ...] = ("manifest", "part")
ClaimState = Literal["free", "taken", "held"]
"""`free` may be taken over, `taken` is permanently bound, `held` may still become either."""

_HOLDER_CHARACTERS = 180  # leaves room for suffixes


@dataclass(slots=True)
class Claimed:
    """The result for each key.

    Attributes:
        won: The claimant holds them.
        taken: Permanently bound to a different manifest or part.
        held: Claimed by a holder that may still write; each with the end of its lease.
    """

    won: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    held: dict[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimer:
    """Claims keys, and takes them over from holders that did not write in time.

    Attributes:
        neighbour: Returns a different stream's claimer, which can settle its ids; None without streams.
    """

    state: State
    claims: ClaimTable
    lease_seconds: float
    neighbour: "Callable[[str], Claimer] | None" = None
    _settled_states: dict[str, Fate] = field(default_factory=dict, init=False)

    def claim(self, keys: Sequence[str], holder: str) -> Claimed:
        """Claim keys (`claim_key`, `part_key`) for the id to be written next; takes over expired leases."""
        now = self.state.clock.now()
        claimed = Claimed()
        claims = self.claims.claim(keys, holder, now=now, lease_seconds=self.lease_seconds)
        others = {key: claim for key, claim in claims.items() if claim.holder != holder}
        claimed.won.update(claims.keys() - others.keys())
        holder_states = self._holder_states(others.values())
        for other in {claim.holder for claim in others.values() if _state(claim, holder_states, now) == "free"}:
            self._revoke(other, now)  # guard: a late manifest whose files were taken over never takes effect
            holder_states[other] = self._fate(other)
        claimed.taken.update(key for key, claim in others.items() if holder_states[claim.holder] == "exists")
        for other in {claim.holder for claim in others.values() if holder_states[claim.holder] == "revoked"}:
            left = [key for key, claim in others.items() if claim.holder == other]
            claimed.won |= self._take_over(left, other, holder, now)
        rest = others.keys() - claimed.taken - claimed.won
        claimed.held = {key: max(others[key].lease_until, now) for key in rest}
        return claimed

    def release_claims(self, keys: Sequence[str]) -> None:
        """Release the claims on files for which their manifests have no rows, so that they can be planned again."""
        now = self.state.clock.now()
        claims = self.claims.get_many(keys)
        for holder in {claim.holder for claim in claims.values()}:
            released = f"{holder[:_HOLDER_CHARACTERS]}-released"
            self._revoke(released, now)
            held = [key for key, claim in claims.items() if claim.holder == holder]
            self._take_over(held, holder, released, now)

    def hand_over(self, keys: Sequence[str], holder: str, manifest_id: str) -> None:
        """Move claims from an id to a manifest that now has their files."""
        self._take_over(keys, holder, manifest_id, self.state.clock.now())

    def revoke(self, holder: str) -> None:
        """Revoke one of this caller's ids, so that others need not wait for its lease."""
        self._revoke(holder, self.state.clock.now())

    def states(self, keys: Sequence[str]) -> dict[str, tuple[ClaimState, datetime]]:
        """The state of each claimed key, with the end of its lease. Omits unclaimed keys."""
        claims = self.claims.get_many(keys)
        holder_states, now = self._holder_states(claims.values()), self.state.clock.now()
        return {key: (_state(claim, holder_states, now), claim.lease_until) for key, claim in claims.items()}

    def bind(self, manifest: Manifest, kind: Kind) -> bool:
        """Bind an id to the manifest or part written under it, so that it can no longer be revoked.

        Returns:
            False if the id was already revoked: what was written never takes effect.
        """
        return self._bound(manifest, manifest.to_json(), kind) == "exists"

    def _bound(self, manifest: Manifest, data: bytes, kind: Kind) -> Fate:
        return _state_by(bind(self.state, manifest, data, self._place(manifest.manifest_id, kind), kind))

    def _take_over(self, keys: Sequence[str], other: str, holder: str, now: datetime) -> set[str]:
        return self.claims.take_over(
            keys, from_holder=other, to_holder=holder, now=now, lease_seconds=self.lease_seconds
        )

    def _revoke(self, holder: str, now: datetime) -> None:
        claimer, plain = self._settling(holder)
        record = Accepted(manifest_id=plain, kind="revoked", date=now.date().isoformat(), accepted_at=now)
        claimer.state.ledger.accept(record)

    def _settling(self, holder: str) -> "tuple[Claimer, str]":
        """The claimer that can settle an id, and the id as its ledger has it; see `neighbour`."""
        stream, separator, plain = holder.rpartition(":")
        if not separator:
            return self, holder
        if self.neighbour is None:
            expected = f"expected settings with [[streams]], including {stream}: input files are claimed by it"
            raise SettingsError([f"streams: none -> {expected}"])
        return self.neighbour(stream), plain  # guard: the state of an id is read from its own stream's ledger

    def _holder_states(self, claims: Iterable[Claim]) -> dict[str, Fate]:
        holders = list({claim.holder for claim in claims})
        return dict(zip(holders, map_ordered(self._fate, holders), strict=True))

    def _fate(self, holder: str) -> Fate:
        """The state of a claim's manifest or part. Only `unwritten` can still change."""
        if holder not in self._settled_states:
            claimer, plain = self._settling(holder)
            record = claimer.state.ledger.accepted(plain)
            fate = _state_by(record) if record is not None else claimer.fate_of_unbound(plain)
            if fate == "unwritten":
                return fate
            self._settled_states[holder] = fate
        return self._settled_states[holder]

    def fate_of_unbound(self, holder: str) -> Fate:
        """Bind a written but unbound manifest or part, which could otherwise still be revoked."""
        for kind in KINDS:
            try:
                data = self.state.store.read(self._place(holder, kind))
            except ObjectNotFound:
                continue
            manifest = Manifest.read(data, self._place(holder, kind), f"a {kind} of the id {holder}")
            # guard: a written manifest counts only once it is bound
            return self._bound(manifest, data, kind)
        record = self.state.ledger.accepted(holder)  # it may have been archived, or sealed, in the meantime
        return "unwritten" if record is None else _state_by(record)

    def _place(self, holder: str, kind: Kind) -> str:
        return self.state.layout.manifest(holder) if kind == "manifest" else self.state.layout.pending_part(holder)


def bind(state: State, manifest: Manifest, data: bytes, uri: str, kind: Kind = "manifest") -> Accepted:
    """Bind a manifest's or part's id to its bytes, unless it is bound already; return the valid record."""
    return state.ledger.accept(
        Accepted(
            manifest_id=manifest.manifest_id,
            kind=kind,
            date=manifest.date,
            digest=digest(data),
            source_uri=uri,
            accepted_at=state.clock.now(),
            manifest=manifest if kind == "manifest" else None,
        )
    )


def _state_by(record: Accepted) -> Fate:
    return "revoked" if record.kind == "revoked" else "exists"


def _state(claim: Claim, holder_states: Mapping[str, Fate], now: datetime) -> ClaimState:
    fate = holder_states[claim.holder]
    if fate == "exists":
        return "taken"
    # guard: files that another planner claimed are left to it while its lease lasts
    if fate == "unwritten" and claim.lease_until > now:
        return "held"
    return "free"


def state_of(claimed: Mapping[str, tuple[ClaimState, datetime]], key: str) -> ClaimState:
    """A key's state from `Claimer.states`, also for an unclaimed one."""
    return claimed[key][0] if key in claimed else "free"


def claim_key(file: ManifestFile) -> str:
    """The key of a file version. Every version has its own key, even if only some of its lines are taken."""
    key = f"{canonical(file.uri)}#{file.etag}"
    is_all = file.grown is None or file.grown.to_byte == length_of(file.etag or "")
    return key if is_all or file.grown is None else f"{key}@{file.grown.to_byte}"


def part_key(part_id: str) -> str:
    """The key of a pending part."""
    return f"part#{part_id}"


def manifests_of(claims: ClaimTable, holders: Iterable[str]) -> dict[str, str]:
    """The manifest of each holder: for a part, the one into which it was sealed; any other holder is itself."""
    distinct = list(dict.fromkeys(holders))
    sealed = claims.get_many([part_key(holder) for holder in distinct])
    return {each: sealed[part_key(each)].holder if part_key(each) in sealed else each for each in distinct}
