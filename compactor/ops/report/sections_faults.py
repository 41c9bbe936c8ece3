"""The sections about what was set aside: lines, manifests, files. HTML, no I/O; names and lines are anybody's."""

from compactor.core.formatting import by_name, count, percent, size
from compactor.core.manifest import REASONS as DEAD_LETTER_REASONS
from compactor.ndjson.inspection import REASONS as REJECT_REASONS
from compactor.ops.report.bar_charts import NamedBar, bars_chart
from compactor.ops.report.figures import SHOWN_BYTES, DeadLetterLine, Figures, QuarantinedFile, RejectReason, Sample
from compactor.ops.report.frame import in_both_sizes
from compactor.ops.report.markup import Markup, element, joined
from compactor.ops.report.parts import Table, beside, entries, folded_table, moment, prose, section, state
from compactor.ops.report.report import Report

CHARTED_REASONS = 10


def rejects(report: Report) -> Markup:
    """Rejected lines by reason, with samples."""
    found, totals = report.figures.rejects, report.figures.totals
    if not found:
        read = count(totals.lines - totals.blank_lines, "line")
        return section("rejects", "Rejected lines", prose(f"None: all of the {read} that were read became rows."))
    words = (
        f"{count(totals.rejected_lines, 'line')} of {totals.lines - totals.blank_lines:,} "
        f"({percent(totals.rejected_lines, totals.lines - totals.blank_lines)}) were rejected, most often as "
        f"{found[0].reason}. They are kept byte for byte; `compactor redrive rejects` puts back what can be read now."
    )
    bars = [NamedBar(each.reason, each.lines, f"{each.lines:,}") for each in found[:CHARTED_REASONS]]
    rest = found[CHARTED_REASONS:]
    if rest:
        lines = sum(each.lines for each in rest)
        bars.append(NamedBar(f"{count(len(rest), 'other reason')}", lines, f"{lines:,}"))
    chart = in_both_sizes(lambda canvas: bars_chart(canvas, "rejects", "Rejected lines by reason", words, bars))
    rows = [(each.reason, _meaning(each.reason), f"{each.lines:,}", f"{each.manifests:,}") for each in found]
    table = Table("rejects", "Rejected lines by reason", ("reason", "meaning", "lines", "manifests"), rows, words=2)
    return section(
        "rejects", "Rejected lines", beside(prose(words), chart, joined([folded_table(table), _samples(report)]))
    )


def _meaning(reason: str) -> str:
    return REJECT_REASONS.get(reason, "")


def _samples(report: Report) -> Markup:
    if not report.has_samples:
        return element("p", "Samples of the lines were left out.", class_="muted")
    with_some = [each for each in report.figures.rejects if each.samples]
    if not with_some:
        return element("p", "The files of rejects could not be read, so there are no samples.", class_="muted")
    heading = element("summary", f"Samples: the first {SHOWN_BYTES} bytes of a few of the lines")
    return element("details", heading, *(_samples_of(each) for each in with_some))


def _samples_of(reason: RejectReason) -> Markup:
    lines = element("ul", *(element("li", _sample(each)) for each in reason.samples), class_="entries")
    return joined([element("h3", reason.reason), lines])


def _sample(sample: Sample) -> Markup:
    cut = f", {size(sample.length_bytes)} long" if sample.length_bytes > SHOWN_BYTES else ""
    where = element("p", element("code", sample.source_uri), f", line {sample.line_number:,}{cut}")
    return joined([where, element("code", sample.head, class_="raw")])


def quarantined(report: Report) -> Markup:
    """Dead letters, and files that were set aside whole."""
    found = report.figures
    return section("set-aside", "Set aside", _dead_letters(report), _files(found))


def _dead_letters(report: Report) -> Markup:
    found = report.figures
    kept = f"{count(found.dead_letters_kept, 'dead letter')} of whatever time, put back or not, "
    kept += f"{'is' if found.dead_letters_kept == 1 else 'are'} kept in `failed/` of the state."
    if not found.totals.dead_letters:
        return prose(f"No manifest became a dead letter in this period. {kept}")
    words = (
        f"{count(found.totals.dead_letters, 'dead letter')} in this period: {by_name(found.dead_letters_by_reason)}. "
    )
    items = [_dead_letter(each) for each in found.dead_letters]
    tail = _not_listed(found.older_dead_letters)
    rows = [
        (each.manifest_id, each.reason, moment(each.since), _redriven(each.is_redriven)) for each in found.dead_letters
    ]
    columns = ("manifest", "reason", "since (UTC)", "put back")
    table = Table("dead-letters", "Dead letters, the newest first", columns, rows, words=4)
    return joined([prose(words + kept), entries(items, "dead letters"), tail, folded_table(table)])


def _not_listed(older: int) -> Markup | None:
    verb = "is" if older == 1 else "are"
    return prose(f"{count(older, 'older one')} of the period {verb} not listed here.") if older else None


def _redriven(is_redriven: bool | None) -> str:
    return "not known" if is_redriven is None else "yes" if is_redriven else "no"


def _dead_letter(letter: DeadLetterLine) -> Markup:
    meaning = DEAD_LETTER_REASONS.get(letter.reason, "")
    return joined(
        [
            element("code", letter.manifest_id),
            f" {letter.reason}{': ' + meaning if meaning else ''}, since {moment(letter.since)} UTC, ",
            state(letter.is_redriven),
            element("p", letter.message, class_="muted"),
        ]
    )


def _files(found: Figures) -> Markup:
    statuses = found.totals.quarantined
    if not statuses:
        return prose("No file was set aside whole.")
    words = f"Files that were set aside whole while the rest of their manifest went on: {by_name(statuses)}."
    if statuses.get("changed"):
        words += " A changed file needs nobody: its new version brings its own event."
    items = entries([_file(each) for each in found.quarantined_files], "files")
    return joined([element("h3", "Files"), prose(words), items, _not_listed(found.older_quarantined_files)])


def _file(file: QuarantinedFile) -> Markup:
    return joined(
        [
            element("code", file.uri),
            f" {file.status}, since {moment(file.since)} UTC, ",
            state(file.is_redriven),
            element("p", file.detail, class_="muted") if file.detail else None,
        ]
    )
