"""Looks for what can be redriven, so that it can be counted before anything is done. Writes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.layout import Layout, base_name
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore
from compactor.core.records import Commit, DeadLetter
from compactor.ledger.ledger import Ledger
from compactor.ops.redrive.planner import Refused
from compactor.ops.redrive.redrive_log import Lineage, RedriveLog
from compactor.ops.redrive.selection import Scope, left_of, nothing_because

_REASON_SUFFIX = ".reason.json"


@dataclass(frozen=True, slots=True)
class Source:
    """A manifest that something can be redriven from.

    Attributes:
        key: The manifest.
        lineage: What was redriven from it belongs to it as well.
        things: How much there is: one dead letter, or so many files or lines.
    """

    key: ManifestKey
    lineage: Lineage
    things: int


@dataclass(slots=True)
class ScanResult:
    """What a redrive would look at.

    Attributes:
        scope: What was asked for.
        sources: Manifests that have something of it, or an earlier redrive whose manifest was never written.
        refused: What was named and cannot be redriven.
    """

    scope: Scope
    sources: list[Source] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    @property
    def things(self) -> int:
        """Manifests, files or lines, by the kind that was asked for."""
        return sum(source.things for source in self.sources)


class RedriveScan:
    """Looks through dead letters, or through the ledger.

    Args:
        store: Where the dead letters are.
        layout: The places.
        ledger: What became of each manifest.
        redrive_log: What was redriven before.
    """

    def __init__(self, store: ObjectStore, layout: Layout, ledger: Ledger, redrive_log: RedriveLog) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._redrive_log = redrive_log

    def scan(self, scope: Scope) -> ScanResult:
        """Look for what can be redriven."""
        scan = ScanResult(scope)

        def look(named: tuple[str | None, str]) -> Source | Refused | None:
            try:
                found = self._look(scope, *named)
            except StuckError as exc:
                return Refused(named[1], "", str(exc))
            if isinstance(found, Source):
                return found
            # Nobody wants to hear of everything that was looked at and has nothing to redrive.
            return Refused(named[1], "", found) if scope.manifest_ids else None

        for found in map_ordered(look, self._named(scope)):
            if isinstance(found, Source):
                scan.sources.append(found)
            elif found is not None:
                scan.refused.append(found)
        return scan

    def _named(self, scope: Scope) -> Iterator[tuple[str | None, str]]:
        """The manifests that may have something of a scope, with their dates where these are known."""
        if scope.manifest_ids:
            yield from ((None, manifest_id) for manifest_id in dict.fromkeys(scope.manifest_ids))
        elif scope.kind == "manifests":
            for info in self._store.list(self._layout.failed_folder):
                if info.uri.endswith(_REASON_SUFFIX):
                    yield None, base_name(info.uri).removesuffix(_REASON_SUFFIX)
        else:
            yield from self._ledger.manifests(scope.date)

    def _look(self, scope: Scope, date: str | None, manifest_id: str) -> Source | str:
        """What a manifest has of a scope, or why there is nothing."""
        found = self._outcome(date, manifest_id)
        if isinstance(found, str):
            return found
        if scope.date not in {None, found.date}:
            return f"its date is {found.date}, not {scope.date}"
        lineage = self._redrive_log.lineage_of(manifest_id) if left_of(scope, found, []) else None
        if lineage is None:
            return nothing_because(scope, found)
        entries = self._redrive_log.entries(lineage)
        things = left_of(scope, found, [each.redrive for each in entries if each.in_effect]).total()
        if not things and all(each.fate != "unwritten" for each in entries):
            return nothing_because(scope, found)
        if not self._ledger.is_done(found.key):
            return "it is decided but not done; expected the job to finish it first"
        return Source(found.key, lineage, things)

    def _outcome(self, date: str | None, manifest_id: str) -> Commit | DeadLetter | str:
        """The outcome of a manifest, or why there is none."""
        if date is None:
            accepted = self._ledger.accepted(manifest_id)
            if accepted is None:
                return f"nothing is on record about it in {self._layout.state}; expected the id of a manifest"
            if accepted.kind == "revoked":
                return "its id was given up by its planner, and its files were planned again"
            date = accepted.date
        try:
            return self._ledger.outcome(ManifestKey(date, manifest_id))
        except ObjectNotFound:
            return "it has no outcome yet; expected one that was compacted or set aside"
