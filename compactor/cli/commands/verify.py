"""`compactor verify`: proves that every line is accounted for."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import click

from compactor.api.verify import verified
from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import date_option, destination_argument, manifest_option
from compactor.cli.ui.failures import ExitCode, say
from compactor.cli.ui.output import (
    Field,
    first_of,
    of_streams,
    print_fields,
    print_json,
    print_result,
    print_table,
    show_list,
)
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo
from compactor.cli.ui.words import (
    counted_words,
    misfit_fields,
    quarantined_words,
    show_steps,
    unfinished,
    verified_steps,
)
from compactor.core.text.formatting import by_name, count, size, tally
from compactor.core.text.safe_text import Suggestions, quoted
from compactor.ops.verify.report import Discrepancy, VerifiedTable, VerifyResult, result_of
from compactor.settings.settings import Settings
from compactor.table.standing import held_count_words, waiting_words

_PARTS = {
    "rows": "output file",
    "rejects": "rejects file",
    "archive": "archived manifest",
    "redriven": "file of redriven lines",
}


@click.command("verify")
@destination_argument
@manifest_option(multiple=False, about="Verify only this manifest.")
@date_option
@click.option(
    "--deep",
    is_flag=True,
    help="Also read the input, and compare every value.",
)
@click.option("--closed", is_flag=True, help="Also verify closed dates, from their records.")
@reporting(VerifyResult, has_streams=True)
def verify(
    invocation: Invocation, *, manifest_id: str | None, day: str | None, deep: bool, closed: bool, as_json: bool
) -> ExitCode:
    """Prove that every line is accounted for.

    Verifies one manifest, one date, or everything; without --stream, all streams.

    The row counts in the footers of the output files must equal the recorded lines minus rejected and blank ones.
    Uncommitted files and missing or damaged records are discrepancies. So are differences between ledger and table, and
    manifests that have waited too long for the table or are held back.

    Closed dates were verified when `compactor data close` summarised them: only their summaries are read, unless you
    give --date, --deep or --closed.

    Exit codes: 3 if there is a discrepancy, a dead letter or a quarantined file; 1 if the table's catalog does not
    respond, so the table was not compared.
    """
    deployment = invocation.deployment()
    if deployment.streams and manifest_id is None:
        return _verify_streams(deployment.streams, day, deep=deep, closed=closed, as_json=as_json)
    one = deployment.require_one_stream()
    report = verified(one, working, manifest_id=manifest_id, day=day, deep=deep, closed=closed)
    print_result(report, partial(_show, one.suggestions), as_json=as_json)
    return _exit_code([report])


def _verify_streams(
    streams: Sequence[Settings], day: str | None, *, deep: bool, closed: bool, as_json: bool
) -> ExitCode:
    found = {
        each.name: verified(each, working, manifest_id=None, day=day, deep=deep, closed=closed) for each in streams
    }
    if as_json:
        print_json(of_streams(found))
    else:
        show_verifications(found)
    return _exit_code([*found.values()])


def show_verifications(found: Mapping[str, VerifyResult]) -> None:
    """Print each stream's figures, the totals, and where to find the discrepancies."""
    total = result_of(found.values())
    erased: dict[str, Callable[[tuple[str, VerifyResult]], str]] = {}
    if total.erased_lines:
        erased["erased"] = lambda each: f"{each[1].erased_lines:,}"
    print_table(
        {
            "stream": lambda each: each[0],
            "manifests": lambda each: f"{each[1].manifests:,}",
            "files": lambda each: f"{each[1].input_files:,}",
            "lines": lambda each: f"{each[1].lines:,}",
            "rows": lambda each: f"{each[1].rows:,}",
            "rejects": lambda each: f"{each[1].rejected_lines:,}",
            "blank": lambda each: f"{each[1].blank_lines:,}",
            **erased,
            "dead letters": lambda each: f"{each[1].dead_letters:,}",
            "discrepancies": lambda each: f"{len(each[1].discrepancies):,}",
        },
        [*found.items(), ("all", total)],
        names=1,
    )
    for name, each in found.items():
        if each.needs_operator:
            echo(f"compactor verify --stream {quoted(name)} shows what needs attention")


