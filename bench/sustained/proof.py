"""Verifies each finished manifest and then deletes its files, so that the disk holds only a few manifests."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.sustained.feeder import source_name
from bench.sustained.flow import Passage
from compactor.core.documents.changes import Commit
from compactor.core.documents.records import Done, FileStatus
from compactor.core.layout import ManifestKey, folder
from compactor.ledger.sizing import sizing_hits
from compactor.wiring import operating
from compactor.wiring.app import App


@dataclass(slots=True)
class Proved:
    """What is verified so far.

    Attributes:
        passages: The passage of each committed file, by its URI.
        faults: What is wrong, in words.
        manifests: Number of verified manifests.
        lines: Lines of their files, which are the sum of the next three.
        rows: Lines that became rows.
        rejected_lines: Lines that were rejected.
        blank_lines: Lines that were blank.
        output_sizes: Bytes of each Parquet file.
        right_sized: Parquet files of the target size.
        sized: Parquet files that had to be of the target size.
    """

    passages: dict[str, Passage] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    manifests: int = 0
    lines: int = 0
    rows: int = 0
    rejected_lines: int = 0
    blank_lines: int = 0
    output_sizes: list[int] = field(default_factory=list)
    right_sized: int = 0
    sized: int = 0


class Prover:
    """Finds and verifies manifests that are done.

    Args:
        app: Reads the records of the job.
        lines_by_source: The number of lines of each ready-made file, by its name.
        path_of: The path of an input file on this machine.
    """

    def __init__(self, app: App, lines_by_source: Mapping[str, int], path_of: Callable[[str], Path] = Path) -> None:
        self.proved = Proved()
        self._app = app
        self._lines_by_source = lines_by_source
        self._path_of = path_of
        self._seen: set[str] = set()

    def check(self) -> None:
        """Verify the manifests that are done, and delete the files of those without a fault."""
        # A manifest is archived last, when the job does not read its files again.
        for info in list(self._app.store.list(self._app.layout.archive_folder)):
            found = self._app.layout.archived_key(info.uri)
            if found is not None and info.uri not in self._seen:
                self._seen.add(info.uri)
                self._prove(found)

    def finish(self, fed_files: int) -> None:
        """Verify, when all manifests should be done, that no file is left or missing.

        Args:
            fed_files: Number of files that were fed.
        """
        faults, app = self.proved.faults, self._app
        if len(self.proved.passages) != fed_files:
            faults.append(f"{len(self.proved.passages)} files were committed, expected the {fed_files} that were fed")
        layout = app.layout
        own = (layout.manifests_folder, layout.pending_folder, layout.open_folder, layout.failed_folder)
        for place in (*own, folder(layout.output), *map(folder, app.settings.input.allowed_prefixes)):
            left = [info.uri for info in app.store.list(place) if info.uri != layout.keep_marker]
            if left:
                faults.append(f"{place}: {len(left)} objects are left, such as {left[0]}; expected none")

    def _prove(self, key: ManifestKey) -> None:
        faults = list(self._faults(key))
        if faults:
            self.proved.faults += faults
            return
        commit = self._app.ledger.outcome(key)
        if isinstance(commit, Commit):
            self._count(commit)
            self._app.store.delete(file.final for file in (*commit.outputs, *commit.rejects))
            for file in commit.files:
                self._path_of(file.uri).unlink()  # the store would delete the folder too, and the feeder still uses it

    def _faults(self, key: ManifestKey) -> Iterator[str]:
        """The faults that verification finds, and those that only the ready-made files show."""
        report = operating.verifier(self._app).verify_manifests([key])
        for each in report.discrepancies:
            yield f"{each.where}: expected {each.expected}, found {each.found}"
        commit = self._app.ledger.outcome(key)
        if report.unfinished or not isinstance(commit, Commit):
            yield f"{key.id}: expected a commit that is done"
            return
        for file in commit.files:
            expected = self._lines_by_source[source_name(file.uri)]
            if file.status is not FileStatus.COMPACTED or file.lines != expected:
                yield f"{file.uri}: {file.status} with {file.lines} lines, expected {expected} lines compacted"
            if file.records + file.rejected_lines + file.blank_lines != file.lines:
                yield f"{file.uri}: {file.lines} lines are not accounted for"
            if file.uri in self.proved.passages:
                yield f"{file.uri}: was committed before"

    def _count(self, commit: Commit) -> None:
        proved, app = self.proved, self._app
        accepted = app.ledger.accepted(commit.manifest_id)
        events = (
            {file.uri: file.event_time for file in accepted.manifest.files} if accepted and accepted.manifest else {}
        )
        visible = app.ledger.record(app.layout.done(commit.key), Done).done_at
        for file in commit.files:
            arrived = events[file.uri]
            if arrived is None:
                proved.faults.append(f"{file.uri}: its manifest has no event time, expected that of its message")
                arrived = visible
            proved.passages[file.uri] = Passage(file.size_bytes, arrived.timestamp(), visible.timestamp())
            proved.lines += file.lines
            proved.rows += file.records
            proved.rejected_lines += file.rejected_lines
            proved.blank_lines += file.blank_lines
        sizes = [output.size_bytes for output in commit.outputs]
        hits, counted = sizing_hits(sizes, app.settings.output.target_file_bytes)
        proved.manifests += 1
        proved.output_sizes += sizes
        proved.right_sized += hits
        proved.sized += counted
