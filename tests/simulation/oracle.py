"""What must hold in a simulated run: at each change of the store, and when all is quiet."""

import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from hashlib import sha256

import pyarrow.parquet as pq

from compactor.core.documents.changes import (
    OUTCOME,
    TAKES,
    Commit,
    DeadLetter,
    Part,
)
from compactor.core.documents.records import Accepted, FileReport, FileStatus
from compactor.core.layout import Layout
from tests.simulation.expiry import ExpiryOracle
from tests.simulation.scheduler import Broken
from tests.simulation.topics import TopicOracle, is_landed

FORBIDDEN = "forbidden"
PARTS: tuple[Part, ...] = ("rows", "rejects")
_RECORD = re.compile(r"/(?P<id>[^/]+)/outcome(-\d+)?\.json$")
_DONE = re.compile(r"/(?P<id>[^/]+)/done(-(?P<generation>\d+))?\.json$")
_CREATE_ONLY = re.compile(r"/(outcome(-\d+)?|done(-\d+)?|redrive-\d+)\.json$")


@dataclass(frozen=True, slots=True)
class Produced:
    """One version of an input file, as its producer wrote it."""

    uri: str
    etag: str
    data: bytes

    def lines(self) -> list[tuple[int, bytes]]:
        """Its lines that are not blank, each with its number."""
        plain = gzip.decompress(self.data) if self.uri.endswith(".gz") else self.data
        return [(number, line) for number, line in enumerate(plain.split(b"\n"), start=1) if line.strip()]


