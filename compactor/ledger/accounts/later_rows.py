"""Finds the manifests that have the rows of a file version without rows, or rows of a later version."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from compactor.core.documents.changes import Commit
from compactor.core.documents.records import FileStatus
from compactor.core.layout import canonical
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.reading import Listed, Scope, listed, read_listed
from compactor.ledger.history.unsummarised import Unsummarised, summarised_since
from compactor.ledger.ledger import newest_generation
from compactor.ledger.state import State

CLOCKS_APART = timedelta(hours=1)
"""The maximum difference between the store's clock and a driver's."""

_NEVER = datetime.max.replace(tzinfo=UTC)


class Version(NamedTuple):
    """A file version that was quarantined, or that a dead letter names.

    Attributes:
        started_at: When the attempt that read it started; for a dead letter, when it was decided.
        etag: The version in a dead letter; empty if it has none, and for a quarantined file.
    """

    manifest_id: str
    uri: str
    started_at: datetime
    etag: str = ""


class FileInCommit(NamedTuple):
    """A commit's data on a file.

    Attributes:
        moment: When the attempt that read it started.
        etags: The version that was read, and those that no longer existed and so need no operator.
        has_rows: Whether it was compacted. If not, it had changed, and no version was read.
    """

    moment: datetime
    etags: frozenset[str]
    has_rows: bool

    def settles(self, version: Version) -> bool:
        """Whether it has rows of a later version, or of this very version, which it took over."""
        if self.has_rows and self.moment > version.started_at:
            return True
        is_same = bool(version.etag) and version.etag in self.etags
        return is_same and self.moment > version.started_at - CLOCKS_APART


@dataclass(slots=True)
class KnownRows:
    """Earlier findings by manifest: the files asked for, and what the manifest has of each.

    Commits change only through rebuilds, which remove no rows.
    """

    found: dict[str, tuple[frozenset[str], dict[str, FileInCommit]]] = field(default_factory=dict)

    def keep_only(self, manifest_ids: Container[str]) -> None:
        """Drop all other manifests."""
        self.found = {key: rows for key, rows in self.found.items() if key in manifest_ids}


def later_rows(
    state: State, versions: Sequence[Version], manifests: Iterable[Listed], known: KnownRows | None = None
) -> dict[Version, str]:
    """The first manifest that settles each version; versions without one are omitted. See `FileInCommit.settles`.

    A version is later if the attempt that read it started later: each attempt reads the version that existed when its
    manifest was made, or none. File times do not count, because a restored file may have an earlier one.
    """
    known = known or KnownRows()
    wanted = frozenset(canonical(each.uri) for each in versions)
    made: dict[str, list[tuple[FileInCommit, str]]] = {}
    for manifest_id, rows in map_ordered(partial(_rows_of, state, wanted, known), manifests):
        for uri, taken in rows.items():
            made.setdefault(uri, []).append((taken, manifest_id))
    found: dict[Version, str] = {}
    for each in versions:
        later = [made_by for made_by in made.get(canonical(each.uri), ()) if made_by[0].settles(each)]
        if later:
            found[each] = min(later)[1]
    return found


def may_settle(state: State, found: Unsummarised | None, versions: Sequence[Version]) -> Iterator[Listed]:
    """The manifests that may have later rows: those in no summary, and all with sufficiently late records.

    Args:
        state: Source of the records.
        found: The manifests in no summary; None to read all records.
        versions: The versions that no summary lists as open.
    """
    since = min((each.started_at for each in versions), default=_NEVER) - 2 * CLOCKS_APART
    if found is not None:
        yield from map(Listed, dict.fromkeys(found.keys))
        yield from map(Listed, summarised_since(state, found.totals, since)) if versions else ()
    elif versions:
        written = listed(state, Scope(since=since, until=_NEVER))
        yield from (each for each in written if newest_generation(each.records or ()) is not None)


def _rows_of(
    state: State, wanted: frozenset[str], known: KnownRows, found: Listed
) -> tuple[str, dict[str, FileInCommit]]:
    """The given files that a manifest has rows of, or found changed."""
    asked, rows = known.found.get(found.key.id, (frozenset(), {}))
    if not wanted <= asked:
        account = read_listed(state, found)
        if account.fault is not None:  # `verify` reports the fault
            return account.id, {}
        rows = _read(state, account.commit, wanted) if account.commit is not None else {}
        known.found[account.id] = (wanted, rows)
    return found.key.id, rows


def _read(state: State, commit: Commit, wanted: frozenset[str]) -> dict[str, FileInCommit]:
    named = [
        (uri, file)
        for file in commit.files
        if (uri := canonical(file.uri)) in wanted and file.status in {FileStatus.COMPACTED, FileStatus.CHANGED}
    ]
    missed = {uri for uri, file in named if file.superseded or file.status is FileStatus.CHANGED}
    versions = _versions(state, commit, missed) if missed else {}
    replaced = set(commit.replaced)
    return {
        uri: FileInCommit(
            commit.decided_at if file.uri in replaced else commit.started_at,
            versions.get(uri, frozenset()) | {file.etag},
            has_rows=file.status is FileStatus.COMPACTED,
        )
        for uri, file in named
    }


def _versions(state: State, commit: Commit, uris: Container[str]) -> dict[str, frozenset[str]]:
    """The versions of files that are named in the manifest: the commit has only those that were read."""
    accepted = state.ledger.accepted(commit.manifest_id)
    files = accepted.manifest.files if accepted is not None and accepted.manifest is not None else ()
    named = ((canonical(file.uri), file.versions) for file in files)
    return {uri: frozenset(each.etag or "" for each in versions) for uri, versions in named if uri in uris}
