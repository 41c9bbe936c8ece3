"""The result of a plan, in figures. Its size does not depend on the number of files."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.inputs.dates import RULES
from compactor.core.layout import canonical
from compactor.core.results import as_document
from compactor.core.versions import described_version
from compactor.sources.candidates import Group
from compactor.sources.claiming import Claimed, ClaimState, Kind
from compactor.sources.file_search import Naming

MAX_MANIFESTS_PER_PLAN = 10_000
"""The most manifests per plan: about 10 TiB of input with manifests of the usual size."""


@as_document(shows=("bytes",), omits=("size_bytes",))
@dataclass(frozen=True, slots=True)
class PlannedManifest:
    """A manifest that was written, or would be."""

    manifest_id: str | None  # its id; null in a dry run
    date: str  # date of the manifest
    files: int  # number of files it names
    size_bytes: int

    @classmethod
    def of(cls, date: str, files: Sequence[ManifestFile], manifest_id: str) -> "PlannedManifest":
        return cls(manifest_id or None, date, len(files), sum(file.size_bytes or 0 for file in files))

    @property
    def bytes(self) -> int:
        """Stored size of those files."""
        return self.size_bytes


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder that was left out and needs attention."""

    uri: str
    # replaced, compressed, unfinished, forbidden, unsettled, undecided, changed, bad_name, or why a link was skipped
    reason: str
    detail: str  # what was found, and what was expected
    manifest_id: str = ""  # for a replaced file, the manifest with rows of the earlier version
    etag: str = ""  # for a replaced file, the version without rows


@dataclass(frozen=True, slots=True)
class Replacement:
    """A file with rows of an earlier version.

    Attributes:
        hindrance: Why its rows cannot be rebuilt; empty if they can.
        why: If the file begins with its previous version, why it did not count as grown; else empty.
    """

    file: ManifestFile
    earlier: Naming
    hindrance: str = ""
    why: str = ""

    @property
    def detail(self) -> str:
        """A description of both versions."""
        was, now = (described_version(self.file.uri, each.etag) for each in (self.earlier, self.file))
        others = " with different content" if was == now else ""
        why = f", and begins with its earlier content: {self.why}" if self.why else ""
        did = "compacted" if self.earlier.state == "compacted" else "planned"
        is_renamed = self.earlier.uri != canonical(self.file.uri)
        name = f" as {self.earlier.uri}, which no longer exists" if is_renamed else ""
        return f"manifest {self.earlier.manifest_id} has {did} {was}{name}; now it is {now}{others}{why}"


@dataclass(frozen=True, slots=True)
class DatedFiles:
    """The planned files dated by one rule.

    Attributes:
        rule: The rule, as one word.
        looks_for: What it looks for, in words.
        files: How many files.
        days: How many different days.
        first_date: The earliest of them.
        last_date: The latest of them.
        example: One of the files.
    """

    rule: str
    looks_for: str
    files: int
    days: int
    first_date: str
    last_date: str
    example: str


@dataclass(frozen=True, slots=True)
class Written:
    """The result for one group.

    Attributes:
        group: The candidates to claim.
        manifest: What was written and can no longer be revoked; None if nothing was.
        kind: Whether that is a manifest or a pending part.
        claimed: The result of claiming.
        failed: Why a candidate is in no manifest yet, by claim key.
    """

    group: Group
    manifest: Manifest | None = None
    kind: Kind = "manifest"
    claimed: Claimed = field(default_factory=Claimed)
    failed: Mapping[str, str] = field(default_factory=dict)
    is_late: bool = False