@dataclass
class Oracle:
    """Watches every change of the store.

    Attributes:
        layout: The places.
        read: Reads an object; None if there is none.
        forgotten: Manifests of which the engine lost a row: with deaths beside, they may become dead letters.
    """

    layout: Layout
    read: Callable[[str], bytes | None]
    forgotten: Collection[str] = ()
    is_damaging: bool = False
    produced: dict[str, list[Produced]] = field(default_factory=dict)
    commits: dict[str, list[Commit]] = field(default_factory=dict)
    buried: list[DeadLetter] = field(default_factory=list)
    published: dict[str, set[str]] = field(default_factory=dict)  # what each final name may hold
    removable: set[str] = field(default_factory=set)
    damaged: set[str] = field(default_factory=set)  # ids of manifests of which a person deleted a file
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.expiry = ExpiryOracle(self.layout, self.read, self.commits, self.counts)

    def watch(self, uri: str, data: bytes | None) -> None:
        """Called before each change.

        Raises:
            Broken: It must not be made.
        """
        layout = self.layout
        if uri.startswith((layout.ledger_folder, layout.accepted_folder, layout.schemas_folder, layout.closed_folder)):
            self._check_record(uri, data)
        elif uri.startswith((layout.output + "/", layout.rejects_folder)):
            self._check_output(uri, data)
        elif uri.startswith(tuple(map(layout.changes_folder, TAKES))):
            self.expiry.watch(uri, data)
        elif uri.startswith(layout.archive_folder) and data is None:
            self.expiry.check_deleted(uri)
        elif uri.startswith(layout.staging_folder) and data is None:
            self._check_staging(uri)

    def _check_record(self, uri: str, data: bytes | None) -> None:
        is_for_good = not uri.startswith(self.layout.ledger_folder) or _CREATE_ONLY.search(uri)
        if is_for_good and (found := self.read(uri)) is not None and found != data:
            raise Broken(f"{uri}: a record that is created once was {'deleted' if data is None else 'replaced'}")
        done = _DONE.search(uri)
        if done is not None and data is not None:
            self._check_done(done["id"], int(done["generation"] or 1))
        if uri.startswith(self.layout.closed_folder):
            self.counts["summaries"] += 1
            return
        match = _RECORD.search(uri)
        if match is None or data is None or self.read(uri) is not None:
            return
        outcome = OUTCOME.validate_json(data)
        bound = self.read(self.layout.accepted(match["id"]))
        accepted = Accepted.model_validate_json(bound) if bound else None
        if accepted is None or accepted.kind == "revoked":
            raise Broken(f"{uri}: decided, and its id is {'revoked' if accepted else 'not bound'}")
        if isinstance(outcome, Commit):
            self._note_commit(outcome)
        else:
            self._note_dead_letter(outcome)

    def _check_done(self, manifest_id: str, generation: int) -> None:
        """All that a commit names is in its final place when done is put on record; rebuilt ones are done as both."""
        commits = self.commits.get(manifest_id, ())
        commit = next((each for each in reversed(commits) if each.generation >= generation), None)
        missing = [file.final for file in commit.outputs if self.read(file.final) is None] if commit else []
        if missing and manifest_id not in self.damaged:
            raise Broken(f"{manifest_id}: done is put on record before {missing[0]} is there")

    def _note_commit(self, commit: Commit) -> None:
        if commit.generation > 1 and commit.manifest_id not in self.damaged:
            raise Broken(f"{commit.manifest_id}: its rows had to be made again, and no one had damaged them")
        self.counts["commits" if commit.generation == 1 else "rebuilds"] += 1
        self.commits.setdefault(commit.manifest_id, []).append(commit)
        self.counts["superseded versions"] += sum(file.superseded for file in commit.files)
        self.counts["deferred files"] += len(commit.deferred) * (commit.generation == 1)
        for file in (*commit.outputs, *commit.rejects):
            staged = self.read(file.staged)
            if staged is None:
                raise Broken(f"{commit.manifest_id}: decided, and {file.staged} is gone")
            self.published.setdefault(file.final, set()).add(sha256(staged).hexdigest())
        self.removable.update(commit.removes)

    def _note_dead_letter(self, letter: DeadLetter) -> None:
        self.counts["dead letters"] += 1
        self.buried.append(letter)
        if letter.manifest_id not in self.forgotten and letter.reason != FORBIDDEN:  # its files were denied for long
            raise Broken(f"{letter.manifest_id}: a good manifest is a dead letter ({letter.reason}): {letter.message}")

    def _check_output(self, uri: str, data: bytes | None) -> None:
        if data is None:
            if uri not in self.removable and not self.is_damaging:
                self.expiry.check_deleted(uri)
        elif self.layout.is_columns_file(uri):
            found = pq.read_table(io.BytesIO(data), use_threads=False)
            if found.num_rows or "id" not in found.column_names:
                raise Broken(f"{uri}: expected all columns and no row")
        elif sha256(data).hexdigest() not in self.published.get(uri, ()):
            raise Broken(f"{uri}: visible, and no commit has verified these bytes")

    def _check_staging(self, uri: str) -> None:
        manifest_id = uri.removeprefix(self.layout.staging_folder).partition("/")[0]
        commits = self.commits.get(manifest_id)
        if not commits or self.is_damaging:
            return
        commit = commits[-1]
        is_done = self.read(self.layout.done(commit.key, commit.generation)) is not None
        if not is_done and uri in {file.staged for file in (*commit.outputs, *commit.rejects)}:
            raise Broken(f"{uri}: deleted before its commit was published")

    def check_lines(self, uris: Iterable[str], topic: TopicOracle | None = None) -> None:
        """Every line of the last version of each input is one row or one reject; of earlier versions at most one.

        Of what expired there is none.

        Args:
            uris: All objects of output and rejects.
            topic: Checks the records of a topic; None if there is none.

        Raises:
            Broken: A line is lost or doubled.
        """
        rows, rejects = self._found(uris)
        if topic is not None:
            topic.check(self._landed(), rows, rejects, self._is_expired)
        wanted = [each for versions in self.produced.values() for each in versions]
        gone = self._expired_versions()
        for each in wanted:
            is_last = each is self.produced[each.uri][-1]
            for number, line in each.lines():
                if line.startswith(b'{"id"'):
                    found, what, part = rows.pop(json.loads(line)["id"], 0), f"row {line!r}", "rows"
                else:
                    found, what, part = rejects.pop((each.uri, number, line), 0), f"reject {line!r}", "rejects"
                expected = 0 if (part, each.uri, each.etag) in gone else 1
                if found > expected or (is_last and found < expected):
                    raise Broken(f"{each.uri} version {each.etag}: {what} is there {found} times, expected {expected}")
        if rows or rejects:
            raise Broken(f"rows or rejects that no file has: {[*rows][:3]} {[*rejects][:3]}")

    def _landed(self) -> list[tuple[Commit, FileReport]]:
        newest = [commits[-1] for commits in self.commits.values()]
        return [(commit, file) for commit in newest for file in commit.files if is_landed(file.source_uri or file.uri)]

    def _is_expired(self, part: Part, commit: Commit) -> bool:
        return self.expiry.is_taken(part, commit.key, commit.generation)

    def _expired_versions(self) -> set[tuple[str, str, str]]:
        """The versions of files whose rows or rejects expired."""
        return {
            (part, file.uri, file.etag)
            for commits in self.commits.values()
            for part in PARTS
            if self.expiry.is_taken(part, commits[-1].key, commits[-1].generation)
            for file in commits[-1].files
            if file.status is FileStatus.COMPACTED
        }

    def _found(self, uris: Iterable[str]) -> tuple[Counter[str], Counter[tuple[str, int, bytes]]]:
        rows: Counter[str] = Counter()
        rejects: Counter[tuple[str, int, bytes]] = Counter()
        for uri in uris:
            table = pq.read_table(io.BytesIO(self.read(uri) or b""), use_threads=False)
            if uri.startswith(self.layout.rejects_folder):
                columns = (table[name].to_pylist() for name in ("source_uri", "line_number", "raw"))
                rejects.update(zip(*columns, strict=True))
            else:
                rows.update(table["id"].to_pylist())
        return rows, rejects
