"""The screen of `compactor status`, made of values: what to do first, then what it is based on."""

import textwrap
from collections.abc import Iterator
from datetime import datetime

from rich.text import Text

from compactor.cli.output import by_name, count, duration, rate, size
from compactor.records import RecentCommit
from compactor.status.values import Status

LEAST_WIDTH, MOST_WIDTH = 80, 120
_INDENT = 10
_LEAST_COMMITS, _MOST_COMMITS = 3, 10
_LETTERS_SHOWN = 3
_STYLES = {
    "empty": "bold",
    "idle": "bold green",
    "running": "bold green",
    "stopping": "bold yellow",
    "behind": "bold yellow",
    "needs_you": "bold yellow",
    "stopped": "bold red",
    "stuck": "bold red",
}
_COLUMNS = (("ago", 6), ("", 0), ("MB in", 9), ("MB out", 8), ("files", 5), ("rows", 11), ("rejects", 7), ("took", 6))
"""Of the table of commits, with their widths; the manifest, which has no heading here, gets what is left."""


def screen(found: Status, *, width: int = LEAST_WIDTH, height: int = 40, trouble: str = "") -> Text:
    """The whole screen.

    Args:
        found: What it shows.
        width: Of the terminal, in columns; less than 80 is taken for 80.
        height: Of the terminal, in rows; the list of commits is cut to it.
        trouble: Why nothing newer is known, if so.
    """
    width = min(max(width, LEAST_WIDTH), MOST_WIDTH)
    text = _head(found, width)
    for name, lines, style in _fields(found):
        wrapped = [part for line in lines for part in _wrapped(line, width - _INDENT)]
        for number, line in enumerate(wrapped):
            text.append(f"{name if not number else '':{_INDENT}}", style or "dim")
            text.append(f"{line}\n", style)
    if trouble:
        text.append("\n".join([*_wrapped(f"cannot look now: {trouble}", width), ""]), "bold red")
    left = height - len(text.plain.splitlines()) - 3
    if found.recent:
        text.append("\n")
        text.append_text(_commits(found, width, min(max(left, _LEAST_COMMITS), _MOST_COMMITS)))
    text.rstrip()
    return text


def _head(found: Status, width: int) -> Text:
    state, moment = found.state, f"{found.as_of:%Y-%m-%d %H:%M:%S} UTC"
    word = state.word.upper().replace("_", " ")
    text = Text()
    text.append(f"{word:{width - len(moment)}}", _STYLES[state.word])
    text.append(f"{moment}\n", "dim")
    text.append("\n".join([*_wrapped(_sentence(state.reason), width), ""]))
    if state.next_move:
        text.append("\n".join([*_wrapped(f"Next: {state.next_move}", width), ""]), "bold")
    text.append("\n")
    return text


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _fields(found: Status) -> Iterator[tuple[str, list[str], str]]:
    """The name, the lines and the style of each field."""
    letters, files = found.dead_letters, found.files_set_aside
    yield "jobs", _jobs(found), ""
    yield "backlog", _backlog(found), ""
    yield "rates", [_rates(found)], ""
    yield "drained", [_drained(found)], ""
    yield "latency", [_latency(found)], ""
    yield "rejects", [_rejects(found)], ""
    yield "dead", _letters(found), "red" if letters.open else ""
    yield "set aside", _files(found), "red" if files.open else ""
    yield "schema", [_schema(found)], ""
    yield "cost", [_cost(found)], ""


def _jobs(found: Status) -> list[str]:
    if not found.runs:
        last = found.last_sign_at
        return ["none" if last is None else f"none; the last sign of one that did not end: {_ago(last, found)} ago"]
    return [
        f"{run.run_id}, up for {_ago(run.started_at, found)}"
        + (f", asked to end {_ago(run.asked_to_stop_at, found)} ago" if run.asked_to_stop_at else "")
        for run in found.runs
    ]


def _backlog(found: Status) -> list[str]:
    backlog = found.backlog
    if not backlog.manifests:
        first = "nothing waits"
    elif backlog.input_bytes is None:
        first = f"{count(backlog.manifests, 'manifest')} of unknown bytes"
    else:
        about = "about " if backlog.is_extrapolated else ""
        first = f"{count(backlog.manifests, 'manifest')}, {about}{size(backlog.input_bytes)}"
        if backlog.is_extrapolated:
            first += f" (from {backlog.manifests_read:,} of them)"
    if backlog.manifests:
        first += f", the oldest for {duration(backlog.oldest_seconds)}"
    lines = [first]
    if backlog.begun_manifests:
        lines.append(f"{backlog.begun_manifests:,} begun, the first {duration(backlog.oldest_begun_seconds)} ago")
    if backlog.pending_parts:
        parts = count(backlog.pending_parts, "pending part")
        lines.append(f"{parts} of announced files, the oldest for {duration(backlog.oldest_pending_seconds)}")
    return lines


def _rates(found: Status) -> str:
    rates = found.rates
    arriving, processed = (
        rate(each, 1) for each in (rates.arriving_bytes_per_second, rates.processed_bytes_per_second)
    )
    words = f"in {arriving}, out {processed} over the last {duration(rates.window_seconds)}"
    at_work = rates.at_work_bytes_per_second
    return words if at_work is None else f"{words}; {rate(at_work, 1)} at work"