@dataclass(slots=True)
class Plan:
    """The result of planning.

    Attributes:
        dry_run: Whether nothing is claimed or written.
        manifests: Manifests that were written, or would be.
        parts: Pending parts that were written.
        candidates: Files considered, each version once.
        candidate_bytes: Their stored size.
        skipped: Objects that are not data, by reason.
        examples: The first object of `skipped`, by reason.
        left_out: Files and folders that were left out and need attention.
        planned_before: Files that are already in a manifest.
        touched: Of these, files with the same bytes and a different time.
        renamed: Of these, files that are in a manifest under an earlier name that no longer exists.
        grown: Files that were appended to; only the new lines are planned.
        unfinished: Files that are still being written: only their complete lines are planned, or were before.
        replaced: Files with a different version in a manifest.
        replacements: Of these, files whose rows can be rebuilt.
        held: Number of files claimed by another planner.
        held_until: End of the last of those leases; None if nothing is held.
        first_held: The claim key of one of them; empty if there is none.
        failed: Why a candidate is in no manifest yet, by claim key, if others continued without it.
        misdated: Planned files that get their arrival date, because the date in their name is outside the window.
        first_misdated: The URI of one of them; empty if there is none.
        left_manifests: Manifests beyond a limit that were not started; estimated for dates that were not read.
        left_files: Files in these, and in dates that were not read.
        target_bytes: The target size of a manifest, in stored bytes.
        is_over: Whether planning should write nothing more.
        stalled: Whether planning ended early because the job did not keep up.
    """

    dry_run: bool = False
    manifests: list[PlannedManifest] = field(default_factory=list)
    parts: list[PlannedManifest] = field(default_factory=list)
    candidates: int = 0
    candidate_bytes: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    planned_before: int = 0
    touched: int = 0
    renamed: int = 0
    grown: int = 0
    unfinished: list[str] = field(default_factory=list)
    replaced: int = 0
    replacements: list[Replacement] = field(default_factory=list)
    held: int = 0
    held_until: datetime | None = None
    first_held: str = ""
    failed: dict[str, str] = field(default_factory=dict)
    misdated: int = 0
    first_misdated: str = ""
    left_manifests: int = 0
    left_files: int = 0
    target_bytes: float = 0.0
    is_over: bool = False
    stalled: bool = False
    _dated: dict[str, "_Dated"] = field(default_factory=dict)

    @property
    def files(self) -> int:
        """Planned files, without those in parts."""
        return sum(each.files for each in self.manifests)

    @property
    def size_bytes(self) -> int:
        """Their stored size."""
        return sum(each.size_bytes for each in self.manifests)

    @property
    def dated(self) -> list[DatedFiles]:
        """Planned files by the rule that dated them, in the order of the rules."""
        return [
            DatedFiles(rule, words, found.files, len(found.days), min(found.days), max(found.days), found.example)
            for rule, words in RULES.items()
            if (found := self._dated.get(rule)) is not None
        ]

    def skip(self, reason: str, uri: str = "", files: int = 1) -> None:
        """Count objects that are not input; `uri` is the first of them."""
        if files:
            self.skipped[reason] += files
            self.examples.setdefault(reason, uri)

    def count_claimed(self, claimed: Mapping[str, tuple[ClaimState, datetime]]) -> list[str]:
        """Count files by their claims; return the keys for which another planner may still write."""
        self.planned_before += sum(state == "taken" for state, _ in claimed.values())
        held = {key: until for key, (state, until) in claimed.items() if state == "held"}
        self._hold(held)
        return list(held)

    def add(self, written: Written) -> None:
        """Count a group's result."""
        self.planned_before += len(written.claimed.taken)
        self._hold(written.claimed.held)
        self.failed.update(written.failed)
        if written.is_late:
            self.leave(written.group)
        if (manifest := written.manifest) is not None:
            added = self.parts if written.kind == "part" else self.manifests
            added.append(PlannedManifest.of(manifest.date, manifest.files, manifest.manifest_id))

    def count_dates(self, date: str, files: Sequence[ManifestFile]) -> None:
        """Count a date's files by the rules that dated them."""
        for file in files:
            if file.dated_by is not None:
                dated = self._dated.setdefault(file.dated_by, _Dated(file.uri))
                dated.files += 1
                dated.days.add(date)

    def leave(self, group: Group) -> None:
        """Count a group that was not started."""
        self.left_manifests += 1
        self.left_files += len(group.files)

    def _hold(self, held: Mapping[str, datetime]) -> None:
        if held:
            self.held += len(held)
            self.first_held = self.first_held or min(held)
            self.held_until = max([*held.values(), *([self.held_until] if self.held_until else [])])


@dataclass(slots=True)
class _Dated:
    example: str
    files: int = 0
    days: set[str] = field(default_factory=set)
