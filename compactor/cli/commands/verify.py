"""`compactor verify`: proves that every line is where the ledger says."""

from collections.abc import Sequence

import click

from compactor.cli.commands.plan import date_option
from compactor.cli.destination import taken_destination
from compactor.cli.failures import ExitCode
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.ui.misfits import misfit_fields
from compactor.cli.ui.output import Field, print_fields, print_json, shallow
from compactor.cli.ui.terminal import echo
from compactor.cli.ui.waiting import counter, waiting
from compactor.core.errors import CompactorError, RecordUnreadable
from compactor.core.formatting import by_name, count, fates, size
from compactor.core.layout import MANIFEST_ID
from compactor.core.manifest_key import ManifestKey
from compactor.ops.verify.report import Discrepancy, VerifyReport
from compactor.wiring.app import App

SHOWN = 20  # of each list; --json shows all


def manifest_id_type(value: str) -> str:
    """The value, if it can be the id of a manifest; a type for click."""
    if not MANIFEST_ID.fullmatch(value):
        form = "1 to 200 letters, digits, '.', '_' or '-', the first a letter or digit"
        raise click.BadParameter(f"{value!r} is not a manifest id; expected {form}")
    return value


@click.command("verify")
@click.argument("words", nargs=-1, metavar="[DST] [MANIFEST_ID]")
@date_option
@click.option("--deep", is_flag=True, help="Read the inputs again and compare every value. Slow.")
@json_option
@body
def verify(invocation: Invocation, *, words: tuple[str, ...], day: str | None, deep: bool, as_json: bool) -> ExitCode:
    """Prove that every line is where the ledger says.

    Verifies one manifest, one date, or everything.

    The rows in the footers of the output files must equal the lines on record, without rejected and blank lines. Files
    that no commit names and records that are missing or damaged are discrepancies, too.

    Exit codes: 3 if there is a discrepancy, a dead letter or a quarantined file.
    """
    invocation, ids = taken_destination(invocation, words, most=1)
    manifest_id = manifest_id_type(ids[0]) if ids else None
    if manifest_id is not None and day is not None:
        raise click.UsageError("give a manifest id or --date, not both")
    app = App(invocation.settings())
    report = _verified(app, manifest_id, day, deep=deep)
    if as_json:
        print_json({**shallow(report), "deep": deep, "needs_operator": report.needs_operator})
    else:
        _show(report, deep=deep)
    return ExitCode.NEEDS_OPERATOR if report.needs_operator else ExitCode.DONE


def _verified(app: App, manifest_id: str | None, day: str | None, *, deep: bool) -> VerifyReport:
    with waiting("verifying") as show_text:
        verifier = app.verifier(deep=deep, on_manifest=counter(show_text))
        if manifest_id is not None:
            return verifier.verify_manifest(_found(app, manifest_id))
        return verifier.verify_date(day) if day is not None else verifier.verify_all()


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


def _show(report: VerifyReport, *, deep: bool) -> None:
    accounted = report.rows + report.rejected_lines + report.blank_lines
    sign = "=" if accounted == report.lines else "is not"
    sums = fates(report.rows, report.rejected_lines, report.blank_lines)
    redriven, statuses = sum(each.redriven for each in report.dead_letter_manifests), by_name(report.files_by_status)
    more = f" ({redriven:,} redriven)" if redriven else ""
    unkept = f"; {report.unkept_rejects:,} only counted, too many to keep" if report.unkept_rejects else ""
    fields: list[Field] = [
        ("manifests", f"{report.manifests:,} committed, {report.dead_letters:,} dead letters" + more),
        ("not done", f"{report.unfinished:,}"),
        ("input files", f"{report.files:,}" + (f" ({statuses})" if statuses else "")),
        ("lines", f"{report.lines:,} {sign} {sums}"),
        ("rejects", (by_name(report.rejects_by_reason) or "none") + unkept),
        *misfit_fields(report.misfits, report.rescued_values),
        ("output files", f"{report.output_files:,} ({size(report.output_bytes)})"),
    ]
    if deep:
        fields.append(("compared", f"every value of {count(report.inputs_compared, 'input file')}"))
        if report.inputs_gone:
            fields.append(("", f"{count(report.inputs_gone, 'input file')} deleted or replaced, not compared"))
    fields.append(("discrepancies", f"{len(report.discrepancies):,}" if report.discrepancies else "none"))
    print_fields(fields)
    _list("", [_shown(each) for each in report.discrepancies])
    letters = [each for each in report.dead_letter_manifests if not each.redriven]
    _list("dead letters", [(f"{each.manifest_id}: {each.reason}", each.message) for each in letters])
    quarantined = [each for each in report.quarantined_files if not each.redriven]
    files = [(f"{each.uri}: {each.status} (manifest {each.manifest_id})", each.detail) for each in quarantined]
    _list("quarantined files", files)


def _shown(each: Discrepancy) -> tuple[str, ...]:
    of = f" (manifest {each.manifest_id})" if each.manifest_id else ""
    return f"{each.where}{of}", f"expected  {each.expected}", f"found     {each.found}"


def _list(title: str, entries: Sequence[tuple[str, ...]]) -> None:
    if entries and title:
        echo("", title)
    for first, *others in entries[:SHOWN]:
        echo("", f"  {first}", *(f"    {each}" for each in others))
    if len(entries) > SHOWN:
        echo("", f"  and {len(entries) - SHOWN:,} more; --json shows all")
