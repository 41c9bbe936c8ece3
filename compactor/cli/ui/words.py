"""Texts shared by several commands: verified figures, expired data, tables, topics and streams."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from compactor.cli.ui.output import Field
from compactor.cli.ui.terminal import echo
from compactor.core.documents.changes import Why
from compactor.core.rules.next_steps import letter_steps, lost_steps, quarantined_steps
from compactor.core.text.formatting import by_name, count
from compactor.core.text.safe_text import Suggestions
from compactor.ledger.landing.progress import LogSeen
from compactor.ledger.visible import ExpiredKind, ExpiredSeen
from compactor.ops.verify.report import Discrepancy, VerifyResult
from compactor.table.standing import TableSeen

_SHOWN_COLUMNS = 5
_OF: Mapping[Why, str] = {
    Why.DATE: "whole dates",
    Why.ARCHIVE: "archive",
    Why.REDRIVEN: "redriven lines",
    Why.REJECTS: "rejects",
}


def expired_lines(seen: ExpiredSeen) -> list[str]:
    """A line per kind of rule, and one for unfinished deletions."""
    lines = [_of_kind(each) for each in seen.kinds]
    return [*lines, unfinished(seen.expiring)] if seen.expiring else lines


def unfinished(expiring: int) -> str:
    """Unfinished deletions, and the command that finishes them."""
    return f"{count(expiring, 'deletion')} not finished; `compactor data clean` or `data expire` finishes them"


def _of_kind(each: ExpiredKind) -> str:
    span = each.first_date if each.dates == 1 else f"{each.first_date} to {each.last_date}"
    when = f"{'on' if each.dates == 1 else 'last on'} {each.recorded_at:%Y-%m-%d}"
    return f"{_OF[each.kind]}: {count(each.dates, 'date')} ({span}), {when}"


def log_lines(logs: Iterable[LogSeen]) -> list[str]:
    """A line per topic and stream, and why landings failed."""
    return [f"{log.name}: {words}" for log in logs for words in (log.words, log.error) if words]


def misfit_fields(misfits: Mapping[str, int]) -> list[Field]:
    """The misfits field, by column; none if all values fit."""
    values = sum(misfits.values())
    return (
        [("misfits", [f"{count(values, 'value')} of a different type, kept in _rescued_data", by_column(misfits)])]
        if values
        else []
    )


def by_column(misfits: Mapping[str, int]) -> str:
    """The columns with most misfits, as in `12 price, 3 qty and 2 more columns`."""
    most = sorted(misfits, key=lambda name: (-misfits[name], name))[:_SHOWN_COLUMNS]
    more = len(misfits) - len(most)
    return by_name({name: misfits[name] for name in most}) + (f" and {count(more, 'more column')}" if more else "")


def verified_steps(report: VerifyResult, suggest: Suggestions) -> list[str]:
    """What to do about dead letters, lost output and quarantined files."""
    letters = [(each.reason, each.manifest_id) for each in report.open_letters]
    return [
        *letter_steps(letters, suggest),
        *lost_steps(report.lost_manifests, suggest),
        *quarantined_steps(report.open_causes, suggest, [each.uri for each in report.open_files]),
    ]


def show_steps(steps: Iterable[str]) -> None:
    """Print next actions, one a line, below an empty line."""
    if lines := [f"next        {step}" for step in steps]:
        echo("", *lines)


def show_reading(lines: Sequence[str]) -> None:
    """Print a line per tool."""
    if lines:
        echo("", *(f"{'' if number else 'read it':12}{line}" for number, line in enumerate(lines)))


def table_lines(table: TableSeen, now: datetime) -> list[str]:
    """The last batch, waiting and held-back manifests, and why commits fail."""
    head = f"{table.name}: {table.last_words(now)}"
    return [head, table.words, *(each for each in (table.held_words, table.error) if each)]


def discrepancy_entries(found: Iterable[Discrepancy]) -> list[tuple[str, ...]]:
    """Discrepancies, in two lines each."""
    return [(each.where, f"expected {each.expected}, found {each.found}") for each in found]


def counted_words(report: VerifyResult) -> str:
    """How many output files had their rows counted, and how many are missing."""
    files, verified = report.output_files, report.output_files_verified
    gone = [each for each in report.expired if each.part == "rows"]
    expired, dismissed = (sum(each.files for each in gone if each.dismissed is kind) for kind in (False, True))
    others = {
        "missing": report.output_files_missing,
        "expired": expired,
        "lost and dismissed": dismissed,
        "of closed dates, by their summaries": report.output_files_summed,
    }
    others["not as recorded"] = files - verified - sum(others.values())
    parts = [f"{number:,} {what}" for what, number in others.items() if number]
    if not parts:
        return f"counted in the footers of {count(files, 'output file')}"
    return f"counted in the footers of {verified:,} of {count(files, 'output file')} ({', '.join(parts)})"


def quarantined_words(report: VerifyResult) -> str:
    """How many files need an operator, and how many were ever quarantined; empty if none was."""
    replaced = Counter(each.status for each in report.quarantined_files if each.status == "replaced")
    by_status = Counter(report.quarantined_by_status) + replaced
    ever = by_status.total()
    if not ever:
        return ""
    waiting = f"{len(report.open_files):,} need{'s' if len(report.open_files) == 1 else ''} attention"
    return f"{waiting}; {ever:,} in total, settled or not ({by_name(by_status)})"
