"""Finds, for quarantined versions of files, the manifests that have rows of a later version of the same file."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import base_name, canonical, outcome_generation
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.records import Commit, FileStatus
from compactor.ledger.state import State

CLOCKS_APART = timedelta(hours=1)
"""How far the store's clock and that of a driver may differ."""


class Version(NamedTuple):
    """A version of a file that was quarantined.

    Attributes:
        started_at: When the attempt began that read it.
    """

    manifest_id: str
    uri: str
    started_at: datetime


@dataclass(slots=True)
class KnownRows:
    """What was found before, by manifest: which files were asked for, and when the attempt began that made their rows.

    Commits change by rebuilds alone, which take no rows away.
    """

    found: dict[str, tuple[frozenset[str], dict[str, datetime]]] = field(default_factory=dict)

    def keep_only(self, manifest_ids: Container[str]) -> None:
        """Forget all other manifests."""
        self.found = {key: rows for key, rows in self.found.items() if key in manifest_ids}


def later_rows(
    state: State, versions: Sequence[Version], keys: Iterable[ManifestKey] | None = None, known: KnownRows | None = None
) -> dict[Version, str]:
    """The first manifest that has rows of a later version, by quarantined version; versions without one are left out.

    A version is later if the attempt that read it began later: each attempt reads the version that was there when its
    manifest was made, or none. Dates of files are not asked, because a restored file may have an earlier one.

    Args:
        state: Has the records.
        versions: The quarantined versions.
        keys: The manifests to read; None for all whose commits were written since.
        known: What was found before; gets what is found now.
    """
    known = known or KnownRows()
    wanted = frozenset(canonical(each.uri) for each in versions)
    if keys is None:
        keys = _written_since(state, min(each.started_at for each in versions) - CLOCKS_APART)
    made: dict[str, list[tuple[datetime, str]]] = {}
    for manifest_id, rows in map_ordered(partial(_rows_of, state, wanted, known), keys):
        for uri, moment in rows.items():
            made.setdefault(uri, []).append((moment, manifest_id))
    found: dict[Version, str] = {}
    for each in versions:
        later = [made_by for made_by in made.get(canonical(each.uri), ()) if made_by[0] > each.started_at]
        if later:
            found[each] = min(later)[1]
    return found


def _rows_of(
    state: State, wanted: frozenset[str], known: KnownRows, key: ManifestKey
) -> tuple[str, dict[str, datetime]]:
    """Those of some files that a manifest has rows of, with the time when the attempt began that read each."""
    asked, rows = known.found.get(key.id, (frozenset(), {}))
    if not wanted <= asked:
        try:
            outcome = state.ledger.outcome(key)
        except (ObjectNotFound, RecordUnreadable):  # `verify` says what is wrong with it
            return key.id, {}
        rows = _read(outcome, wanted) if isinstance(outcome, Commit) else {}
        known.found[key.id] = (wanted, rows)
    return key.id, rows


def _read(commit: Commit, wanted: frozenset[str]) -> dict[str, datetime]:
    compacted = (file for file in commit.files if file.status is FileStatus.COMPACTED)
    replaced = set(commit.rebuild.replaced if commit.rebuild is not None else ())
    return {
        uri: commit.decided_at if file.uri in replaced else commit.started_at
        for file in compacted
        if (uri := canonical(file.uri)) in wanted
    }


def _written_since(state: State, since: datetime) -> Iterator[ManifestKey]:
    """The manifests whose outcomes were written since, by one listing of the ledger, several dates at a time."""

    def written(date: str) -> list[ManifestKey]:
        listed = state.store.list(state.layout.ledger_folder_of(date))
        outcomes = (info for info in listed if outcome_generation(base_name(info.uri)) is not None)
        found = (info.uri.rsplit("/", 2)[1] for info in outcomes if info.modified_at >= since)
        return [ManifestKey(date, manifest_id) for manifest_id in dict.fromkeys(found)]

    for keys in map_ordered(written, state.ledger.dates()):
        yield from keys
