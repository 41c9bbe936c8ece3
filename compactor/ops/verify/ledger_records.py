"""Verifies the ledger's records of a manifest: whether one is missing, wrong or damaged."""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import base_name, redrive_number
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.records import (
    NEEDS_OPERATOR,
    Accepted,
    Attempt,
    AttemptFailure,
    AttemptsFolded,
    Commit,
    DeadLetter,
    Document,
    Done,
    Redrive,
)
from compactor.ledger.state import State
from compactor.ops.redrive.redrive_log import RedriveLog, taken_from, was_redriven
from compactor.ops.verify.report import Discrepancy

_ATTEMPT = re.compile(r"attempt-\d+\.json")
_FAILURE = re.compile(r"attempt-\d+-failed\.json")
_FOLDED = re.compile(r"attempts-to-\d+\.json")

T = TypeVar("T")
Record = TypeVar("Record", bound=Document)


@dataclass(slots=True)
class RecordFindings:
    """What the records of a manifest say."""

    outcome: Commit | DeadLetter | None = None  # None if there is none, or none that can be read
    is_done: bool = False  # whether all files that the outcome names must be published
    # The id of a dead letter that was redriven, or the URIs of quarantined files that were
    redriven: frozenset[str] = frozenset()
    discrepancies: list[Discrepancy] = field(default_factory=list)  # what is wrong with the records


