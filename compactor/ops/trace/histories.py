"""All that is on record about one manifest: where it is, its attempts, its outcome, and what was redriven from it."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from compactor.core.attempts import AttemptState
from compactor.core.errors import ObjectNotFound
from compactor.core.layout import MANIFEST_ID, Layout, base_name, id_from_name, is_within
from compactor.core.ports import ObjectStore
from compactor.core.records import Accepted, Commit, DeadLetter, Redrive
from compactor.ledger.ledger import Ledger
from compactor.ops.redrive.redrive_log import RedriveLog, RedriveLogEntry


@dataclass(frozen=True, slots=True)
class History:
    """What is known of a manifest.

    Attributes:
        uri: Where its object is now; empty if it is nowhere.
        accepted: What its id is tied to; None while nobody began it.
        attempts: In their order.
        outcome: None while there is none.
        is_done: Whether all that the outcome names is in its final place.
        redriven_from: The redrive that made it, if it was one.
        redriven_as: What was redriven from it.
    """

    manifest_id: str
    uri: str
    accepted: Accepted | None = None
    attempts: tuple[AttemptState, ...] = ()
    outcome: Commit | DeadLetter | None = None
    is_done: bool = False
    redriven_from: Redrive | None = None
    redriven_as: tuple[RedriveLogEntry, ...] = ()


class Histories:
    """Reads the histories of manifests.

    Args:
        store: Where the manifests are.
        layout: The places.
        ledger: The records.
        redrive_log: The redrives.
    """

    def __init__(self, store: ObjectStore, layout: Layout, ledger: Ledger, redrive_log: RedriveLog) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._redrive_log = redrive_log

    def of(self, manifest_id: str) -> History | None:
        """The history of a manifest; None if nothing is known of it."""
        accepted = self._ledger.accepted(manifest_id)
        entries = self._redrive_log.entries_about(manifest_id)
        made_by = next((each.redrive for each in entries if each.redrive.manifest.manifest_id == manifest_id), None)
        if accepted is None:
            uri = self._first_there([self._layout.manifest(manifest_id)])
            return History(manifest_id, uri, redriven_from=made_by) if uri or made_by else None
        key = accepted.key
        names = self._ledger.record_names(key)
        return History(
            manifest_id,
            self._first_there(self._places(accepted)),
            accepted,
            self._ledger.attempts(key, names),
            self._ledger.outcome(key) if "outcome.json" in names else None,
            "done.json" in names,
            made_by,
            tuple(each for each in entries if each.redrive.source == manifest_id),
        )

    def id_of_object(self, uri: str) -> str | None:
        """The id of the manifest that is, or was, kept at a place; None if no manifests are kept there."""
        if is_within(uri, self._layout.manifests):
            return self._delivered_id(uri)
        if is_within(uri, self._layout.failed_folder):
            return base_name(uri).removesuffix(".json").removesuffix(".reason")
        archived = self._layout.archived_key(uri)
        return archived.id if archived else None

    def _delivered_id(self, uri: str) -> str:
        """The id of an object in the watched prefix: that inside it where there is one, else that of its name."""
        try:
            document = orjson.loads(self._store.read(uri))
        except (ObjectNotFound, orjson.JSONDecodeError):
            document = None
        inside = document.get("manifest_id") if isinstance(document, dict) else None
        return inside if isinstance(inside, str) and MANIFEST_ID.fullmatch(inside) else id_from_name(uri)

    def _places(self, accepted: Accepted) -> list[str]:
        manifest_id = accepted.manifest_id
        return [
            accepted.source_uri or self._layout.manifest(manifest_id),
            self._layout.archived_manifest(accepted.key),
            self._layout.failed_manifest(manifest_id),
        ]

    def _first_there(self, uris: Sequence[str]) -> str:
        return next((uri for uri in uris if self._store.stat(uri) is not None), "")
