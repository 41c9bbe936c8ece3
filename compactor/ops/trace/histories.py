"""Reads what is on record about a manifest: its place, its attempts, its outcome, and its redrives."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from compactor.core.documents.records import Accepted, Commit, DeadLetter, Redrive
from compactor.core.errors import AccessError, ObjectNotFound
from compactor.core.layout import MANIFEST_ID, base_name, id_from_name, is_within
from compactor.core.rules.attempts import Attempts, RetryRules, due_at
from compactor.ledger.history.redrive_log import RedriveLog, RedriveLogEntry
from compactor.ledger.ledger import is_done
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class History:
    """What is on record about a manifest."""

    manifest_id: str
    uri: str  # where its object is now; empty if it is gone
    accepted: Accepted | None = None  # the record that binds its id; None before the first attempt
    attempts: Attempts = field(default_factory=Attempts)
    outcome: Commit | DeadLetter | None = None
    is_done: bool = False  # whether everything that the outcome names is published
    redriven_from: Redrive | None = None  # the redrive that made the manifest, if one did
    redriven_as: tuple[RedriveLogEntry, ...] = ()
    lineage: tuple[RedriveLogEntry, ...] = ()  # all redrives of its lineage
    next_attempt_at: datetime | None = None  # the earliest time; None if it needs none, or was never tried in vain


@dataclass(frozen=True, kw_only=True)
class Histories:
    """Reads the histories of manifests."""

    state: State
    redrive_log: RedriveLog
    rules: RetryRules

    def of(self, manifest_id: str) -> History | None:
        """The history of a manifest; None if it has no record and no object."""
        accepted = self.state.ledger.accepted(manifest_id)
        entries = self.redrive_log.entries_about(manifest_id)
        made_by = next((each.redrive for each in entries if each.redrive.manifest.manifest_id == manifest_id), None)
        if accepted is None:
            uri = self._first_there([self.state.layout.manifest(manifest_id)])
            return History(manifest_id, uri, redriven_from=made_by) if uri or made_by else None
        key, layout = accepted.key, self.state.layout
        kept = (layout.archived_manifest(key), layout.failed_manifest(manifest_id))
        names = self.state.ledger.record_names(key)
        outcome = self.state.ledger.recorded_outcome(key, names)
        attempts = self.state.ledger.attempts(key, names)
        due = due_at(manifest_id, attempts, self.rules, now=self.state.clock.now()) if outcome is None else None
        return History(
            manifest_id,
            self._first_there([accepted.source_uri or layout.manifest(manifest_id), *kept]),
            accepted,
            attempts,
            outcome,
            is_done(outcome, names),
            made_by,
            tuple(each for each in entries if each.redrive.source == manifest_id),
            tuple(entries),
            due,
        )

    def id_of_object(self, uri: str) -> str | None:
        """The id of the manifest whose object is, or was, at a URI; None if it is not a place of manifests."""
        if is_within(uri, self.state.layout.manifests):
            return self._delivered_id(uri)
        if is_within(uri, self.state.layout.failed_folder):
            return base_name(uri).removesuffix(".json").removesuffix(".reason")
        archived = self.state.layout.archived_key(uri)
        return archived.id if archived else None

    def _delivered_id(self, uri: str) -> str:
        """The id inside an object of the watched prefix; if there is none, the id that its name gives."""
        try:
            document = orjson.loads(self.state.store.read(uri))
        except (AccessError, ObjectNotFound, orjson.JSONDecodeError):
            document = None
        inside = document.get("manifest_id") if isinstance(document, dict) else None
        return inside if isinstance(inside, str) and MANIFEST_ID.fullmatch(inside) else id_from_name(uri)

    def _first_there(self, uris: Sequence[str]) -> str:
        return next((uri for uri in uris if self.is_there(uri)), "")

    def is_there(self, uri: str) -> bool:
        """Whether there is an object, which may be one that may not be read."""
        try:
            return self.state.store.stat(uri) is not None
        except AccessError:
            return True
