"""What repeated readings need not read again, because it never changes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.documents.records import DeadLetter
from compactor.core.layout import base_name
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.accounts.later_rows import KnownRows, Version
from compactor.ops.status.values import Spent


@dataclass(slots=True)
class StatusCache:
    """What was read before. It is bounded: each reading drops what it did not need."""

    # The bytes that each waiting manifest names, by its URI and ETag
    weights: dict[tuple[str, str], int] = field(default_factory=dict)
    letters: dict[str, DeadLetter] = field(default_factory=dict)  # dead letters by the URI of their reason
    redriven: set[str] = field(default_factory=set)  # those of these URIs whose manifests were settled for good
    # The quarantined files of each commit, by manifest id
    quarantined: dict[str, list[QuarantinedFile]] = field(default_factory=dict)
    rows: KnownRows = field(default_factory=KnownRows)  # that commits have of quarantined files
    named: dict[str, Sequence[Version]] = field(default_factory=dict)  # by dead letter, the versions that it names
    taken: KnownRows = field(default_factory=KnownRows)  # that commits have of these versions
    # The seconds from arrival to visible of each file of a commit that is done, by manifest id
    arrivals: dict[str, tuple[float, ...]] = field(default_factory=dict)
    cost: tuple[datetime, Spent] | None = None  # the latest answer of Glue, and when it came

    def keep_only(self, *, letters: Collection[str], commits: Collection[str]) -> None:
        """Drop what the last reading did not need."""
        self.letters = {uri: letter for uri, letter in self.letters.items() if uri in letters}
        self.redriven &= set(letters)
        ids = {base_name(uri).removesuffix(".reason.json") for uri in set(letters) - self.redriven}
        self.named = {each: versions for each, versions in self.named.items() if each in ids}
        if not any(self.named.values()):
            self.taken.keep_only(())
        self.quarantined = {key: files for key, files in self.quarantined.items() if key in commits}
        self.rows.keep_only(commits)
        self.arrivals = {key: seconds for key, seconds in self.arrivals.items() if key in commits}
