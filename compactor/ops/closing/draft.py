"""Drafts the summary of some manifests, and finds file versions that other summaries also have.

Such versions are found by their digests: these are candidates, which the commits confirm. The digests of all summaries
are in an index in the state. Each closing adds the summaries that the index lacks.
"""

from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa

from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.closed_dates import (
    ClosedDate,
    ClosedTotals,
    DoubledVersion,
    Member,
    OpenFile,
    OpenLetter,
    SettledFile,
)
from compactor.core.documents.records import Redrive
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


@dataclass(frozen=True, slots=True)
class Collected:
    """Manifests for a summary, added one by one so that no outcome is held in memory."""

    members: list[Member] = field(default_factory=list)
    versions: Versions = field(default_factory=Versions.none)

    def add(self, key: ManifestKey, outcome: Commit | DeadLetter) -> None:
        """Add a manifest that is done and verified."""
        kept = counted = 0
        if isinstance(outcome, Commit):
            digests = [found for file in outcome.files if (found := version_digest(file))]
            self.versions.digests.extend(int.from_bytes(each[:DIGEST_BYTES], "big") for each in digests)
            self.versions.members.extend(array("I", [len(self.members)]) * len(digests))
            counted = sum(sum(file.unkept_rejects.values()) for file in outcome.files)
            kept = sum(sum(file.rejects.values()) for file in outcome.files) - counted
        self.members.append(Member(key.id, outcome.generation, kept, counted))


@dataclass(frozen=True, slots=True)
class Draft:
    """The next summary of a date, before it takes a place in the log.

    Attributes:
        summary: It still lists all dead letters and quarantined files of its members, settled or not.
        places: The date's summaries that are already in the log.
        versions: Sorted by digest.
    """

    summary: ClosedDate
    places: Sequence[int]
    members: Sequence[Member]
    versions: Versions

    @property
    def keys(self) -> list[ManifestKey]:
        return [ManifestKey(self.summary.date, each.id) for each in self.members]

    def following(self, state: State, totals: ClosedTotals, doubled: Sequence[DoubledVersion]) -> ClosedDate:
        """The summary that follows these totals. It lists as open only what nothing has settled yet."""
        # guard: items settled by an earlier summary are not listed as open
        letters, files = _still_open(state, self.summary.letters, self.summary.quarantined)
        known_letters, known_files = _still_open(state, totals.letters, totals.quarantined, self.keys)
        update = {
            "closed_at": state.clock.now(),
            "letters": letters,
            "quarantined": files,
            "redriven": [each.manifest_id for each in totals.letters if each not in known_letters],
            "settled": [
                SettledFile(manifest_id=each.manifest_id, uri=each.uri)
                for each in totals.quarantined
                if each not in known_files
            ],
            "doubled": list(doubled),
        }
        return self.summary.model_copy(update=update)


def open_things(report: VerifyResult, date: str) -> tuple[list[OpenLetter], list[OpenFile]]:
    """A date's dead letters and quarantined files found in a verification, settled or not."""
    letters = [
        OpenLetter(manifest_id=each.manifest_id, date=date, reason=each.reason, message=each.message)
        for each in report.dead_letter_manifests
    ]
    files = [
        OpenFile(
            manifest_id=each.manifest_id,
            date=date,
            uri=each.uri,
            status=each.status,
            detail=each.detail,
            committed_at=each.committed_at,
            started_at=each.started_at,
        )
        for each in report.quarantined_files
    ]
    return letters, files


def _still_open(
    state: State,
    letters: Sequence[OpenLetter],
    files: Sequence[OpenFile],
    among: Collection[ManifestKey] | None = None,
) -> tuple[list[OpenLetter], list[OpenFile]]:
    """The dead letters and quarantined files that the log must list, so that an interrupted redrive is found again.

    `among` are the only manifests that may have settled them since the last look; None for all manifests.
    """
    ids = [*(each.manifest_id for each in letters), *(each.manifest_id for each in files)]
    redrives = {each.id: _final_redrives(each) for each in accounts_of(state, ids, Detail.LINEAGE)}
    settling = Settling(state)
    left = [each for each in letters if all(one.kind != "manifests" for one in redrives[each.manifest_id] or ())]
    with_letters = zip(left, settling.letters(list(map(letter_of, left)), among), strict=True)
    checked = zip(files, settling.files(list(map(open_file, files)), among), strict=True)
    return [each for each, fate in with_letters if not fate.settled_by], [
        file
        for file, found in checked
        if (final := redrives[file.manifest_id]) is None or not (found.settled_by or file.uri in redriven_uris(final))
    ]


def _final_redrives(account: Account) -> list[Redrive] | None:
    """A manifest's redrives that took effect; None while one of them is neither accepted nor revoked."""
    if account.fault is not None:  # an operator has to check
        return None
    # guard: a summary names what was redriven until the redrive is accepted
    if not account.redrives_are_final:
        return None
    return account.effective_redrives


class VersionIndex:
    """The file versions of all summaries so far. For one thread."""

    def __init__(self, dates: ClosedDates) -> None:
        self._dates = dates
        self._levels = RunLevels(dates.store, dates.layout.closed_versions)
        self._upto = 0

    def read_to(self, place: int) -> None:
        """Add the summaries up to a place that the index lacks."""
        if not self._upto:
            self._forget_another()
        for each in range(self._levels.upto + 1, place + 1):
            self._levels.add(each, self._rows(each), self._dates.read(each).fingerprint)
        self._upto = place

    def shared(self, versions: Versions, *, after: int = 0) -> Iterator[tuple[int, int, int]]:
        """The versions of a new summary that summaries after a place also have, as far as the index was read.

        Yields:
            The number of the member of the new summary, the place of the other one, and the number of its member.
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
        """Drop the index of a different log, as after all summaries were deleted and recreated."""
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
    """Pairs of members, by number, with the same version. The versions are sorted."""
    for (digest, member), (next_digest, next_member) in pairwise(zip(versions.digests, versions.members, strict=True)):
        if digest == next_digest and member != next_member:
            yield member, next_member


def in_order(versions: Versions) -> Versions:
    """The versions sorted by digest."""
    digests, members, found = pa.py_buffer(versions.digests), pa.py_buffer(versions.members), Versions.none()
    columns = {
        "digest": pa.Array.from_buffers(pa.uint64(), len(versions), [None, digests]),
        "member": pa.Array.from_buffers(pa.uint32(), len(versions), [None, members]),
    }
    table = pa.table(columns).sort_by([("digest", "ascending"), ("member", "ascending")])
    for name, into in (("digest", found.digests), ("member", found.members)):
        width = into.itemsize
        for chunk in table[name].chunks:
            into.frombytes(chunk.buffers()[1].slice(chunk.offset * width, len(chunk) * width))
    return found