@dataclass(frozen=True, kw_only=True)
class RecordVerifier:
    """Verifies the records of manifests. Safe for many threads, and beside a running job."""

    state: State

    @cached_property
    def _redrive_log(self) -> RedriveLog:
        return RedriveLog(state=self.state)

    def verify(self, key: ManifestKey) -> RecordFindings:
        """Verify all records of a manifest."""
        names = self.state.ledger.record_names(key)
        while True:
            found = self._verified(key, names)
            if not found.discrepancies:
                return found
            known, names = names, self.state.ledger.record_names(key)
            if names == known:  # else a job added a record meanwhile
                return found

    def _verified(self, key: ManifestKey, names: Collection[str]) -> RecordFindings:
        manifest_id = key.id
        found = RecordFindings(is_done="done.json" in names)
        faults = found.discrepancies
        accepted = self._record(manifest_id, self.state.layout.accepted(manifest_id), Accepted, faults)
        folder = self.state.layout.ledger_records(key)
        for name in sorted(names):
            kind = _kind(name)
            if kind is not None:
                self._record(manifest_id, folder + name, kind, faults)
        uri = self.state.layout.outcome(key)
        if base_name(uri) in names:
            found.outcome = _read(manifest_id, uri, lambda: self.state.ledger.outcome(key), faults)
        elif found.is_done:
            faults.append(Discrepancy(manifest_id, uri, "the outcome of a manifest that is done", "no such record"))
        if found.outcome is not None:
            faults += self._outcome_faults(key, found.outcome, accepted, names)
            found.redriven = self._redriven(found.outcome)
        if not found.is_done and not self._is_open(key, accepted):
            missing = self.state.layout.done(key) if found.outcome else uri
            expected = "a record, or a manifest that is open or waiting"
            faults.append(Discrepancy(manifest_id, missing, expected, "neither"))
        return found

    def _outcome_faults(
        self, key: ManifestKey, outcome: Commit | DeadLetter, accepted: Accepted | None, names: Collection[str]
    ) -> Iterator[Discrepancy]:
        uri = self.state.layout.outcome(key)
        if outcome.key != key:
            found = f"that of manifest {outcome.manifest_id} of {outcome.date}"
            yield Discrepancy(key.id, uri, f"the outcome of manifest {key.id} of {key.date}", found)
        if not isinstance(outcome, Commit):
            return
        attempt = self.state.layout.attempt(key, outcome.attempt)
        if base_name(attempt) not in names:
            yield Discrepancy(key.id, attempt, "the attempt that was committed", "no such record")
        if accepted is not None and accepted.manifest is not None:
            named, reported = [file.uri for file in accepted.manifest.files], [file.uri for file in outcome.files]
            if named != reported:
                found = f"{len(reported)} files, {len(set(reported) - set(named))} of other names"
                yield Discrepancy(key.id, uri, f"the {len(named)} files of the manifest", found)

    def _redriven(self, outcome: Commit | DeadLetter) -> frozenset[str]:
        manifest_id = outcome.manifest_id
        if isinstance(outcome, Commit) and all(file.status not in NEEDS_OPERATOR for file in outcome.files):
            return frozenset()
        try:
            entries = self._redrive_log.entries_about(manifest_id)
        except (ObjectNotFound, RecordUnreadable):  # reported with the manifest of that record
            return frozenset()
        if isinstance(outcome, DeadLetter):
            return frozenset({manifest_id} if was_redriven(manifest_id, entries) else ())
        taken = taken_from(manifest_id, entries)
        return frozenset(file.uri for each in taken if each.kind == "files" for file in each.manifest.files)

    def _is_open(self, key: ManifestKey, accepted: Accepted | None) -> bool:
        """Whether a job will finish the manifest."""
        if self.state.store.stat(self.state.layout.archived_manifest(key)) is not None:
            return False  # only a manifest that is done is archived
        waiting = accepted.source_uri if accepted else self.state.layout.manifest(key.id)
        return any(self.state.store.stat(uri) is not None for uri in (self.state.layout.open_marker(key.id), waiting))

    def lost_of_archived(self, folder: str) -> Iterator[Discrepancy]:
        """Archived manifests without any record, in the archive or in one date's folder of it."""
        owners = (self.state.layout.archived_key(info.uri) for info in self.state.store.list(folder))
        for found in map_ordered(self._lost, filter(None, owners)):
            yield from found

    def _lost(self, key: ManifestKey) -> list[Discrepancy]:
        return [] if self.state.ledger.record_names(key) else [self._no_records(key)]

    def lost_of_accepted(self) -> Iterator[Discrepancy | None]:
        """Accepted manifests that are not archived and have no other record; None for each that is open."""
        listed = self.state.store.list(self.state.layout.accepted_folder)
        ids = (base_name(info.uri).removesuffix(".json") for info in listed if info.uri.endswith(".json"))
        for found in map_ordered(self._lost_of_accepted, ids):
            yield from found

    def _lost_of_accepted(self, manifest_id: str) -> list[Discrepancy | None]:
        uri = self.state.layout.accepted(manifest_id)
        faults: list[Discrepancy] = []
        accepted = self._record(manifest_id, uri, Accepted, faults)
        if accepted is None:
            # Its other records, if any, have reported this already. Their date is unknown here.
            begun = any(found.id == manifest_id for found in self.state.ledger.manifests())
            return [] if begun else [*faults]
        if accepted.kind in {"revoked", "part"} or self.state.ledger.record_names(accepted.key):
            return []
        if self.state.store.stat(self.state.layout.archived_manifest(accepted.key)) is not None:
            return []
        if self._is_open(accepted.key, accepted):
            return [None]
        if self.state.ledger.record_names(accepted.key):
            return []  # a job finished it meanwhile
        return [self._no_records(accepted.key)]

    def _no_records(self, key: ManifestKey) -> Discrepancy:
        where = self.state.layout.ledger_records(key)
        return Discrepancy(key.id, where, "the records of an accepted manifest", "no records")

    def _record(self, manifest_id: str, uri: str, kind: type[Record], faults: list[Discrepancy]) -> Record | None:
        return _read(manifest_id, uri, lambda: self.state.ledger.record(uri, kind), faults)


def _kind(name: str) -> type[Document] | None:
    if _ATTEMPT.fullmatch(name):
        return Attempt
    if _FAILURE.fullmatch(name):
        return AttemptFailure
    if _FOLDED.fullmatch(name):
        return AttemptsFolded
    if redrive_number(name) is not None:
        return Redrive
    return Done if name == "done.json" else None


def _read(manifest_id: str, uri: str, read: Callable[[], T], faults: list[Discrepancy]) -> T | None:
    try:
        return read()
    except ObjectNotFound:
        faults.append(Discrepancy(manifest_id, uri, "a record", "no such record"))
    except RecordUnreadable as exc:
        faults.append(Discrepancy(manifest_id, uri, "a record that can be read", str(exc).removeprefix(f"{uri}: ")))
    return None
