"""What must hold of what expired: nothing goes without a record, and no record excuses what it does not name."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from compactor.core.documents.changes import (
    TAKES,
    Commit,
    Part,
    Taking,
)
from compactor.core.documents.records import FileStatus
from compactor.core.layout import Layout, ManifestKey, redriven_owner
from tests.simulation.scheduler import Broken


@dataclass
class ExpiryOracle:
    """Watches what expires.

    Attributes:
        layout: The places.
        read: Reads an object; None if there is none.
        commits: Those of each manifest, by its id, the newest one last.
        counts: Counts what happens.
        records: Of what expired.
    """

    layout: Layout
    read: Callable[[str], bytes | None]
    commits: Mapping[str, Sequence[Commit]]
    counts: Counter[str]
    records: list[Taking] = field(default_factory=list)

    def watch(self, uri: str, data: bytes | None) -> None:
        """Called before a record of what expired is changed.

        Raises:
            Broken: It must not be.
        """
        if data is None or self.read(uri) not in {None, data}:
            raise Broken(f"{uri}: a record of what expired was {'deleted' if data is None else 'replaced'}")
        if self.read(uri) is not None:
            return
        record = Taking.model_validate_json(data)
        for manifest_id, generation in record.manifests.items():
            if self.read(self.layout.done(ManifestKey(record.about, manifest_id), generation)) is None:
                raise Broken(f"{uri}: generation {generation} of {manifest_id} expires, and it is not done")
        self.records.append(record)
        self.counts[f"expiries ({record.why})"] += 1

    def check_deleted(self, uri: str) -> None:
        """Called before a file of rows or rejects, or an archived manifest, is deleted.

        Raises:
            Broken: No record takes it.
        """
        layout = self.layout
        if (key := layout.archived_key(uri)) is not None:
            is_taken = self.is_taken("archive", key, 1)
        elif (key := layout.rejects_owner(uri)) is not None:
            is_taken = self._is_taken_of("rejects", key, uri)
        else:
            key = layout.output_owner(uri)
            is_taken = key is not None and self._is_taken_of("rows", key, uri)
        if not is_taken:
            raise Broken(f"{uri}: deleted, and no record says that it expired")

    def is_taken(self, part: Part, key: ManifestKey, generation: int) -> bool:
        """Whether a part of a generation of a manifest expired, by what records name and not by what the code says."""
        return any(
            record.about == key.date and record.manifests.get(key.id, 0) >= generation and part in TAKES[record.why]
            for record in self.records
        )

    def counted(self) -> Counter[Part]:
        """How many files of the newest commits are gone, by what they held."""
        found: Counter[Part] = Counter()
        for commits in self.commits.values():
            newest = commits[-1]
            parts = self._parts(newest)
            if parts["rows"] and self.is_taken("rows", newest.key, newest.generation):
                del parts["redriven"]  # nothing is left to compare them with; without rows, they are compared
            for part, files in parts.items():
                found[part] += len(files) * self.is_taken(part, newest.key, newest.generation)
        return +found

    def _is_taken_of(self, part: Part, key: ManifestKey, uri: str) -> bool:
        """Whether a file expired, as one of the newest generation that has its name."""
        named = [each.generation for each in self.commits.get(key.id, ()) if uri in self._parts(each)[part]]
        return bool(named) and self.is_taken(part, key, max(named))

    def _parts(self, commit: Commit) -> dict[Part, list[str]]:
        copies = (each for each in commit.files if each.status is FileStatus.COMPACTED)
        return {
            "rows": [each.final for each in commit.outputs],
            "rejects": [each.final for each in commit.rejects],
            "redriven": [
                each.uri
                for each in copies
                if redriven_owner(each.uri, self.layout.redriven_folder) == commit.manifest_id
            ],
        }
