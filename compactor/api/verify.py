"""Verifies a destination: every line is where the ledger says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date as Date  # noqa: N812 - `date` is an argument
from typing import Self

from compactor.api.arguments import Place, day_of, manifest_id_fault, settings_of
from compactor.api.display import StepDisplay, VerifyProgress
from compactor.api.progress import Progress, ProgressDisplay
from compactor.core.errors import CompactorError, RecordUnreadable, SettingsError
from compactor.core.layout import ManifestKey
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ops.verify.report import DeadLetterManifest, Discrepancy, ExpiredFiles, VerifiedTable, VerifyReport
from compactor.settings.settings import Settings
from compactor.wiring.job.app import App


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What a verification has found. All figures but those in bytes are counts.

    `rows + rejected_lines + blank_lines + erased_lines == lines`, or a discrepancy names the file or the manifest.

    Attributes:
        complete: Whether nothing is unfinished, no person has to act, and the table was compared, if there is one.
        needs_operator: Whether there is a discrepancy, a dead letter or a quarantined file that is not
            settled; `compactor verify` ends with exit code 3.
        manifests: Committed manifests.
        dead_letters: Manifests that are dead letters.
        unfinished: Manifests on record that are not done yet.
        closed_dates: Dates of which the summary was read in place of the records.
        retired_dates: Dates that `compactor retire` took, if everything was verified.
        expiring: Records of what expired whose deletion is not finished, if everything was verified.
        input_files: Input files: versions of files of which each line is a row, a reject or blank.
        files_by_status: Files of the committed manifests by the result for each; one that was quarantined and redriven
            counts again.
        quarantined_by_status: Those of them that were quarantined, settled or not.
        lines: Lines of all files that could be read to their end.
        rows: Rows on record; those of the files in `output_files_verified` were counted in their footers.
        rejected_lines: Lines that are in the rejects, or only counted there.
        unkept_rejects: Rejected lines that are only counted; their bytes are in the input file alone.
        blank_lines: Lines without anything but white space.
        tombstones: Blank lines that stand for records of topics without a value.
        absent_offsets: Blank lines that stand for offsets of topics without a committed record.
        further_lines: Lines of values of topics beside their first ones, where values are lines.
        erased_lines: Lines whose row or reject was erased on request. No other figure has them.
        rejects_by_reason: Rejected lines by reason.
        rescued_values: Values in `_rescued_data`, because they do not fit the type of their column.
        misfits: The same by column, as far as it is on record.
        output_files: Parquet files of rows.
        output_bytes: Their size in bytes.
        output_files_verified: Those whose footers were read, and have the rows and the size on record.
        output_files_missing: Those that are gone, without a rule of retention.
        output_files_summed: Those of closed dates, of which summaries were read in place of footers.
        orphans: Files that attempts wrote in place in the output, and that no commit names: no table lists them.
        orphaned_bytes: Their size in bytes.
        inputs_compared: With `deep`, inputs of which every value was compared.
        inputs_gone: With `deep`, inputs that are deleted or replaced since, so that they could not be compared.
        inputs_erased: With `deep`, inputs that were not compared: lines of their manifests were erased on request.
        open_quarantined_files: Quarantined files that need a person: not settled.
        open_dead_letters: Dead letters that need a person: not settled.
        expired: Files on record that are gone under a rule of retention, by date, part and rule.
        discrepancies: Differences between the ledger and what is stored.
        quarantined_files: Input files that could not be read, settled or not (`is_settled`).
        dead_letter_manifests: The dead letters, settled or not (`is_settled`).
        table: The table that lists the output, with what waits for it; None without one. Its `error` says why it could
            not be compared.
    """

    complete: bool
    needs_operator: bool
    manifests: int
    dead_letters: int
    unfinished: int
    closed_dates: int
    retired_dates: int
    expiring: int
    input_files: int
    files_by_status: Mapping[str, int]
    quarantined_by_status: Mapping[str, int]
    lines: int
    rows: int
    rejected_lines: int
    unkept_rejects: int
    blank_lines: int
    tombstones: int
    absent_offsets: int
    further_lines: int
    erased_lines: int
    rejects_by_reason: Mapping[str, int]
    rescued_values: int
    misfits: Mapping[str, int]
    output_files: int
    output_bytes: int
    output_files_verified: int
    output_files_missing: int
    output_files_summed: int
    orphans: int
    orphaned_bytes: int
    inputs_compared: int
    inputs_gone: int
    inputs_erased: int
    open_quarantined_files: int
    open_dead_letters: int
    expired: tuple[ExpiredFiles, ...]
    discrepancies: tuple[Discrepancy, ...]
    quarantined_files: tuple[QuarantinedFile, ...]
    dead_letter_manifests: tuple[DeadLetterManifest, ...]
    table: VerifiedTable | None = None

    @classmethod
    def of(cls, report: VerifyReport) -> Self:
        """The result of a report."""
        return cls(
            complete=not (report.needs_operator or report.unfinished or report.table_error),
            needs_operator=report.needs_operator,
            manifests=report.manifests,
            dead_letters=report.dead_letters,
            unfinished=report.unfinished,
            closed_dates=report.closed_dates,
            retired_dates=report.retired_dates,
            expiring=report.expiring,
            input_files=report.input_files,
            files_by_status={str(status): number for status, number in report.files_by_status.items()},
            quarantined_by_status={str(status): number for status, number in report.quarantined_by_status.items()},
            lines=report.lines,
            rows=report.rows,
            rejected_lines=report.rejected_lines,
            unkept_rejects=report.unkept_rejects,
            blank_lines=report.blank_lines,
            tombstones=report.tombstones,
            absent_offsets=report.absent_offsets,
            further_lines=report.further_lines,
            erased_lines=report.erased_lines,
            rejects_by_reason=dict(report.rejects_by_reason),
            rescued_values=report.rescued_values,
            misfits=dict(report.misfits),
            output_files=report.output_files,
            output_bytes=report.output_bytes,
            output_files_verified=report.output_files_verified,
            output_files_missing=report.output_files_missing,
            output_files_summed=report.output_files_summed,
            orphans=report.orphans,
            orphaned_bytes=report.orphaned_bytes,
            inputs_compared=report.inputs_compared,
            inputs_gone=report.inputs_gone,
            inputs_erased=report.inputs_erased,
            open_quarantined_files=len(report.open_files),
            open_dead_letters=len(report.open_letters),
            expired=tuple(report.expired),
            discrepancies=tuple(report.discrepancies),
            quarantined_files=tuple(report.quarantined_files),
            dead_letter_manifests=tuple(report.dead_letter_manifests),
            table=report.table,
        )


