"""Counts the unfinished work, manifest by manifest, for a run that ends once everything is done."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from compactor.core.documents.manifest import OUTSIDE, Manifest
from compactor.core.documents.manifest_parsing import check_length, is_allowed, parse_manifest
from compactor.core.documents.records import Accepted, OpenMarker
from compactor.core.errors import AccessError, ManifestError, ObjectNotFound, StuckError
from compactor.core.layout import Layout, is_delivery
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.core.results import as_document
from compactor.ledger.ledger import newest_generation
from compactor.ledger.state import State


def read_waiting_manifest(state: State, info: ObjectInfo, *, allowed_prefixes: Sequence[str]) -> Manifest:
    """Read a listed manifest as intake will.

    Raises:
        ManifestError: Intake will refuse it.
        ObjectNotFound: It was finished after the listing.
        StuckError: Access is denied.
    """
    check_length(info.uri, info.size_bytes)
    try:
        data = state.store.read(info.uri)
    except AccessError as exc:
        raise StuckError(f"{exc}; expected permission to read each manifest: it may name the same files") from exc
    return parse_manifest(
        data,
        uri=info.uri,
        modified_at=info.modified_at,
        allowed_prefixes=allowed_prefixes,
        redriven_folder=state.layout.redriven_folder,
        rules=state.rules,
    )


@dataclass(frozen=True, slots=True)
class WaitingManifests:
    """Waiting manifests.

    Attributes:
        manifests: Manifests in the watched prefix, including those in progress.
        oldest_seconds: The age of the oldest one; 0 if there is none.
    """

    manifests: int = 0
    oldest_seconds: float = 0.0


@as_document(shows=("is_extrapolated",))
@dataclass(frozen=True, slots=True)
class Backlog(WaitingManifests):
    """Unfinished work.

    Attributes:
        input_bytes: The stored input of waiting manifests; None if none could be read.
        manifests_read: How many manifests `input_bytes` is extrapolated from.
        begun_manifests: Manifests that a job has started and will finish; most are also in the watched prefix.
        oldest_begun: The id of the first one to start; empty if there is none.
        oldest_begun_seconds: Its age.
        undecided_rebuilds: Manifests with an unfinished rebuild and no outcome for it; no job continues it.
        oldest_undecided: The id of the first one to start; empty if there is none.
        oldest_undecided_seconds: Its age.
        pending_parts: Parts of announced files that await sealing.
        oldest_pending_seconds: The age of the oldest part.
        left_to_others: Manifests in the watched prefix that belong to other calls; no other count includes them.
    """

    input_bytes: int | None = 0
    manifests_read: int = 0
    begun_manifests: int = 0
    oldest_begun: str = ""
    oldest_begun_seconds: float = 0.0
    undecided_rebuilds: int = 0
    oldest_undecided: str = ""
    oldest_undecided_seconds: float = 0.0
    pending_parts: int = 0
    oldest_pending_seconds: float = 0.0
    left_to_others: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.manifests and not self.begun_manifests

    @property
    def is_extrapolated(self) -> bool:
        """Whether `input_bytes` is estimated from some of the manifests."""
        return self.manifests_read < self.manifests


def waiting_manifests(written_at: Collection[datetime], now: datetime) -> WaitingManifests:
    """Summarise the waiting manifests, given when each was written."""
    return WaitingManifests(len(written_at), max(0.0, (now - min(written_at, default=now)).total_seconds()))


@dataclass(frozen=True, slots=True)
class Begun:
    """Manifests that were started and are not done, each with its latest start.

    Attributes:
        left_to_jobs: New manifests, and rebuilds with an outcome: a job finishes them.
        undecided: Rebuilds without an outcome. No job continues them; the next `rebuild` does.
    """

    left_to_jobs: Mapping[str, datetime]
    undecided: Mapping[str, datetime]


def read_started(state: State, *, but: Collection[str] = (), until: datetime | None = None) -> Begun:
    """Read the index of open manifests.

    New manifests are not read: in an outage there may be thousands, and the control plane counts them each minute. For
    rebuilds, the marker and the names of the records are read.

    Args:
        state: Has the index.
        but: Omit these manifests.
        until: Omit manifests that started later: a process may be working on them.
    """
    opened_id, generation_of = state.layout.opened_id, state.layout.opened_generation
    marks: dict[str, list[ObjectInfo]] = defaultdict(list)
    for info in state.store.list(state.layout.open_folder):
        if info.uri.endswith(".json"):
            marks[opened_id(info.uri)].append(info)
    begun_at = {each: max(info.modified_at for info in found) for each, found in marks.items()}
    counted = [each for each, at in begun_at.items() if each not in but and (until is None or at <= until)]

    def is_left_to_jobs(manifest_id: str) -> bool:
        of_rebuilds = [info for info in marks[manifest_id] if generation_of(info.uri) > 1]
        return len(of_rebuilds) < len(marks[manifest_id]) or any(_has_decided(state, info) for info in of_rebuilds)

    found = list(zip(counted, map_ordered(is_left_to_jobs, counted), strict=True))
    return Begun(
        left_to_jobs={each: begun_at[each] for each, is_left in found if is_left},
        undecided={each: begun_at[each] for each, is_left in found if not is_left},
    )


def _has_decided(state: State, mark: ObjectInfo) -> bool:
    """Whether a marker's rebuild has an outcome: then a job removes the marker."""
    with suppress(StuckError, ObjectNotFound):  # it is damaged, or was just removed
        opened = state.ledger.record(mark.uri, OpenMarker)
        names = state.ledger.record_names(opened.key)
        return state.layout.opened_generation(mark.uri) <= (newest_generation(names) or 1)
    return False


def read_backlog(state: State, *, allowed_prefixes: Sequence[str]) -> Backlog:
    """Count the unfinished work.

    Args:
        state: Source of manifests and ledger.
        allowed_prefixes: Input folders. A manifest that names files elsewhere belongs to other calls.
    """
    ledger, layout = state.ledger, state.layout
    waiting = (info for info in state.store.list(layout.manifests_folder) if is_delivery(info.uri))
    sizes = list(map_ordered(partial(_input_bytes, state, allowed_prefixes), waiting))
    own = [size for size in sizes if size is not None]
    left = read_started(state).left_to_jobs
    begun = [each for each in left if not _is_of_others(ledger.accepted(each), layout, allowed_prefixes)]
    return Backlog(
        manifests=len(own),
        input_bytes=sum(own),
        manifests_read=len(own),
        begun_manifests=len(begun),
        left_to_others=len(sizes) - len(own),
    )


def _is_of_others(record: Accepted | None, layout: Layout, allowed_prefixes: Sequence[str]) -> bool:
    """Whether another call started a manifest, for files outside the allowed prefixes."""
    if record is None or record.manifest is None:
        return False
    manifest_id, files = record.manifest_id, record.manifest.files
    return not all(is_allowed(file.uri, manifest_id, allowed_prefixes, layout.redriven_folder) for file in files)


def _input_bytes(state: State, allowed_prefixes: Sequence[str], info: ObjectInfo) -> int | None:
    """The bytes of a manifest's files; 0 if unknown; None if it belongs to other calls."""
    try:
        manifest = read_waiting_manifest(state, info, allowed_prefixes=allowed_prefixes)
    except (ObjectNotFound, StuckError):
        return 0
    except ManifestError as exc:
        return None if exc.reason == OUTSIDE else 0
    return sum(file.size_bytes or 0 for file in manifest.files)
