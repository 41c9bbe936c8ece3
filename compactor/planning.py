"""Plans manifests from a listing: every file version in exactly one, whatever crashes or runs twice.

A file is claimed for a manifest id before that manifest is written. If the planner dies in between, the claim's lease
runs out, and another planner asks whether the manifest came to be. If not, it makes the id void in the ledger first,
so that no late write of that manifest can ever take effect, and only then takes the file over.
"""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Literal

from compactor.errors import SettingsError
from compactor.file_search import FileSearch
from compactor.layout import Layout, base_name, canonical, date_of_file, folder, is_text, is_within
from compactor.ledger import Ledger
from compactor.manifest import Manifest, ManifestFile
from compactor.packing import fill
from compactor.ports import Claim, ClaimTable, Clock, ObjectInfo, ObjectStore
from compactor.records import Accepted
from compactor.steps import OnStep, Step, ignore_step

SKIP_REASONS = {
    "empty": "holds no bytes",
    "folder_marker": "its name ends in /",
    "bad_name": "its name is no Unicode text or has . or .. for a folder, so no manifest can name it",
    "job_marker": "_SUCCESS, _started_1, _committed_1, or below _temporary: written by Spark and Hadoop beside data",
    "too_old": "written before the given time",
    "other_date": "belongs to another day than the given one",
}
"""Objects that are no input, each reason with its meaning."""

Fate = Literal["exists", "void", "unwritten"]

_JOB_MARKER_NAME = re.compile(r"_SUCCESS|_(started|committed)_\d+")
_JOB_FOLDERS = frozenset({"_temporary", "_spark_metadata"})


@dataclass(slots=True)
class Plan:
    """What planning did.

    Attributes:
        manifests: Those that were written, or would be in a dry run.
        skipped: Objects that are no input, by reason.
        planned_before: Files that are in a manifest already.
        held: Files that another planner claimed and may still write a manifest for.
        held_until: When the last of those leases runs out.
    """

    manifests: list[Manifest] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    planned_before: int = 0
    held: int = 0
    held_until: datetime | None = None


