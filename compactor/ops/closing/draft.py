"""The summary of some manifests, as it is made up before it takes its place in the log, and what it is compared with.

File versions that are in several summaries are found by their digests: candidates, each proved by the commits
themselves. The digests of all summaries are in an index in the state. Each closing adds the summaries that are not in
it yet.
"""

from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

import pyarrow as pa

from compactor.core.documents.closed_dates import (
    ClosedDate,
    ClosedTotals,
    DoubledVersion,
    Member,
    OpenFile,
    OpenLetter,
    SettledFile,
)
from compactor.core.documents.counts import Counts
from compactor.core.documents.records import Commit, DeadLetter, Redrive
from compactor.core.errors import ObjectNotFound
from compactor.core.layout import ManifestKey
from compactor.ledger.accounts.account import Account, letter_of, redriven_uris
from compactor.ledger.accounts.reading import Detail, accounts_of
from compactor.ledger.accounts.settling import Settling, open_file
from compactor.ledger.history.closed_dates import DIGEST_BYTES, ClosedDates, Versions
from compactor.ledger.history.run_levels import Row, RunLevels, number_of, place_and_member
from compactor.ledger.state import State
from compactor.ops.verify.doubled import version_digest
from compactor.ops.verify.report import VerifyResult


@dataclass(slots=True)
class Draft:
    """What goes into the next summary of a date.

    Attributes:
        number: 1 for the summary that closes the date.
        places: The summaries of the date that are in the log so far.
        until: The store's time of the latest record of the members.
        letters: Dead letters among the members, settled or not.
        quarantined: Quarantined files of theirs, settled or not.
    """

    date: str
    number: int
    places: Sequence[int]
    begins_at: datetime
    until: datetime
    members: list[Member] = field(default_factory=list)
    versions: Versions = field(default_factory=Versions.none)
    sums: Counts = field(default_factory=Counts)
    letters: list[OpenLetter] = field(default_factory=list)
    quarantined: list[OpenFile] = field(default_factory=list)
    doubled: list[DoubledVersion] = field(default_factory=list)

    @property
    def keys(self) -> list[ManifestKey]:
        return [ManifestKey(self.date, each.id) for each in self.members]

    def add(self, key: ManifestKey, outcome: Commit | DeadLetter) -> None:
        """Add a manifest that is done and verified."""
        number, kept, counted = len(self.members), 0, 0
        if isinstance(outcome, Commit):
            digests = [found for file in outcome.files if (found := version_digest(file))]
            self.versions.digests.extend(int.from_bytes(each[:DIGEST_BYTES], "big") for each in digests)
            self.versions.members.extend(array("I", [number]) * len(digests))
            counted = sum(sum(file.unkept_rejects.values()) for file in outcome.files)
            kept = sum(sum(file.rejects.values()) for file in outcome.files) - counted
        self.members.append(Member(key.id, outcome.generation, kept, counted))

    def complete(self, report: VerifyResult, superseded: Counts) -> None:
        """Take over what the verification of the members has found, less what earlier summaries have of them."""
        self.versions = _in_order(self.versions)
        # guard: what an earlier summary has of a rebuilt manifest is taken back
        self.sums = report - superseded
        self.letters = [
            OpenLetter(manifest_id=each.manifest_id, date=self.date, reason=each.reason, message=each.message)
            for each in report.dead_letter_manifests
        ]
        self.quarantined = [
            OpenFile(
                manifest_id=each.manifest_id,
                date=self.date,
                uri=each.uri,
                status=each.status,
                detail=each.detail,
                committed_at=each.committed_at,
                started_at=each.started_at,
            )
            for each in report.quarantined_files
        ]

    def summary(self, state: State, totals: ClosedTotals) -> ClosedDate:
        """The summary that follows on these totals. What was settled by then is not open any more."""
        # guard: what an earlier summary settles is not named as open
        letters, files = _still_open(state, self.letters, self.quarantined)
        known_letters, known_files = _still_open(state, totals.letters, totals.quarantined, self.keys)
        return ClosedDate(
            date=self.date,
            number=self.number,
            run_id=state.ledger.run_id,
            closed_at=state.clock.now(),
            begins_at=self.begins_at,
            until=self.until,
            sums=self.sums,
            letters=letters,
            quarantined=files,
            redriven=[each.manifest_id for each in totals.letters if each not in known_letters],
            settled=[
                SettledFile(manifest_id=each.manifest_id, uri=each.uri)
                for each in totals.quarantined
                if each not in known_files
            ],
            doubled=self.doubled,
            members=0,
            member_bytes=0,
            versions=0,
        )


