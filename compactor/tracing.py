"""Where is my file? Follows one input file through claim, manifest, ledger, output and rejects: `compactor trace`."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum

from compactor.errors import ManifestError, ObjectNotFound
from compactor.layout import Layout, canonical, date_of_file, is_delivery
from compactor.ledger import Ledger
from compactor.manifest import ManifestFile, parse_manifest
from compactor.planning import claim_key
from compactor.ports import ClaimTable, Clock, ObjectStore
from compactor.records import Commit, DeadLetter, FileReport

SEARCH_THREADS = 16


class Whereabouts(StrEnum):
    """How far a file has come."""

    UNKNOWN = "unknown"  # no manifest of its day names it, and none that waits
    CLAIMED = "claimed"  # claimed for a manifest that is not written
    WAITING = "waiting"  # in a manifest that nobody began
    IN_WORK = "in_work"  # in a manifest that was begun
    DECIDED = "decided"  # committed, and not all of it is in its final place yet
    DONE = "done"  # every line is in the output, in the rejects, or blank
    SET_ASIDE = "set_aside"  # the file alone was set aside
    DEAD_LETTERED = "dead_lettered"  # its manifest is a dead letter


@dataclass(slots=True)
class Trace:
    """What is known of one file.

    Attributes:
        uri: As asked.
        whereabouts: How far it has come.
        exists: Whether the object is there now.
        manifest_id: The manifest that names it.
        date: That manifest's date.
        report: The file's audit, once there is one.
        outputs: Parquet files of the manifest; the file's rows are in them.
        rejects: Files of the manifest's rejects, if this file has any.
        message: Why it was set aside, where it was.
    """

    uri: str
    whereabouts: Whereabouts = Whereabouts.UNKNOWN
    exists: bool = False
    manifest_id: str = ""
    date: str = ""
    report: FileReport | None = None
    outputs: list[str] = field(default_factory=list)
    rejects: list[str] = field(default_factory=list)
    message: str = ""


class Tracer:
    """Follows files.

    Args:
        store: Where everything is.
        layout: The places.
        ledger: How far manifests have come.
        claims: Which manifest a planned file belongs to; None where nobody plans.
        clock: The day of a file that names none and is gone.
        allowed_prefixes: Folders that input may be in.
    """

    def __init__(
        self,
        store: ObjectStore,
        layout: Layout,
        ledger: Ledger,
        claims: ClaimTable | None,
        clock: Clock,
        *,
        allowed_prefixes: Sequence[str],
    ) -> None:
        self._allowed_prefixes = allowed_prefixes
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._claims = claims
        self._clock = clock

    def trace(self, uri: str) -> Trace:
        """Follow one file, by its claim where it has one, else through the ledger of its day and the watched prefix."""
        info = self._store.stat(uri)
        trace = Trace(uri=uri, exists=info is not None)
        if info is not None and self._claims is not None:
            key = claim_key(ManifestFile(uri=uri, etag=info.etag))
            claim = self._claims.get_many([key]).get(key)
            if claim is not None:
                trace.whereabouts, trace.manifest_id = Whereabouts.CLAIMED, claim.holder
                self._follow_manifest(trace)
                return trace
        day = date_of_file(uri, info.modified_at if info else self._clock.now())
        if not self._search_ledger(trace, day):
            self._search_waiting(trace)
        return trace

    def _follow_manifest(self, trace: Trace) -> None:
        accepted = self._ledger.accepted(trace.manifest_id)
        if accepted is None:
            if self._store.stat(self._layout.manifest(trace.manifest_id)) is not None:
                trace.whereabouts = Whereabouts.WAITING
            return
        trace.date = accepted.date
        if accepted.kind == "void":
            trace.message = f"manifest {trace.manifest_id} was given up by its planner; plan again"
            return
        state = self._ledger.state(accepted.date, trace.manifest_id)
        trace.whereabouts = Whereabouts.IN_WORK if state.attempts else Whereabouts.WAITING
        if state.outcome is not None:
            _add_outcome(trace, state.outcome, is_done=state.is_done)

    def _search_ledger(self, trace: Trace, day: str) -> bool:
        """Look through the manifests of a day, newest first."""
        manifests = list(self._ledger.manifests(day))
        with ThreadPoolExecutor(SEARCH_THREADS) as pool:
            for outcome in pool.map(self._outcome, reversed(manifests)):
                if outcome is not None and self._names(outcome, trace.uri):
                    trace.manifest_id = outcome.manifest_id
                    self._follow_manifest(trace)
                    return True
        return False

    def _outcome(self, manifest: tuple[str, str]) -> Commit | DeadLetter | None:
        try:
            return self._ledger.outcome(*manifest)
        except ObjectNotFound:
            return None

    def _names(self, outcome: Commit | DeadLetter, uri: str) -> bool:
        files: Iterable[FileReport | ManifestFile] = ()
        if isinstance(outcome, Commit):
            files = outcome.files
        else:
            accepted = self._ledger.accepted(outcome.manifest_id)
            if accepted is not None and accepted.manifest is not None:
                files = accepted.manifest.files
        return any(canonical(file.uri) == canonical(uri) for file in files)

    def _search_waiting(self, trace: Trace) -> None:
        for manifest_id, uris in self._waiting_manifests():
            if canonical(trace.uri) in uris:
                trace.manifest_id, trace.whereabouts = manifest_id, Whereabouts.WAITING
                self._follow_manifest(trace)
                return

    def _waiting_manifests(self) -> Iterator[tuple[str, set[str]]]:
        for info in self._store.list(self._layout.manifests_folder):
            if not is_delivery(info.uri):
                continue
            try:
                manifest = parse_manifest(
                    self._store.read(info.uri),
                    uri=info.uri,
                    modified_at=info.modified_at,
                    allowed_prefixes=self._allowed_prefixes,
                )
            except (ObjectNotFound, ManifestError):
                continue
            yield manifest.manifest_id, {canonical(file.uri) for file in manifest.files}


def _add_outcome(trace: Trace, outcome: Commit | DeadLetter, *, is_done: bool) -> None:
    if isinstance(outcome, DeadLetter):
        trace.whereabouts, trace.message = Whereabouts.DEAD_LETTERED, f"{outcome.reason}: {outcome.message}"
        return
    trace.whereabouts = Whereabouts.DONE if is_done else Whereabouts.DECIDED
    report = next((file for file in outcome.files if canonical(file.uri) == canonical(trace.uri)), None)
    trace.report = report
    if report is not None and report.status != "compacted":
        trace.whereabouts, trace.message = Whereabouts.SET_ASIDE, f"{report.status}: {report.detail}"
    elif report is not None:
        trace.outputs = [file.final for file in outcome.outputs] if report.records else []
        trace.rejects = [file.final for file in outcome.rejects] if report.rejected_lines else []
