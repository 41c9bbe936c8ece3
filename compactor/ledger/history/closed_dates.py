"""The stored log of closed dates: summaries, each with its members and the digests of their file versions.

A summary is one object: a one-line document; one line per member; the digests in order; and for each digest its
member's number. Each place in the log is created once, so the process that writes a summary has read all earlier ones.
"""

import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from compactor.core.documents.closed_dates import (
    COMMIT_MARK,
    ClosedDate,
    ClosedTotals,
    ClosingBegun,
    Member,
    totals_with,
)
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import Layout, ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo, ObjectStore

DIGEST_BYTES = 8
"""Enough to find candidates: entries with the same digest are compared by their full names."""

VERSIONS_AT_ONCE = 1 << 20
_NUMBER_BYTES = 4
_HEAD_BYTES = 128 * 1024  # for a date with 3,000 manifests this includes the members


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of an unsummarised manifest, or of a date (no id in the key, generation 0)."""

    key: ManifestKey
    generation: int
    info: ObjectInfo

    @property
    def is_of_commit(self) -> bool:
        """Whether it shows that the manifest is not a dead letter."""
        return bool(self.key.id) and self.info.size_bytes == len(COMMIT_MARK)


@dataclass(slots=True)
class Versions:
    """File versions as digests, each with its member's number. Sorted by digest when stored."""

    digests: "array[int]"
    members: "array[int]"

    @classmethod
    def none(cls) -> "Versions":
        return cls(array("Q"), array("I"))

    def __len__(self) -> int:
        return len(self.digests)


