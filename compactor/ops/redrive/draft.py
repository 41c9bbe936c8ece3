"""Drafts of redriven manifests: the files that they may name, and those that are refused. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import DeadLetter
from compactor.core.inputs.dates import possible_dates
from compactor.core.layout import canonical, number_of_redrive, root_id
from compactor.core.manifest_key import ManifestKey
from compactor.ledger.accounts.account import Account
from compactor.manifests.file_search import Naming
from compactor.ops.redrive.redrive_report import Refused


@dataclass(slots=True)
class Draft:
    """The files that a new manifest may name."""

    account: Account  # of the manifest that is redriven
    root: ManifestKey  # of its lineage
    date: str  # the date of the new manifest
    alias: str = ""  # the id inside the original of a dead letter, if it differs from the id of the letter
    files: list[ManifestFile] = field(default_factory=list)
    unclaimed: set[str] = field(default_factory=set)  # URIs of the files without a claim
    rejects_of: str | None = None  # the manifest that rejected the lines, if its files have redriven lines
    listed_at: datetime | None = None  # when a listing found the files; None if something announced them
    # By URI, why a file was quarantined or its manifest dead-lettered
    reasons: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # by URI, why a file cannot be redriven
    planned: set[str] = field(default_factory=set)  # URIs that only plans give, if the manifest was refused

    def is_own(self, holder: str) -> bool:
        """Whether the holder of a claim belongs to the lineage."""
        return self.root.id in {holder, root_id(holder)} or holder == self.alias

    def is_before(self, holder: str, manifest_id: str) -> bool:
        """Whether the holder of a claim belongs to the lineage and comes before a redrive of it.

        A redrive that was held up while another one took a later number must not take the claims of that one.
        """
        numbers = (number_of_redrive(each, self.root.id) for each in (holder, manifest_id))
        # guard: a redrive that was held up leaves the claims of a later one
        return self.is_own(holder) and next(numbers) < next(numbers)

    def refuse(self, refused: Mapping[str, str]) -> None:
        """Leave out files, by URI with the reason."""
        self.refused.update(refused)
        self.files = [file for file in self.files if file.uri not in refused]

    def refuse_held(self, holders: Mapping[str, str]) -> None:
        """Leave out files that other manifests have claimed, by URI with the holder."""
        self.refuse({uri: f"manifest {holder} has claimed it" for uri, holder in holders.items()})

    def refuse_named(self, files: Sequence[ManifestFile], found: Mapping[str, Sequence[Naming]]) -> None:
        """Leave out those of some files that another manifest has; `found` has the namings by canonical URI."""
        refused: dict[str, str] = {}
        for file in files:
            naming = next((each for each in found.get(canonical(file.uri), ()) if each.may_have(file.etag)), None)
            if naming is not None:
                has = "has compacted it" if naming.state == "compacted" else "names it, and is not done"
                refused[file.uri] = f"manifest {naming.manifest_id} {has}"
        self.refuse(refused)

    def refusals(self) -> list[Refused]:
        """The files that were left out."""
        return [Refused(self.account.id, uri, why) for uri, why in self.refused.items()]

    def files_left(self, account: Account, reason: str | None) -> list[ManifestFile]:
        """The files that were not redriven meanwhile, by the account of the manifest as it is now."""
        if isinstance(account.outcome, DeadLetter):
            of_plans = next((each.manifest.manifest_id for each in account.taken if each.kind == "planned"), "")
            if of_plans:
                self.refuse(dict.fromkeys(self.planned, f"manifest {of_plans} has what was planned for this id"))
            return list(self.files)
        left = {report.uri for report in account.open_reports(reason)}
        return [file for file in self.files if file.redriven_uri in left]

    def unclaimed_files(self) -> list[ManifestFile]:
        return [file for file in self.files if file.uri in self.unclaimed]

    def dates(self) -> set[str]:
        """The dates whose manifests may have the files without a claim."""
        day = datetime.fromisoformat(self.date).replace(tzinfo=UTC)
        own = (possible_dates(file.uri, file.event_time or day) for file in self.unclaimed_files())
        return {self.date, self.account.key.date}.union(*own)