def _still_open(
    state: State,
    letters: Sequence[OpenLetter],
    files: Sequence[OpenFile],
    among: Collection[ManifestKey] | None = None,
) -> tuple[list[OpenLetter], list[OpenFile]]:
    """Those dead letters and quarantined files that the log has to name, so that an interrupted redrive is found again.

    Args:
        state: Has the records.
        letters: The dead letters.
        files: The quarantined files.
        among: Only these manifests may have settled them since they were looked at; None for all that may.
    """
    ids = [*(each.manifest_id for each in letters), *(each.manifest_id for each in files)]
    redrives = {each.id: _final_redrives(each) for each in accounts_of(state, ids, Detail.LINEAGE)}
    settling = Settling(state)
    left = [each for each in letters if all(one.kind != "manifests" for one in redrives[each.manifest_id] or ())]
    fates = zip(left, settling.letters(list(map(letter_of, left)), among), strict=True)
    checked = zip(files, settling.files(list(map(open_file, files)), among), strict=True)
    return [each for each, fate in fates if not fate.settled_by], [
        file
        for file, found in checked
        if (final := redrives[file.manifest_id]) is None or not (found.settled_by or file.uri in redriven_uris(final))
    ]


def _final_redrives(account: Account) -> list[Redrive] | None:
    """The redrives of a manifest in effect; None where one of them is not accepted or revoked for good."""
    if account.fault is not None:  # a person has to check
        return None
    # guard: a summary names what was redriven until the redrive is accepted
    if not account.redrives_are_final:
        return None
    return account.taken


class VersionIndex:
    """The file versions of all summaries so far. For one thread."""

    def __init__(self, dates: ClosedDates) -> None:
        self._dates = dates
        self._levels = RunLevels(dates.store, dates.layout.closed_versions)
        self._upto = 0

    def read_to(self, place: int) -> None:
        """Add the summaries up to a place that are not in the index."""
        if not self._upto:
            self._forget_another()
        for each in range(self._levels.upto + 1, place + 1):
            self._levels.add(each, self._rows(each), self._dates.read(each).fingerprint)
        self._upto = place

    def shared(self, versions: Versions, *, after: int = 0) -> Iterator[tuple[int, int, int]]:
        """The versions of a new summary that summaries behind a place have, too, as far as the index was read.

        Yields:
            The member of the new one by its number; the place of the other summary; and the number of its member.
        """
        found: dict[int, list[tuple[int, int]]] = {}
        for digest, number in self._levels.find(versions.digests, after=after):
            place, member = place_and_member(number)
            # guard: file versions are compared with those of all summaries
            if after < place <= self._upto:  # another process may have added more
                found.setdefault(digest, []).append((place, member))
        if found:
            for digest, own in zip(versions.digests, versions.members, strict=True):
                yield from ((own, *other) for other in found.get(digest, ()))

    def _forget_another(self) -> None:
        """Forget the index of another log, as after the summaries were deleted and made anew."""
        upto, found = self._levels.upto, ""
        with suppress(ObjectNotFound):
            found = self._dates.read(upto).fingerprint if upto else ""
        if found != self._levels.note:
            self._levels.forget()

    def _rows(self, place: int) -> Iterator[Row]:
        for part in self._dates.versions(place):
            yield from (
                (digest, number_of(place, member)) for digest, member in zip(part.digests, part.members, strict=True)
            )


def shared_within(versions: Versions) -> Iterator[tuple[int, int]]:
    """The members, by number, that have a version in common with the one before it, given versions in order."""
    for (digest, member), (next_digest, next_member) in pairwise(zip(versions.digests, versions.members, strict=True)):
        if digest == next_digest and member != next_member:
            yield member, next_member


def _in_order(versions: Versions) -> Versions:
    """The versions sorted by digest."""
    columns = {"digest": _column(versions.digests, pa.uint64()), "member": _column(versions.members, pa.uint32())}
    table = pa.table(columns).sort_by([("digest", "ascending"), ("member", "ascending")]).combine_chunks()
    found = Versions.none()
    for chunk in table["digest"].chunks:
        found.digests.frombytes(_bytes(chunk, found.digests.itemsize))
    for chunk in table["member"].chunks:
        found.members.frombytes(_bytes(chunk, found.members.itemsize))
    return found


def _column(values: "array[int]", kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _bytes(chunk: pa.Array, width: int) -> bytes:
    data: bytes = chunk.buffers()[1].slice(chunk.offset * width, len(chunk) * width).to_pybytes()
    return data