def _exit_code(reports: Sequence[VerifyResult]) -> ExitCode:
    """The exit code, after printing a line for each table that was not compared."""
    tables = [each.table for each in reports if each.table is not None and each.table.error]
    for table in tables:
        say(f"table {table.name}: not compared: {table.error}")
    if any(each.needs_operator for each in reports):
        return ExitCode.NEEDS_OPERATOR
    return ExitCode.FAILED if tables else ExitCode.DONE


def _show(suggest: Suggestions, report: VerifyResult) -> None:
    sign = "=" if report.adds_up else "is not"
    sums = tally(report.rows, report.rejected_lines, report.blank_lines, report.erased_lines)
    unkept = f"; {report.unkept_rejects:,} only counted, too many to keep" if report.unkept_rejects else ""
    fields: list[Field] = [
        (
            "manifests",
            f"{report.manifests:,} committed, {count(report.dead_letters, 'dead letter')}" + _settled(report),
        ),
        ("not done", f"{report.unfinished:,}"),
        *([("closed dates", f"{report.closed_dates:,}, by their summaries")] if report.closed_dates else []),
        *_expired_fields(report),
        ("input files", f"{report.input_files:,}"),
        *([("quarantined", words)] if (words := quarantined_words(report)) else []),
        ("lines", f"{report.lines:,} {sign} {sums}"),
        ("rejects", (by_name(report.rejects_by_reason) or "none") + unkept),
        *misfit_fields(report.misfits),
        ("output files", [f"{report.output_files:,} ({size(report.output_bytes)})", counted_words(report)]),
    ]
    if report.orphans:
        found = f"{count(report.orphans, 'file')} ({size(report.orphaned_bytes)}), in no commit and no table"
        fields.append(("orphans", f"{found}; `compactor data clean` deletes them a day later"))
    if report.table is not None:
        fields.append(("table", _table(report.table)))
    if report.deep:
        fields.append(("compared", f"every value of {count(report.inputs_compared, 'input file')}"))
        if report.inputs_gone:
            fields.append(("", f"{count(report.inputs_gone, 'input file')} deleted or replaced, not compared"))
        if report.inputs_erased:
            fields.append(
                ("", f"{count(report.inputs_erased, 'input file')} in manifests with erased lines, not compared")
            )
    ended = Counter(each.ended for each in report.quarantined_files if each.is_settled)
    if ended:
        fields.append(("settled files", by_name(ended)))
    fields.append(("discrepancies", f"{len(report.discrepancies):,}" if report.discrepancies else "none"))
    print_fields(fields)
    show_list([_shown(each) for each in report.discrepancies], spaced=True)
    letters = [(f"{each.manifest_id}: {each.reason}", each.message) for each in report.open_letters]
    show_list(letters, title="dead letters", spaced=True)
    files = [(f"{each.uri}: {each.status} (manifest {each.manifest_id})", each.detail) for each in report.open_files]
    show_list(files, title="quarantined files", spaced=True)
    show_steps(verified_steps(report, suggest))


def _table(table: VerifiedTable) -> list[str]:
    """The table's contents, and what waits for it."""
    batch = f"up to batch {table.last_batch:,}" if table.last_batch else "no batch yet"
    listed = f"{count(table.files, 'file')} with {count(table.rows, 'row')}, {batch}"
    return [
        f"{table.name}: {'not compared' if table.error else listed}",
        waiting_words(table.waiting, table.waiting_seconds),
        *([held_count_words(table.held)] if table.held else []),
    ]


def _expired_fields(report: VerifyResult) -> list[Field]:
    """Data removed by retention rules, and lost data that was given up."""
    names: dict[bool, list[str]] = {False: [], True: []}
    for each in report.expired:
        names[each.dismissed].append(f"{count(each.files, _PARTS[each.part])} of {each.date} {each.why}")
    expired, lost = map(first_of, names.values())
    expired += [unfinished(report.expiring)] if report.expiring else []
    dates = f"{report.expired_dates:,}" if report.expired_dates else ""
    fields: list[Field] = [("expired dates", dates), ("expired", expired), ("lost", lost)]
    return [each for each in fields if each[1]]


def _settled(report: VerifyResult) -> str:
    """How many dead letters are settled."""
    ended = Counter(each.ended for each in report.dead_letter_manifests if each.is_settled)
    return f" ({by_name(ended)})" if ended else ""


def _shown(each: Discrepancy) -> tuple[str, ...]:
    of = f" (manifest {each.manifest_id})" if each.manifest_id else ""
    return f"{each.where}{of}", f"expected  {each.expected}", f"found     {each.found}"
