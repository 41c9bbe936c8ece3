"""What the summaries of closed dates say to a verification, with what has happened since."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from compactor.core.documents.closed_dates import ManifestSums, added
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.settling import Settling, open_file
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.ledger.history.unsummarised import Found, Unsummarised
from compactor.ledger.state import State
from compactor.ops.verify.doubled import doubled_versions
from compactor.ops.verify.report import DeadLetterManifest, Discrepancy, VerifyReport, sums_of


def superseded_sums(state: State, found: Unsummarised) -> ManifestSums:
    """What the summaries have of manifests that were rebuilt since.

    Raises:
        RecordUnreadable: One of the earlier commits is damaged or gone.
    """
    total = ManifestSums()
    for sums in map_ordered(partial(_earlier_sums, state), found.superseded):
        total = added(total, sums)
    return total


def _earlier_sums(state: State, summarised: Found) -> ManifestSums:
    try:
        return sums_of(state.ledger.outcome_of(*summarised))
    except ObjectNotFound as exc:
        uri = state.layout.outcome(*summarised)
        raise RecordUnreadable(f"{uri}: it is gone; expected the commit that a summary has") from exc


def summarised_report(state: State, found: Unsummarised, superseded: ManifestSums) -> VerifyReport:
    """The sums of the summaries, less what was rebuilt since, and what of them still waits for a person.

    Args:
        state: Has the records.
        found: What is on record.
        superseded: What `superseded_sums` says.
    """
    totals, rebuilt = found.totals, {key.id for key, _ in found.superseded}
    report = VerifyReport(closed_dates=len(totals.dates))
    report.add_sums(totals.sums)
    report.add_sums(added(ManifestSums(), superseded, sign=-1))
    report.output_files_summed = report.output_files
    letters = [
        DeadLetterManifest(each.manifest_id, each.reason, each.message, redriven=False) for each in totals.letters
    ]
    settling = Settling(state, found=found)
    report.dead_letter_manifests += checked_letters(settling, letters)
    files = [open_file(each) for each in totals.quarantined if each.manifest_id not in rebuilt]
    checked = settling.files(files)
    report.quarantined_files += [replace(each, redriven=bool(each.redriven)) for each in checked]
    doubled = map_ordered(lambda each: doubled_versions(state, *each.keys), totals.doubled)
    report.discrepancies += [each for each in doubled if each is not None]
    return report


def faults_of_summaries(state: State) -> list[Discrepancy]:
    """Summaries of closed dates that are damaged or gone: no other date can be closed until they are made again."""
    dates = ClosedDates(state.store, state.layout)

    def fault(place: int) -> Discrepancy | None:
        try:
            dates.check(place)
        except RecordUnreadable as exc:
            return Discrepancy("", state.layout.summary(place), "a whole summary of a closed date", str(exc))
        return None

    return [each for each in map_ordered(fault, dates.places_to_check()) if each is not None]


def checked_letters(settling: Settling, letters: Sequence[DeadLetterManifest]) -> list[DeadLetterManifest]:
    """Dead letters, with what settled each."""
    fates = settling.letters([each.manifest_id for each in letters])
    found = [(each, fates[each.manifest_id]) for each in letters]
    return [replace(each, redriven=bool(fate.redriven), settled_by=fate.settled_by) for each, fate in found]
