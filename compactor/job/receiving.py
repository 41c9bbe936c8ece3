"""Takes manifests in: reads each object in the watched prefix and binds its id to it, or refuses it with a reason."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

from pydantic import ValidationError

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.documents import manifest_parsing
from compactor.core.documents.manifest import OUTSIDE, Manifest
from compactor.core.documents.records import Accepted
from compactor.core.errors import AccessError, ManifestError, ObjectNotFound, StuckError, TryAgainError
from compactor.core.inputs.dates import date_of_file
from compactor.core.layout import (
    ManifestKey,
    base_name,
    canonical,
    digest,
    duplicate_id,
    id_from_name,
    is_text,
    number_of_redrive,
    root_id,
)
from compactor.core.ports import ObjectInfo
from compactor.job.results import Delivery
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.landing.given import check_given, names_landed
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event


def check_planned(state: State, manifest: Manifest, data: bytes, uri: str) -> None:
    """Check the ranges, gaps and copies of input in a manifest.

    A planner binds a manifest's id before writing it. If the id is unbound, links must give all of these to the
    manifest, or to its root. A redrive must be on record unchanged.

    Raises:
        ManifestError: It must not name them.
    """
    if not names_landed(state, manifest):
        return
    root = root_id(manifest.manifest_id)
    bound = state.ledger.accepted(manifest.manifest_id)
    if bound is not None and bound.kind == "manifest":
        if root == manifest.manifest_id and bound.digest != digest(data) and uri == bound.source_uri:
            raise ManifestError(
                "not_planned",
                f"{uri}: differs from its plan; expected it unchanged. Unless a job had started the planned one, "
                "`compactor plan` writes that again",
            )
        return
    if root != manifest.manifest_id and not _holds(redrive_on_record(state, manifest.manifest_id), data):
        raise ManifestError(
            "not_planned", f"{uri}: is not a recorded redrive of {root}; expected a manifest from `compactor redrive`"
        )
    check_given(state, manifest, uri)


def redrive_on_record(state: State, manifest_id: str) -> Manifest | None:
    """The manifest of a recorded redrive; None if no redrive on record has this id."""
    root = root_id(manifest_id)
    accepted = state.ledger.accepted(root) if root != manifest_id else None
    if accepted is None:
        return None
    redrive = RedriveLog(state=state).at(accepted.key, number_of_redrive(manifest_id, root))
    return redrive.manifest if redrive is not None and redrive.manifest.manifest_id == manifest_id else None


def _holds(recorded: Manifest | None, data: bytes) -> bool:
    try:
        # guard: a redrive has what its record has
        return recorded is not None and Manifest.model_validate_json(data) == recorded
    except ValidationError:
        return False


HEAVY_BYTES = 1024 * 1024
"""A larger object, with thousands of files, might exhaust the driver's memory: its intake is recorded before it is
read."""

MAX_INTAKES = 3
"""How many runs may die while reading one object before it is refused unread."""

END_TRIES = 5

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Classifies each object in the watched prefix.

    Attributes:
        leave_others: Leave manifests for files outside these folders to their own planner, instead of refusing them.
    """

    state: State
    allowed_prefixes: Sequence[str]
    leave_others: bool = False
    on_crash_point: OnCrashPoint = ignore_crash_point
    _one_heavy: Lock = field(default_factory=Lock)

    def receive(self, uri: str) -> Delivery | None:
        """Take in one object; None if another driver removed it, or if it belongs to another planner.

        An unacceptable manifest is returned with a refusal. Its id is then made from the object's name, because its
        content is untrusted.

        Raises:
            StuckError: The object's name is not Unicode, so no record can name it; or access is denied.
        """
        if not is_text(uri):
            raise StuckError(f"{uri!r}: the name is not UTF-8; expected a UTF-8 name: rename the file")
        info = self._readable(lambda: self.state.store.stat(uri))
        if info is None or info.size_bytes < HEAVY_BYTES:
            return None if info is None else self._take_in(info, earlier=0)
        place = digest(f"{uri}#{info.etag}".encode())
        with self._one_heavy:
            earlier = self.state.ledger.begin_intake(place)
            try:
                return self._take_in(info, earlier=earlier)
            finally:  # a driver that dies before this leaves its record
                if earlier < MAX_INTAKES:  # otherwise the object may be delivered again, and must be refused again
                    self._end_intake(place)

    def _end_intake(self, place: str) -> None:
        """Delete the record of this intake. A leftover would count as a death, so it retries."""
        for tried in range(1, END_TRIES + 1):
            try:
                self.state.ledger.end_intake(place)
            except TryAgainError:
                time.sleep(0.1 * tried)
            else:
                return

    def _take_in(self, info: ObjectInfo, *, earlier: int) -> Delivery | None:
        uri = info.uri
        is_read = info.size_bytes <= manifest_parsing.MAX_MANIFEST_BYTES and earlier < MAX_INTAKES
        data = self._readable(lambda: self.state.store.read(uri, etag=info.etag)) if is_read else b""
        if data is None:
            return None
        # An unread object is identified by its etag.
        fingerprint = digest(data if is_read else info.etag.encode())
        try:
            manifest = self._parse(info, data, earlier)
        except ManifestError as exc:
            if self.leave_others and exc.reason == OUTSIDE:
                return None
            date = date_of_file(base_name(uri), info.modified_at).date
            key = ManifestKey(date, self._id_of_refused(uri))
            return self._refuse(uri, key, fingerprint, exc)
        if manifest.ignored_date:
            log_event(
                "manifest.misdated",
                manifest_id=manifest.manifest_id,
                ignored_date=manifest.ignored_date,
                date=manifest.date,
            )
        record = self._accept(uri, manifest.key, fingerprint, manifest)
        # guard: a different manifest under a used id is refused, not treated as a repeat
        if record.kind == "manifest" and record.digest == fingerprint:
            return Delivery(uri, fingerprint, record)
        if (
            record.kind == "revoked"
            and data == manifest.to_json()
            and uri == self.state.layout.manifest(record.manifest_id)
        ):
            self._remove_revoked(uri, record)
            return None
        return self._refuse_used_id(uri, manifest, fingerprint, record)

    def _remove_revoked(self, uri: str, record: Accepted) -> None:
        """Remove a manifest whose builder, sealer or planner wrote it too late and could not remove it.

        Its id was revoked for one that took over its files, so this manifest never takes effect. Only the exact bytes
        of such a writer are removed: any other manifest under this id becomes a dead letter.
        """
        self.state.store.delete([uri])
        log_event("manifest.revoked", manifest_id=record.manifest_id, revoked_at=record.accepted_at)

    def _readable(self, read: Callable[[], T]) -> T | None:
        """The result of a call on a delivered object; None if the object no longer exists."""
        try:
            return read()
        except ObjectNotFound:
            return None
        except AccessError as exc:
            raise StuckError(f"{exc}; expected permission to read the manifest") from exc

    def _parse(self, info: ObjectInfo, data: bytes, earlier: int) -> Manifest:
        if earlier >= MAX_INTAKES:
            raise ManifestError("retries_exhausted", f"{info.uri}: {earlier} runs died while reading it")
        name = self._name_below(info.uri)
        if "/" in name:
            raise ManifestError("nested", f"{info.uri}: expected directly below {self.state.layout.manifests_folder}")
        manifest_parsing.check_length(info.uri, info.size_bytes)
        if name.startswith(("_", ".")):
            raise ManifestError("hidden_name", f"{info.uri}: expected a name that does not begin with _ or .")
        manifest = manifest_parsing.parse_manifest(
            data,
            uri=info.uri,
            modified_at=info.modified_at,
            allowed_prefixes=self.allowed_prefixes,
            redriven_folder=self.state.layout.redriven_folder,
            rules=self.state.rules,
        )
        # guard: a manifest has only ranges that a plan gave to it
        check_planned(self.state, manifest, data, info.uri)
        return manifest

    def _name_below(self, uri: str) -> str:
        return canonical(uri).removeprefix(canonical(self.state.layout.manifests_folder))

    def _id_of_refused(self, uri: str) -> str:
        manifest_id = id_from_name(uri)
        if "/" in self._name_below(uri):
            # A manifest with that name may still be delivered to the right place, and needs its id.
            return f"{manifest_id}-nested-{digest(canonical(uri).encode())[:8]}"
        return manifest_id

    def _accept(self, uri: str, key: ManifestKey, fingerprint: str, manifest: Manifest | None) -> Accepted:
        record = self.state.ledger.accept(
            Accepted(
                manifest_id=key.id,
                kind="manifest" if manifest else "refused",
                date=key.date,
                digest=fingerprint,
                source_uri=uri,
                accepted_at=self.state.clock.now(),
                manifest=manifest,
            )
        )
        self.on_crash_point(CrashPoint.ACCEPTED, key.id)
        return record

    def _refuse(self, uri: str, key: ManifestKey, fingerprint: str, error: ManifestError) -> Delivery:
        redriven = redrive_on_record(self.state, key.id)
        if redriven is not None and digest(redriven.to_json()) != fingerprint:
            key = _duplicate(key, fingerprint)  # the redrive's manifest is written again under its id
        record = self._accept(uri, key, fingerprint, None)
        if record.kind != "refused" or record.digest != fingerprint:
            # Another manifest has this name. Every driver distinguishes the two by their content.
            record = self._accept(uri, _duplicate(key, fingerprint), fingerprint, None)
        return Delivery(uri, fingerprint, record, error)

    def _refuse_used_id(self, uri: str, manifest: Manifest, fingerprint: str, holder: Accepted) -> Delivery:
        if holder.digest == fingerprint and holder.kind == "refused" and not self.state.ledger.record_names(holder.key):
            died = ManifestError("id_already_used", f"{uri}: refused earlier by a run that died; expected its redrive")
            return Delivery(uri, fingerprint, holder, died)
        use = (
            "revoked, because it was not written in time"
            if holder.kind == "revoked"
            else f"used by {holder.source_uri}"
        )
        error = ManifestError("id_already_used", f"{uri}: the id {manifest.manifest_id} is {use}; expected a unique id")
        return self._refuse(uri, _duplicate(manifest.key, fingerprint), fingerprint, error)


def _duplicate(key: ManifestKey, fingerprint: str) -> ManifestKey:
    return ManifestKey(key.date, duplicate_id(key.id, fingerprint))