def _drained(found: Status) -> str:
    drain = found.drain
    if drain.seconds is None:
        return drain.reason
    return f"in {duration(drain.seconds)}" if drain.seconds else drain.reason


def _latency(found: Status) -> str:
    latency = found.latency
    if latency is None:
        return "not known yet"
    of = f"{count(latency.files, 'file')} of {count(latency.commits, 'commit')}"
    return f"arrival to visible p50 {duration(latency.p50_seconds)}, p99 {duration(latency.p99_seconds)} ({of})"


def _rejects(found: Status) -> str:
    rejects = found.rejects
    if not rejects.lines:
        return f"none in the latest {count(rejects.commits, 'commit')}" if rejects.commits else "none"
    records = sum(commit.records for commit in found.recent)
    share = rejects.lines / (rejects.lines + records)
    of = f"{count(rejects.lines, 'line')} ({share:.2%}) in the latest {count(rejects.commits, 'commit')}"
    return f"{of}: {by_name(rejects.by_reason)}" if rejects.by_reason else of


def _letters(found: Status) -> list[str]:
    letters = found.dead_letters
    put_back = letters.looked_at - letters.open
    notes = [f"{put_back:,} put back since"] if put_back else []
    if letters.manifests > letters.looked_at:
        notes.append(f"{letters.manifests - letters.looked_at:,} older ones not looked at")
    said = f" ({', '.join(notes)})" if notes else ""
    if not letters.open:
        return [f"none{said}"]
    named = [
        f"{_short(each.manifest_id)}: {each.reason}, {_ago(each.decided_at, found)} ago"
        for each in letters.latest[:_LETTERS_SHOWN]
    ]
    return [f"{count(letters.open, 'manifest')}: {by_name(letters.by_reason)}{said}", *named]


def _files(found: Status) -> list[str]:
    files = found.files_set_aside
    if not files.open:
        return [f"none in the latest {count(files.commits, 'commit')}" if files.commits else "none"]
    of = f"{count(files.open, 'file')} of the latest {count(files.commits, 'commit')}: {by_name(files.by_status)}"
    return [of, *(_short(each.uri, 70) for each in files.latest[:1])]


def _schema(found: Status) -> str:
    schema = found.schema
    words = f"version {schema.version}, {count(schema.columns, 'column')}"
    if schema.newest_column and schema.changed_at:
        words += f"; the newest: {_short(schema.newest_column)}, {_ago(schema.changed_at, found)} ago"
    if found.ratio is not None:
        words += f"; {found.ratio:.3f} Parquet bytes an input byte"
    return words


def _cost(found: Status) -> str:
    cost = found.cost
    if cost.run_dollars is None or cost.day_dollars is None or cost.dollars_per_hour is None:
        return f"none: {cost.reason}" if not cost.reason.startswith("not known") else cost.reason
    words = f"${cost.run_dollars:,.2f} for this run so far ({cost.job}, {duration(cost.run_seconds or 0.0)}), "
    words += f"${cost.day_dollars:,.2f} in 24 h, ${cost.dollars_per_hour:,.2f} an hour"
    return words if cost.dollars_per_terabyte is None else f"{words}, ${cost.dollars_per_terabyte:,.2f} a TB"


def _commits(found: Status, width: int, rows: int) -> Text:
    """The table of the latest commits, the latest first."""
    manifest = width - sum(length for _, length in _COLUMNS) - len(_COLUMNS) + 1
    text = Text()
    text.append(_row(["ago", "latest commits", *(name for name, _ in _COLUMNS[2:])], manifest), "dim")
    for commit in list(reversed(found.recent))[:rows]:
        text.append(_row(_cells(commit, found), manifest))
    return text


def _cells(commit: RecentCommit, found: Status) -> list[str]:
    return [
        _rough((found.as_of - commit.decided_at).total_seconds()),
        commit.manifest_id,
        f"{commit.input_bytes / 1e6:,.1f}",
        f"{commit.output_bytes / 1e6:,.1f}",
        f"{commit.output_files:,}",
        f"{commit.records:,}",
        f"{commit.rejected_lines:,}",
        _rough(commit.seconds),
    ]


def _row(cells: list[str], manifest: int) -> str:
    ago, manifest_id, *others = cells
    lengths = [length for _, length in _COLUMNS[2:]]
    shown = [f"{cell:>{length}}" for cell, length in zip(others, lengths, strict=True)]
    return " ".join([f"{ago:>{_COLUMNS[0][1]}}", f"{_short(manifest_id, manifest):{manifest}}", *shown]) + "\n"


def _rough(seconds: float) -> str:
    """Time in its largest unit, in at most six characters."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{min(int(seconds // length), 999)} {unit}"
    return f"{max(seconds, 0.0):.0f} s"


def _ago(moment: datetime, found: Status) -> str:
    return duration(max(0.0, (found.as_of - moment).total_seconds()))


def _short(text: str, length: int = 48) -> str:
    """A name that fits, its end kept: that is where names differ."""
    if len(text) <= length:
        return text
    head = (length - 3) // 3
    return f"{text[:head]}...{text[-(length - 3 - head) :]}"


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most this width; what has no spaces is left whole, so that it can be copied."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
