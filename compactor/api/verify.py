"""Verifies a destination: every line is where the ledger expects it."""

from collections.abc import Callable
from datetime import date as Date  # noqa: N812 - `date` is an argument

from compactor.api.arguments import Place, day_of, manifest_id_fault, settings_of
from compactor.api.progress import Progress, ProgressDisplay, StepDisplay
from compactor.core.errors import CompactorError, RecordUnreadable, SettingsError
from compactor.core.layout import ManifestKey
from compactor.ops.verify.report import VerifyResult
from compactor.settings.settings import Settings
from compactor.wiring import operating
from compactor.wiring.app import App


def verify(
    dst: Place,
    *,
    manifest_id: str | None = None,
    date: str | Date | None = None,
    deep: bool = False,
    closed: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> VerifyResult:
    """Prove that every line is where the ledger expects it, as `compactor verify` does.

    Writes nothing. It counts the rows in the footers of all output files, so its time grows with their number. Without
    a manifest and a day, closed dates are verified from their summaries.

    Args:
        dst: DST of `compact`, the place of its state, or a settings file.
        manifest_id: Verify only this manifest.
        date: Verify only the manifests of this day: `yyyy-mm-dd` or a `datetime.date`. Not with a manifest.
        deep: Also read the inputs and compare every value, including closed dates. It takes about as long as
            compaction; without the native engine, many times longer.
        closed: Also verify closed dates from their records.
        progress: Called up to ten times a second.

    Returns:
        The figures. Discrepancies are in the result; they are not errors.

    Raises:
        SettingsError: There are no settings at `dst`, or the other arguments are wrong.
        AccessError: Something may not be read.
        StoreUnavailable: The store fails; repeat the call.
        CompactorError: The manifest has no attempt yet, or no record.
    """
    settings, day = settings_of(dst), day_of(date)
    display = ProgressDisplay(progress)
    return verified(settings, display.step, manifest_id=manifest_id, day=day, deep=deep, closed=closed)


def verified(
    settings: Settings,
    step: StepDisplay,
    *,
    manifest_id: str | None,
    day: str | None,
    deep: bool,
    closed: bool = False,
) -> VerifyResult:
    """Verify one manifest, one day, or everything.

    Raises:
        SettingsError: Both a manifest and a day are given, or the manifest id is invalid.
        CompactorError: The manifest has no attempt yet, or no record.
    """
    if manifest_id is not None and (fault := manifest_id_fault(manifest_id)):
        raise SettingsError([fault])
    if manifest_id is not None and day is not None:
        raise SettingsError(["give a manifest id or --date, not both"])
    app = App(settings)
    with step("verifying", app.state.meter):
        verifier = operating.verifier(app, deep=deep)
        if manifest_id is not None:
            return verifier.verify_manifests([_found(app, manifest_id)])
        return verifier.verify_date(day) if day is not None else verifier.verify_all(closed=closed)


def _found(app: App, manifest_id: str) -> ManifestKey:
    try:
        record = app.ledger.accepted(manifest_id)
    except RecordUnreadable:
        record = None
    waits = app.store.stat(app.layout.manifest(manifest_id)) is not None
    if record is not None and not (waits and not app.ledger.record_names(record.key)):
        return record.key
    for found in app.ledger.manifests():  # only its acceptance record may be missing
        if found.id == manifest_id:
            return found
    state = "it waits for its first attempt" if waits else f"{app.layout.state} has no record of it"
    raise CompactorError(f"manifest {manifest_id}: {state}; expected one with an attempt")
