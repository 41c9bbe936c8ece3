"""The summary of some manifests, as it is made up before it takes its place in the log."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.closed_dates import DoubledVersion, ManifestSums, Member, OpenFile, OpenLetter, added
from compactor.core.manifest_key import ManifestKey
from compactor.core.records import Commit, DeadLetter
from compactor.ledger.closed_dates import DIGEST_BYTES, Versions
from compactor.ops.closing.version_index import in_order
from compactor.ops.verify.doubled import version_digest
from compactor.ops.verify.report import VerifyReport


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
    sums: ManifestSums = field(default_factory=ManifestSums)
    letters: list[OpenLetter] = field(default_factory=list)
    quarantined: list[OpenFile] = field(default_factory=list)
    doubled: list[DoubledVersion] = field(default_factory=list)

    @property
    def keys(self) -> list[ManifestKey]:
        return [ManifestKey(self.date, each.id) for each in self.members]

    def add(self, key: ManifestKey, outcome: Commit | DeadLetter) -> None:
        """Add a manifest that is done and verified."""
        number, kept = len(self.members), 0
        if isinstance(outcome, Commit):
            digests = [found for file in outcome.files if (found := version_digest(file))]
            self.versions.digests.extend(int.from_bytes(each[:DIGEST_BYTES], "big") for each in digests)
            self.versions.members.extend(array("I", [number]) * len(digests))
            kept = sum(sum(file.rejects.values()) - sum(file.unkept_rejects.values()) for file in outcome.files)
        self.members.append(Member(key.id, outcome.generation, kept))

    def complete(self, report: VerifyReport, superseded: ManifestSums) -> None:
        """Take over what the verification of the members has found.

        Args:
            report: Without discrepancies.
            superseded: What earlier summaries have of the members.
        """
        self.versions = in_order(self.versions)
        self.sums = added(report.sums, superseded, sign=-1)
        self.letters = [
            OpenLetter(manifest_id=each.manifest_id, date=self.date, reason=each.reason, message=each.message)
            for each in report.dead_letter_manifests
            if not each.is_settled
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
            for each in report.quarantined_files
            if not each.is_settled
        ]