def verify(
    dst: Place,
    *,
    manifest_id: str | None = None,
    date: str | Date | None = None,
    deep: bool = False,
    closed: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> VerifyResult:
    """Prove that every line is where the ledger says, as `compactor verify` does.

    Writes nothing. It counts the rows in the footers of all output files, so that its time grows with their number.
    Without a manifest and a day, closed dates are taken from their summaries.

    Args:
        dst: DST of `compact`, the place of its state, or a settings file.
        manifest_id: Verify this manifest alone.
        date: Verify the manifests of this day alone: `yyyy-mm-dd` or a `datetime.date`. Not with a manifest.
        deep: Also read the inputs again and compare every value, those of closed dates included. It takes about as
            long as to compact them; without the native engine, many times longer.
        closed: Also verify closed dates again, by their records.
        progress: Called as each manifest was verified.

    Returns:
        The figures. What does not add up is in the result and is no error.

    Raises:
        SettingsError: There are no settings at `dst`, or the other arguments are wrong.
        AccessError: Something may not be read.
        StoreUnavailable: The store fails; call it again.
        CompactorError: The manifest has no attempt yet, or there is no record of it.
    """
    settings, day = settings_of(dst), day_of(date)
    display = ProgressDisplay(progress)
    return VerifyResult.of(
        verify_report(settings, display.step, manifest_id=manifest_id, day=day, deep=deep, closed=closed),
    )


def verify_report(
    settings: Settings,
    step: StepDisplay,
    *,
    manifest_id: str | None,
    day: str | None,
    deep: bool,
    closed: bool = False,
) -> VerifyReport:
    """Verify one manifest, one day, or everything.

    Args:
        settings: Name the places.
        step: Shows how far it has come.
        manifest_id: The manifest.
        day: As `yyyy-mm-dd`.
        deep: Whether to compare every value.
        closed: Whether to read the records of closed dates, too.

    Raises:
        SettingsError: A manifest and a day are given, or what is no id of a manifest.
        CompactorError: The manifest has no attempt yet, or there is no record of it.
    """
    if manifest_id is not None and (fault := manifest_id_fault(manifest_id)):
        raise SettingsError([fault])
    if manifest_id is not None and day is not None:
        raise SettingsError(["give a manifest id or --date, not both"])
    app = App(settings)
    with step("verifying") as show:
        shown = VerifyProgress(show)
        verifier = app.verifier(deep=deep, on_manifest=shown.on_manifest, compared=shown)
        if manifest_id is not None:
            return verifier.verify_manifest(_found(app, manifest_id))
        return verifier.verify_date(day) if day is not None else verifier.verify_all(closed=closed)


def _found(app: App, manifest_id: str) -> ManifestKey:
    try:
        record = app.ledger.accepted(manifest_id)
    except RecordUnreadable:
        record = None
    waits = app.store.stat(app.layout.manifest(manifest_id)) is not None
    if record is not None and not (waits and not app.ledger.record_names(record.key)):
        return record.key
    for found in app.ledger.manifests():  # only the record of its acceptance may be missing
        if found.id == manifest_id:
            return found
    state = "it waits for its first attempt" if waits else f"{app.layout.state} has no record of it"
    raise CompactorError(f"manifest {manifest_id}: {state}; expected one with an attempt")