@dataclass(frozen=True, slots=True)
class ClosedDates:
    """Reads and writes the log of closed dates, and the marks of manifests in no summary."""

    store: ObjectStore
    layout: Layout

    def has_begun(self) -> bool:
        """Whether every manifest is open, marked or in a summary."""
        return self.store.stat(self.layout.closing_begun) is not None

    def begin(self, begun: ClosingBegun) -> None:
        """Declare that this holds from now on."""
        self.store.create(self.layout.closing_begun, begun.to_json())

    def mark_date(self, date: str, run_id: str) -> None:
        """Have all records of a date read until its next summary."""
        self.store.create(self.layout.unsummarised_date(date, run_id), b"{}")

    def marks(self) -> Iterator[Mark]:
        """Every mark, by date."""
        for info in self.store.list(self.layout.unsummarised_folder):
            found = self.layout.unsummarised_mark(info.uri)
            if found is not None:
                yield Mark(*found, info)

    def totals(self) -> ClosedTotals:
        """The totals of all summaries, read from the cache and from the summaries not included in it.

        Raises:
            RecordUnreadable: One of these summaries is damaged, or in a newer format.
        """
        known = self._kept_totals()
        places = self.places(after=self.layout.summary(known.upto))
        return totals_with(known, list(zip(places, map_ordered(self.read, places), strict=True)))

    def _kept_totals(self) -> ClosedTotals:
        return ClosedTotals.find_readable(self.store, self.layout.closed_totals) or ClosedTotals()  # it can be rebuilt

    def keep_totals(self, totals: ClosedTotals) -> None:
        """Save the totals for later reads."""
        self.store.put(self.layout.closed_totals, totals.to_json())

    def read(self, place: int) -> ClosedDate:
        """One summary, without the content after its document.

        Raises:
            RecordUnreadable: It is damaged, or in a newer format.
        """
        return self._headed(place)[0]

    def members(self, place: int) -> list[Member]:
        """The members of a summary, in the order of their numbers.

        Raises:
            RecordUnreadable: As for `read`, or it is missing although the totals include it.
        """
        return self._with_members(place)[1]

    def _with_members(self, place: int) -> tuple[ClosedDate, list[Member], int]:
        """The document of a summary, its members, and their offset; see `members`."""
        try:
            summary, data, start = self._headed(place)
        except ObjectNotFound as exc:
            raise RecordUnreadable(f"{self.layout.summary(place)}: missing; expected summaries to be kept") from exc
        if len(data) < summary.member_bytes:
            data = self.store.read_range(self.layout.summary(place), start, summary.member_bytes)
        found = _members_in(data[: summary.member_bytes])
        if len(found) != summary.members:
            raise RecordUnreadable(f"{self.layout.summary(place)}: {len(found)} members; expected {summary.members}")
        return summary, found, start

    def places(self, *, after: str | None = None) -> list[int]:
        """The places of the existing summaries, in order; only those after a place, if given."""
        listed = self.store.list(self.layout.closed_folder, start_after=after)
        return sorted(place for info in listed if (place := self.layout.summary_place(info.uri)) is not None)

    def places_to_check(self) -> list[int]:
        """The places of the existing summaries, and of those known to be missing."""
        there = self.places()
        summed = {place for span in self._kept_totals().dates.values() for place in span.places}
        first_gap = next((at for at, place in enumerate(there, 1) if place != at), None)
        return sorted({*there, *summed, *([] if first_gap is None else [first_gap])})

    def check(self, place: int) -> None:
        """Check that a summary is complete; its file versions are counted, not read.

        Raises:
            RecordUnreadable: It is damaged or missing.
        """
        summary, members, start = self._with_members(place)
        uri = self.layout.summary(place)
        expected = start + summary.member_bytes + summary.versions * (DIGEST_BYTES + _NUMBER_BYTES)
        info = self.store.stat(uri)
        if info is None or info.size_bytes != expected:
            found = "missing" if info is None else f"{info.size_bytes} bytes"
            what = f"{len(members)} members and {summary.versions} file versions"
            raise RecordUnreadable(f"{uri}: {found}; expected {expected} bytes with {what}")

    def versions(self, place: int) -> Iterator[Versions]:
        """A summary's file versions in digest order, in parts of bounded size."""
        summary, _, start = self._headed(place)
        uri, first = self.layout.summary(place), start + summary.member_bytes
        numbers_at = first + summary.versions * DIGEST_BYTES
        for at in range(0, summary.versions, VERSIONS_AT_ONCE):
            count = min(VERSIONS_AT_ONCE, summary.versions - at)
            part = Versions.none()
            part.digests.frombytes(self.store.read_range(uri, first + at * DIGEST_BYTES, count * DIGEST_BYTES))
            part.members.frombytes(self.store.read_range(uri, numbers_at + at * _NUMBER_BYTES, count * _NUMBER_BYTES))
            if not len(part.digests) == len(part.members) == count:
                raise RecordUnreadable(f"{uri}: truncated; expected {summary.versions} file versions")
            yield _native(part)

    def write(self, place: int, summary: ClosedDate, members: Sequence[Member], versions: Versions) -> bool:
        """Write a summary; False if its place in the log is taken.

        Args:
            place: The place, from 1: the one after the last.
            summary: Its counts of members and versions are set here.
            members: Ordered by number, from 0.
            versions: Sorted by digest.
        """
        lines = "".join(f"{' '.join(map(str, each))}\n" for each in members).encode()
        head = summary.model_copy(
            update={"members": len(members), "member_bytes": len(lines), "versions": len(versions)}
        )
        stored = _native(Versions(versions.digests[:], versions.members[:]))
        data = (head.to_json(), b"\n", lines, stored.digests.tobytes(), stored.members.tobytes())
        return self.store.create(self.layout.summary(place), b"".join(data))

    def _headed(self, place: int) -> tuple[ClosedDate, bytes, int]:
        """The document of a summary, the data read after it, and that data's offset."""
        uri, length = self.layout.summary(place), _HEAD_BYTES
        while b"\n" not in (head := self.store.read_range(uri, 0, length)) and len(head) == length:
            length *= 8
        line, _, rest = head.partition(b"\n")
        summary = ClosedDate.read(line, uri, "the summary of a closed date")
        return summary, rest, len(line) + 1


def _members_in(data: bytes) -> list[Member]:
    """The members in the lines of a summary, up to a damaged one."""
    found: list[Member] = []
    with suppress(ValueError):  # bytes that are not text, or a field that is not a number
        for line in data.decode().splitlines():
            fields = line.split(" ")
            if len(fields) >= len(Member._fields):
                found.append(Member(fields[0], *map(int, fields[1 : len(Member._fields)])))
    return found


def _native(versions: Versions) -> Versions:
    """Convert versions between this machine's byte order and the store's, which is little-endian."""
    if sys.byteorder == "big":
        versions.digests.byteswap()
        versions.members.byteswap()
    return versions
