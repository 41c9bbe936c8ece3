"""`compactor verify`: proves that every line is where the ledger says."""

from collections.abc import Iterable
from typing import Any

import click
from rich.console import Console

from compactor.app import App
from compactor.audit import Auditor, AuditReport
from compactor.cli.failures import ExitCode
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.output import by_name, count, print_fields, print_json, shallow, size
from compactor.cli.plan import date_option
from compactor.deep_audit import DeepAuditor
from compactor.errors import CompactorError
from compactor.inspection import Limits

SHOWN_DISCREPANCIES = 20


@click.command("verify")
@click.argument("manifest_id", required=False)
@date_option
@click.option("--deep", is_flag=True, help="Read the inputs again and compare every value. Takes long.")
@json_option
@body
def verify(invocation: Invocation, *, manifest_id: str | None, day: str | None, deep: bool, as_json: bool) -> ExitCode:
    """Prove that every line is where the ledger says.

    Looks at one manifest, one day, or everything.

    Rows are counted from the footers of the output files, and set against lines, rejects and blank lines on record.
    """
    if manifest_id is not None and day is not None:
        raise click.UsageError("give a manifest id or --date, not both")
    app = App(invocation.settings())
    manifests = app.ledger.manifests(day) if manifest_id is None else [_found(app, manifest_id)]
    report = _audited(app, manifests, whole_days=manifest_id is None, deep=deep)
    if as_json:
        print_json(_document(report, deep=deep))
    else:
        _show(report, deep=deep)
    return ExitCode.NEEDS_OPERATOR if report.needs_operator else ExitCode.DONE


def _found(app: App, manifest_id: str) -> tuple[str, str]:
    record = app.ledger.accepted(manifest_id)
    if record is None:
        waits = app.store.stat(app.layout.manifest(manifest_id)) is not None
        found = "it is waiting, nothing was done yet" if waits else f"there is none on record in {app.layout.state}"
        raise CompactorError(f"manifest {manifest_id}: {found}; expected one that was begun")
    return record.date, manifest_id


def _audited(app: App, manifests: Iterable[tuple[str, str]], *, whole_days: bool, deep: bool) -> AuditReport:
    auditor = Auditor(app.store, app.layout, app.ledger, app.registry)
    rules = app.settings.input
    limits = Limits(max_line_bytes=rules.max_line_bytes, max_decompressed_bytes=rules.max_decompressed_bytes)
    deep_check = DeepAuditor(app.store, app.registry, limits).check if deep else None
    checked = 0
    # On anything but a terminal it shows nothing.
    with Console(stderr=True).status("verifying") as progress:

        def on_manifest(_manifest_id: str) -> None:
            nonlocal checked
            checked += 1
            progress.update(f"verified {count(checked, 'manifest')}")

        return auditor.audit(manifests, whole_days=whole_days, deep_check=deep_check, on_manifest=on_manifest)


def _document(report: AuditReport, *, deep: bool) -> dict[str, Any]:
    return {**shallow(report), "deep": deep, "needs_operator": report.needs_operator}


def _show(report: AuditReport, *, deep: bool) -> None:
    accounted = report.rows + report.rejected_lines + report.blank_lines
    sign = "=" if accounted == report.lines else "is not"
    sums = f"{report.rows:,} rows + {report.rejected_lines:,} rejects + {report.blank_lines:,} blank"
    fields = [
        ("manifests", f"{report.manifests:,} committed, {report.dead_letters:,} dead letters"),
        ("not done", f"{report.unfinished:,}"),
        ("input files", f"{report.files:,}" + _in_brackets(by_name(report.files_by_status))),
        ("lines", f"{report.lines:,} {sign} {sums}"),
        ("rejects", by_name(report.rejects_by_reason) or "none"),
        ("output files", f"{report.output_files:,} ({size(report.output_bytes)})"),
    ]
    if deep:
        fields.append(("compared", f"every value of {count(report.inputs_compared, 'input file')}"))
        if report.inputs_gone:
            fields.append(("", f"{count(report.inputs_gone, 'input file')} gone or replaced by now, not compared"))
    fields.append(("discrepancies", f"{len(report.discrepancies):,}" if report.discrepancies else "none"))
    print_fields(fields)
    for each in report.discrepancies[:SHOWN_DISCREPANCIES]:
        of = f" (manifest {each.manifest_id})" if each.manifest_id else ""
        click.echo(f"\n  {each.where}{of}\n    expected  {each.expected}\n    found     {each.found}")
    if len(report.discrepancies) > SHOWN_DISCREPANCIES:
        click.echo(f"\n  and {len(report.discrepancies) - SHOWN_DISCREPANCIES:,} more; --json shows all")


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""