class Planner:
    """Groups the files below a prefix into manifests."""

    def __init__(
        self,
        *,
        store: ObjectStore,
        layout: Layout,
        ledger: Ledger,
        claims: ClaimTable,
        clock: Clock,
        allowed_prefixes: Sequence[str],
        target_manifest_bytes: int,
        claim_lease_seconds: float,
        on_step: OnStep = ignore_step,
    ) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._claims = claims
        self._clock = clock
        self._allowed_prefixes = allowed_prefixes
        self._target_manifest_bytes = target_manifest_bytes
        self._claim_lease_seconds = claim_lease_seconds
        self._on_step = on_step
        self._search = FileSearch(store, layout, ledger, allowed_prefixes=allowed_prefixes)
        self._settled_fates: dict[str, Fate] = {}

    def plan(
        self, prefix: str, *, date: str | None = None, since: datetime | None = None, dry_run: bool = False
    ) -> Plan:
        """Write manifests for all files below a prefix that are in none.

        Args:
            prefix: A folder within the allowed prefixes.
            date: Only files of this day.
            since: Only files written at this time or later.
            dry_run: Claim and write nothing.

        Raises:
            SettingsError: The prefix is not within the allowed ones.
        """
        if not any(is_within(folder(prefix), each) for each in self._allowed_prefixes):
            allowed = ", ".join(self._allowed_prefixes)
            raise SettingsError([f"plan: {prefix} -> expected a folder within input.allowed_prefixes: {allowed}"])
        if not prefix.endswith("/") and self._store.stat(prefix) is not None:
            raise SettingsError([f"plan: {prefix} -> is a file, expected the folder that it is in"])
        plan = Plan()
        by_day: dict[str, list[ManifestFile]] = {}
        for info in self._store.list(folder(prefix)):
            day = date_of_file(info.uri, info.modified_at)
            name = info.uri.removeprefix(folder(prefix))
            reason = _skip_reason(info, name, day, date=date, since=since) or _name_fault(info.uri, prefix)
            if reason:
                plan.skipped[reason] = plan.skipped.get(reason, 0) + 1
            else:
                by_day.setdefault(day, []).append(_file(info))
        for day, files in sorted(by_day.items()):
            unclaimed = self._unclaimed(day, files, plan)
            for group in fill(unclaimed, self._target_manifest_bytes, lambda file: file.size_bytes or 0):
                self._plan_group(day, group, plan, dry_run=dry_run)
        return plan

    def _unclaimed(self, day: str, files: Sequence[ManifestFile], plan: Plan) -> list[ManifestFile]:
        """The files that no manifest has, or ever will have by its claim."""
        claims = self._claims.get_many([claim_key(file) for file in files])
        taken = self._taken(day, [file for file in files if claim_key(file) not in claims])
        plan.planned_before += len(taken)
        return [
            file for file in files if claim_key(file) not in taken and self._is_free(claims.get(claim_key(file)), plan)
        ]

    def _taken(self, day: str, files: Sequence[ManifestFile]) -> set[str]:
        """Keys of files without a claim that manifests of their day have all the same.

        Somebody else may have written these manifests, or their claims may be lost or forgotten by now.
        """
        by_uri = {canonical(file.uri): file for file in files}
        if not by_uri:
            return set()
        # In this order: a manifest that a job takes up meanwhile goes from the prefix to the records.
        found = chain(self._search.waiting(by_uri), self._search.in_day(day, by_uri))
        return {claim_key(by_uri[naming.uri]) for naming in found if naming.has_had(by_uri[naming.uri].etag)}

    def _is_free(self, claim: Claim | None, plan: Plan) -> bool:
        """Whether a file may be planned; if not, the plan counts why."""
        if claim is None:
            return True
        fate = self._fate(claim.holder)
        if fate == "exists":
            plan.planned_before += 1
        elif fate == "unwritten" and claim.lease_until > self._clock.now():
            plan.held += 1
            plan.held_until = max(plan.held_until or claim.lease_until, claim.lease_until)
        else:
            return True
        return False

    def _fate(self, manifest_id: str) -> Fate:
        """What became of a manifest that files were claimed for. Only `unwritten` can still change."""
        if manifest_id not in self._settled_fates:
            fate = self._look_up_fate(manifest_id)
            if fate == "unwritten":
                return fate
            self._settled_fates[manifest_id] = fate
        return self._settled_fates[manifest_id]

    def _look_up_fate(self, manifest_id: str) -> Fate:
        record = self._ledger.accepted(manifest_id)
        if record is None:
            return "unwritten" if self._store.stat(self._layout.manifest(manifest_id)) is None else "exists"
        return "void" if record.kind == "void" else "exists"

    def _plan_group(self, day: str, group: Sequence[ManifestFile], plan: Plan, *, dry_run: bool) -> None:
        now = self._clock.now()
        manifest_id = f"{day}-{secrets.token_hex(8)}"
        won = group if dry_run else self._claimed(group, manifest_id, now, plan)
        if not won:
            return
        manifest = Manifest(manifest_id=manifest_id, date=day, created_at=now, files=tuple(won))
        if not dry_run:
            self._store.create(self._layout.manifest(manifest_id), manifest.to_json())
            self._on_step(Step.PLANNED, manifest_id)
        plan.manifests.append(manifest)

    def _claimed(
        self, group: Sequence[ManifestFile], manifest_id: str, now: datetime, plan: Plan
    ) -> list[ManifestFile]:
        keys = [claim_key(file) for file in group]
        claims = self._claims.claim(keys, manifest_id, now=now, lease_seconds=self._claim_lease_seconds)
        self._on_step(Step.CLAIMED, manifest_id)
        return [
            file
            for file, key in zip(group, keys, strict=True)
            if claims[key].holder == manifest_id or self._took_over(key, claims[key], manifest_id, now, plan)
        ]

    def _took_over(self, key: str, claim: Claim, manifest_id: str, now: datetime, plan: Plan) -> bool:
        """Take a file from a holder whose manifest was not written in time, and from now on never takes effect."""
        if not self._is_free(claim, plan):
            return False
        if not self._is_void_now(claim.holder, now):
            plan.planned_before += 1
            return False
        return self._claims.take_over(
            key, from_holder=claim.holder, to_holder=manifest_id, now=now, lease_seconds=self._claim_lease_seconds
        )

    def _is_void_now(self, manifest_id: str, now: datetime) -> bool:
        """Make sure that no manifest takes effect under this id; False if one was accepted before."""
        if self._fate(manifest_id) == "unwritten":
            record = Accepted(manifest_id=manifest_id, kind="void", date=now.date().isoformat(), accepted_at=now)
            self._ledger.accept(record)
        return self._fate(manifest_id) == "void"


def claim_key(file: ManifestFile) -> str:
    """What a file version is claimed under: its place and its version, so that a new version is a new file."""
    return f"{canonical(file.uri)}#{file.etag}"


def _file(info: ObjectInfo) -> ManifestFile:
    return ManifestFile(uri=info.uri, size_bytes=info.size_bytes, etag=info.etag, event_time=info.modified_at)


def _name_fault(uri: str, prefix: str) -> str | None:
    """Why a manifest that names this file would be refused, with all of its other files."""
    return None if is_text(uri) and is_within(uri, prefix) else "bad_name"


def _skip_reason(info: ObjectInfo, name: str, day: str, *, date: str | None, since: datetime | None) -> str | None:
    if name.endswith("/") or not name:
        return "folder_marker"
    if _JOB_MARKER_NAME.fullmatch(base_name(name)) or not _JOB_FOLDERS.isdisjoint(name.split("/")):
        return "job_marker"
    if info.size_bytes == 0:
        return "empty"
    if date is not None and day != date:
        return "other_date"
    # S3 tells times in whole seconds
    if since is not None and info.modified_at < since - timedelta(microseconds=since.microsecond):
        return "too_old"
    return None
