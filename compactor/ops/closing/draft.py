"""The summary of some manifests, as it is made up before it takes its place in the log."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.documents.closed_dates import DoubledVersion, Member, OpenFile, OpenLetter
from compactor.core.documents.counts import Counts
from compactor.core.documents.records import Commit, DeadLetter
from compactor.core.layout import ManifestKey
from compactor.ledger.history.closed_dates import DIGEST_BYTES, Versions
from compactor.ledger.state import State
from compactor.ops.closing.settling import open_files, open_letters
from compactor.ops.closing.version_index import in_order
from compactor.ops.verify.doubled import version_digest
from compactor.ops.verify.report import VerifyResult


@dataclass(slots=True)
class Draft:
    """What goes into the next summary of a date.

    Attributes:
        number: 1 for the summary that closes the date.
        places: The summaries of the date that are in the log so far.
        until: The store's time of the latest record of the members.
    """

    date: str
    number: int
    places: Sequence[int]
    begins_at: datetime
    until: datetime
    members: list[Member] = field(default_factory=list)
    versions: Versions = field(default_factory=Versions.none)
    sums: Counts = field(default_factory=Counts)
    letters: list[OpenLetter] = field(default_factory=list)
    quarantined: list[OpenFile] = field(default_factory=list)
    doubled: list[DoubledVersion] = field(default_factory=list)

    @property
    def keys(self) -> list[ManifestKey]:
        return [ManifestKey(self.date, each.id) for each in self.members]

    def add(self, key: ManifestKey, outcome: Commit | DeadLetter) -> None:
        """Add a manifest that is done and verified."""
        number, kept, counted = len(self.members), 0, 0
        if isinstance(outcome, Commit):
            digests = [found for file in outcome.files if (found := version_digest(file))]
            self.versions.digests.extend(int.from_bytes(each[:DIGEST_BYTES], "big") for each in digests)
            self.versions.members.extend(array("I", [number]) * len(digests))
            counted = sum(sum(file.unkept_rejects.values()) for file in outcome.files)
            kept = sum(sum(file.rejects.values()) for file in outcome.files) - counted
        self.members.append(Member(key.id, outcome.generation, kept, counted))

    def complete(self, state: State, report: VerifyResult, superseded: Counts) -> None:
        """Take over what the verification of the members has found.

        Args:
            state: Has the records of redrives.
            report: Without discrepancies.
            superseded: What earlier summaries have of the members.
        """
        self.versions = in_order(self.versions)
        # guard: what an earlier summary has of a rebuilt manifest is taken back
        self.sums = report - superseded
        self.letters = [
            OpenLetter(manifest_id=each.manifest_id, date=self.date, reason=each.reason, message=each.message)
            for each in open_letters(state, report.dead_letter_manifests)
        ]
        self.quarantined = [
            OpenFile(
                manifest_id=each.manifest_id,
                date=self.date,
                uri=each.uri,
                status=each.status,
                detail=each.detail,
                committed_at=each.committed_at,
                started_at=each.started_at,
            )
            for each in open_files(state, report.quarantined_files)
        ]
