"""Finds quarantined gaps of topics and streams, and puts on record who accepted the loss, and why."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from compactor.core.documents.records import Commit
from compactor.core.logs.names import LogGap, is_log
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.change_log import give_up
from compactor.ledger.state import State
from compactor.ops.redrive.scan import find_redrivable


@dataclass(frozen=True, slots=True)
class LostRange:
    """A quarantined gap."""

    manifest_id: str  # the manifest that quarantined it
    uri: str  # the gap
    offsets: int  # how many it has; 0 of a stream, whose sequence numbers tell no count
    detail: str  # why it was quarantined


@dataclass(frozen=True, slots=True)
class NotLost:
    """What is not accepted."""

    manifest_id: str  # the manifest
    uri: str  # the gap; empty for a whole manifest
    why: str  # why it is not


@dataclass(slots=True)
class Losses:
    """What can be accepted, or was. With `--dry-run` nothing is written."""

    lost: list[LostRange] = field(default_factory=list)  # gaps whose loss was accepted
    refused: list[NotLost] = field(default_factory=list)  # what is not accepted
    why: str = ""  # why the records are not expected any more
    dry_run: bool = False  # whether nothing was written


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptor:
    """Accepts losses. Files are no matter of it: a file may come back, and is redriven then.

    Attributes:
        by: Who accepts.
    """

    state: State
    by: str

    def find(self, manifest_ids: Sequence[str] = (), *, date: str | None = None) -> Losses:
        """Find quarantined gaps that are not settled, of some manifests or of all. Writes nothing.

        Args:
            manifest_ids: The manifests; all if empty.
            date: Their date; None for any.
        """
        scan, found = find_redrivable(self.state, Scope("files", tuple(manifest_ids), date=date)), Losses()
        found.refused += [NotLost(each.manifest_id, "", each.why) for each in scan.refused]
        for source in scan.sources:
            outcome = self.state.ledger.outcome(source.key)
            if isinstance(outcome, Commit):
                uris = {each.uri for each in source.files if is_log(each.uri)}
                found.lost += [
                    LostRange(outcome.manifest_id, report.uri, LogGap.parse(report.uri).offsets, report.detail)
                    for report in outcome.files
                    if report.uri in uris
                ]
        return found

    def accept(self, losses: Losses, why: str) -> None:
        """Put on record that these are accepted; what was accepted meanwhile stays as it is."""
        for each in losses.lost:
            give_up(self.state, each.manifest_id, each.uri, "accepted", why, by=self.by)
