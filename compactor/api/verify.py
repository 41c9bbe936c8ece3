"""Verifies a destination: every line is where the ledger says."""

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
        progress: Called up to ten times a second.

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
    for found in app.ledger.manifests():  # only the record of its acceptance may be missing
        if found.id == manifest_id:
            return found
    state = "it waits for its first attempt" if waits else f"{app.layout.state} has no record of it"
    raise CompactorError(f"manifest {manifest_id}: {state}; expected one with an attempt")
