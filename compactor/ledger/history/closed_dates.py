"""The log of closed dates in the store: summaries, each with its members and the digests of their file versions.

A summary is one object: a document in one line; a line for each member; the digests in order; and for each digest the
number of its member. Each place in the log is created once. So the process that writes a summary has read all earlier
ones.
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
"""Enough to find candidates: what has the same digest is compared by its whole name."""

VERSIONS_AT_ONCE = 1 << 20
_NUMBER_BYTES = 4
_HEAD_BYTES = 128 * 1024  # of a date of 3,000 manifests this has the members, too


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark of an unsummarised manifest, or of a date (no id in the key, generation 0)."""

    key: ManifestKey
    generation: int
    info: ObjectInfo

    @property
    def is_of_commit(self) -> bool:
        """Whether it says that the manifest is no dead letter."""
        return bool(self.key.id) and self.info.size_bytes == len(COMMIT_MARK)


@dataclass(slots=True)
class Versions:
    """File versions as digests, each with the number of its member. Sorted by digest when stored."""

    digests: "array[int]"
    members: "array[int]"

    @classmethod
    def none(cls) -> "Versions":
        return cls(array("Q"), array("I"))

    def __len__(self) -> int:
        return len(self.digests)


@dataclass(frozen=True, slots=True)
class ClosedDates:
    """Reads and writes the log of closed dates, and the marks of what is in no summary."""

    store: ObjectStore
    layout: Layout

    def has_begun(self) -> bool:
        """Return whether every manifest is open, marked or in a summary."""
        return self.store.stat(self.layout.closing_begun) is not None

    def begin(self, begun: ClosingBegun) -> None:
        """Declare that it is so from now on."""
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
        """What all summaries add up to, read from the cache and from the summaries that are not in it.

        Raises:
            RecordUnreadable: One of these summaries is damaged, or of a newer format.
        """
        known = self._kept_totals()
        places = self.places(after=self.layout.summary(known.upto))
        return totals_with(known, list(zip(places, map_ordered(self.read, places), strict=True)))

    def _kept_totals(self) -> ClosedTotals:
        try:
            return ClosedTotals.model_validate_json(self.store.read(self.layout.closed_totals))
        except (ObjectNotFound, ValueError):  # it can be made again
            return ClosedTotals()

    def keep_totals(self, totals: ClosedTotals) -> None:
        """Keep the totals for later readings."""
        self.store.put(self.layout.closed_totals, totals.to_json())

    def read(self, place: int) -> ClosedDate:
        """One summary, without what stands behind its document.

        Raises:
            RecordUnreadable: It is damaged, or of a newer format.
        """
        return self._headed(place)[0]

    def members(self, place: int) -> list[Member]:
        """The members of a summary, in the order of their numbers.

        Raises:
            RecordUnreadable: As for `read`, or it is gone although the totals have it.
        """
        return self._with_members(place)[1]

    def _with_members(self, place: int) -> tuple[ClosedDate, list[Member], int]:
        """The document of a summary, its members, and where these begin; see `members`."""
        try:
            summary, data, start = self._headed(place)
        except ObjectNotFound as exc:
            raise RecordUnreadable(f"{self.layout.summary(place)}: it is gone; expected a summary to be kept") from exc
        if len(data) < summary.member_bytes:
            data = self.store.read_range(self.layout.summary(place), start, summary.member_bytes)
        found = _members_in(data[: summary.member_bytes])
        if len(found) != summary.members:
            raise RecordUnreadable(f"{self.layout.summary(place)}: {len(found)} members; expected {summary.members}")
        return summary, found, start

    def places(self, *, after: str | None = None) -> list[int]:
        """The places of the summaries that are there, in order; only those behind one, by its name."""
        listed = self.store.list(self.layout.closed_folder, start_after=after)
        return sorted(place for info in listed if (place := self.layout.summary_place(info.uri)) is not None)

    def places_to_check(self) -> list[int]:
        """The places of the summaries that are there, and of those that are known to be gone."""
        there = self.places()
        summed = {place for span in self._kept_totals().dates.values() for place in span.places}
        first_gap = next((at for at, place in enumerate(there, 1) if place != at), None)
        return sorted({*there, *summed, *([] if first_gap is None else [first_gap])})

    def check(self, place: int) -> None:
        """Make sure that a summary is whole; its file versions are counted and not read.

        Raises:
            RecordUnreadable: It is damaged, or gone.
        """
        summary, members, start = self._with_members(place)
        uri = self.layout.summary(place)
        expected = start + summary.member_bytes + summary.versions * (DIGEST_BYTES + _NUMBER_BYTES)
        info = self.store.stat(uri)
        if info is None or info.size_bytes != expected:
            found = "it is gone" if info is None else f"{info.size_bytes} bytes"
            what = f"{len(members)} members and {summary.versions} file versions"
            raise RecordUnreadable(f"{uri}: {found}; expected {expected} bytes with {what}")

    def versions(self, place: int) -> Iterator[Versions]:
        """The file versions of a summary in the order of their digests, in parts of bounded size."""
        summary, _, start = self._headed(place)
        uri, first = self.layout.summary(place), start + summary.member_bytes
        numbers_at = first + summary.versions * DIGEST_BYTES
        for at in range(0, summary.versions, VERSIONS_AT_ONCE):
            count = min(VERSIONS_AT_ONCE, summary.versions - at)
            part = Versions.none()
            part.digests.frombytes(self.store.read_range(uri, first + at * DIGEST_BYTES, count * DIGEST_BYTES))
            part.members.frombytes(self.store.read_range(uri, numbers_at + at * _NUMBER_BYTES, count * _NUMBER_BYTES))
            if not len(part.digests) == len(part.members) == count:
                raise RecordUnreadable(f"{uri}: it ends early; expected {summary.versions} file versions")
            yield _native(part)

    def write(self, place: int, summary: ClosedDate, members: Sequence[Member], versions: Versions) -> bool:
        """Write a summary; False if its place in the log is taken.

        Args:
            place: The place, from 1: one behind the last.
            summary: Its counts of members and versions are set here.
            members: By their numbers, from 0.
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
        """The document of a summary, what was read with it of what follows, and where that begins."""
        uri, length = self.layout.summary(place), _HEAD_BYTES
        while b"\n" not in (head := self.store.read_range(uri, 0, length)) and len(head) == length:
            length *= 8
        line, _, rest = head.partition(b"\n")
        summary = ClosedDate.read(line, uri, "the summary of a closed date")
        return summary, rest, len(line) + 1


def _members_in(data: bytes) -> list[Member]:
    """The members in the lines of a summary; none behind a damaged one."""
    found: list[Member] = []
    with suppress(ValueError):  # bytes that are no text, or a field that is no number
        for line in data.decode().splitlines():
            fields = line.split(" ")
            if len(fields) >= len(Member._fields):
                found.append(Member(fields[0], *map(int, fields[1 : len(Member._fields)])))
    return found


def _native(versions: Versions) -> Versions:
    """The versions in the byte order of this machine, or back in that of the store, which is little-endian."""
    if sys.byteorder == "big":
        versions.digests.byteswap()
        versions.members.byteswap()
    return versions
