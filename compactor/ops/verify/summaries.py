"""What the summaries of closed dates say to a verification, with what has happened since."""

from dataclasses import replace

from compactor.core.closed_dates import ManifestSums, OpenFile, added
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State
from compactor.ledger.unsummarised import Unsummarised
from compactor.ops.redrive.quarantined_file import QuarantinedFile, settled
from compactor.ops.verify.doubled import doubled_versions
from compactor.ops.verify.ledger_records import is_redriven
from compactor.ops.verify.report import DeadLetterManifest, VerifyReport, sums_of


def summarised_report(state: State, found: Unsummarised) -> VerifyReport:
    """The sums of the summaries, less what was rebuilt since, and what of them still waits for a person."""
    totals, rebuilt = found.totals, {key.id for key, _ in found.superseded}
    report = VerifyReport(closed_dates=len(totals.dates))
    report.add_sums(totals.sums)
    for sums in map_ordered(lambda each: sums_of(state.ledger.outcome_of(*each)), found.superseded):
        report.add_sums(added(ManifestSums(), sums, sign=-1))
    redriven = map_ordered(lambda letter: is_redriven(state, letter.manifest_id), totals.letters)
    report.dead_letter_manifests += [
        DeadLetterManifest(each.manifest_id, each.reason, each.message, is_one)
        for each, is_one in zip(totals.letters, redriven, strict=True)
    ]
    files = [quarantined_file(each) for each in totals.quarantined if each.manifest_id not in rebuilt]
    checked = settled(state, files, found.keys)
    report.quarantined_files += [replace(each, redriven=bool(each.redriven)) for each in checked]
    doubled = map_ordered(lambda each: doubled_versions(state, *each.keys), totals.doubled)
    report.discrepancies += [each for each in doubled if each is not None]
    return report


def quarantined_file(file: OpenFile) -> QuarantinedFile:
    """A quarantined file of a summary, before anything is read of what settled it since."""
    return QuarantinedFile(
        file.manifest_id, file.uri, file.status, file.detail, file.committed_at, None, file.started_at
    )
