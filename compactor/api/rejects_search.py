"""Searches the rejected lines of a destination, and counts those that it does not read."""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from compactor.core.errors import SettingsError
from compactor.ndjson.diagnosis import Fault, diagnosed
from compactor.ndjson.inspection import REASONS
from compactor.ops.rejects.query import Query
from compactor.ops.rejects.reader import RejectedLine, RejectsOf, RejectsReader
from compactor.settings.places import parse_place
from compactor.settings.settings import Settings
from compactor.wiring.job.app import App

COUNTED_MANIFESTS = 1_000
"""How many manifests more are counted, once all lines were read that were asked for."""


@dataclass(slots=True)
class RejectsSearch:
    """One reading of the rejects, and what was found so far."""

    app: App
    query: Query
    shown: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # rejected lines by reason, of the manifests so far
    unkept: int = 0
    sampled: set[str] = field(default_factory=set)  # files that were quarantined, of which some lines are shown
    is_complete: bool = True  # whether `counts` has all manifests
    unreadable: list[str] = field(default_factory=list)
    expired: Counter[str] = field(default_factory=Counter)  # rows of rejects that expired, by when and why

    @property
    def reader(self) -> RejectsReader:
        return self.app.rejects_reader(self.unreadable.append, self._add_expired)

    def _add_expired(self, why: str, rows: int) -> None:
        self.expired[why] += rows

    def lines(self, limit: int | None) -> Iterator[tuple[RejectsOf, RejectedLine]]:
        """Yield the first lines; then count on for a while, so that the sum can be told."""
        manifests = self._counted(self.reader.manifests(self.query))
        for found in manifests:
            left = None if limit is None else min(limit - self.shown, sys.maxsize)
            for line in islice(self.reader.lines(found, self.query), left):
                self.shown += 1
                yield found, line
            if limit is not None and self.shown >= limit:
                break
        for _ in islice(manifests, COUNTED_MANIFESTS):
            pass
        self.is_complete = next(manifests, None) is None

    def _counted(self, manifests: Iterator[RejectsOf]) -> Iterator[RejectsOf]:
        for found in manifests:
            self.counts.update(found.counts)
            self.unkept += found.unkept
            self.sampled |= found.samples
            yield found


def rejects_search(settings: Settings, *, reason: str | None, file: str | None, day: str | None) -> RejectsSearch:
    """Make a search.

    Args:
        settings: Name the places.
        reason: Only lines that were rejected for this reason.
        file: Only lines of this file: its URI or path, or the end of it.
        day: Only manifests of this day, as `yyyy-mm-dd`.

    Raises:
        SettingsError: There is no such reason, or the file cannot name anything.
    """
    if reason is not None and reason not in REASONS:
        raise SettingsError([f"--reason: {reason!r} -> expected one of {', '.join(REASONS)}"])
    return RejectsSearch(App(settings), Query(reason, _file(file), day))


def _file(name: str | None) -> str | None:
    """The file as a URI where the name is a path from the current folder; any other name as it is."""
    try:
        return parse_place(name, any_name=True) if name and name.startswith(("./", "../")) else name
    except ValueError as exc:
        raise SettingsError([f"--file: {name!r} -> expected {exc}"]) from exc


def diagnosed_line(line: RejectedLine) -> Fault:
    """What is wrong with a rejected line."""
    return diagnosed(line.head, line.reason, length_bytes=line.length_bytes, max_line_bytes=line.max_line_bytes)
