"""The screen of `compactor status`: the next action first, then the facts."""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter

from rich.console import Group, RenderableType
from rich.text import Text

from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.output import table_of
from compactor.cli.ui.terminal import echo
from compactor.cli.ui.words import by_column, expired_lines, log_lines, table_lines
from compactor.control.diagnosis.health import Condition, Word
from compactor.core.documents.records import RecentCommit
from compactor.core.rules.sharding import shard_number
from compactor.core.text.formatting import DASH, by_name, count, duration, percent, rate, shown_seconds, size
from compactor.core.text.safe_text import visible
from compactor.ledger.sizing import SIZE_TOLERANCE
from compactor.ops.status.health import missing_shards, releases_differ
from compactor.ops.status.values import Status

LEAST_WIDTH = 80
INDENT = 10
VALUE_WIDTH = LEAST_WIDTH - INDENT

_LETTERS_SHOWN = 3


def fields(found: Status) -> Iterator[tuple[str, list[str], str]]:
    """The name, lines and style of each field."""
    letters, files = found.dead_letters, found.quarantined_files
    yield "jobs", _jobs(found), ""
    yield "backlog", _backlog(found), ""
    yield "rates", _rates(found), ""
    if found.backlog.manifests:
        yield "drained", [_drained(found)], ""
    if found.latency is not None or not found.folder:
        yield "latency", [_latency(found)], ""
    yield "rejects", _rejects(found), ""
    if found.misfits.values:
        yield "misfits", _misfits(found), ""
    yield "dead", _letters(found), "red" if letters.open else ""
    yield "files", _files(found), "red" if files.open else ""
    yield "schema", _schema(found), ""
    if found.table is not None:
        style = "red" if found.table.is_behind or found.table.held else ""
        yield "table", table_lines(found.table, found.as_of), style
    if found.logs:
        yield "logs", log_lines(found.logs), "red" if any(each.is_behind for each in found.logs) else ""
    if found.output_bytes_per_input_byte is not None:
        yield "size", [f"{found.output_bytes_per_input_byte:.3f} Parquet bytes per stored input byte"], ""
    if found.recent and not (found.folder and (found.sizes.by_bytes is None or found.sizes.by_bytes.hit_rate is None)):
        yield "hit rate", _hit_rate(found), ""
    if found.expired:
        yield "expired", expired_lines(found.expired), ""


def _jobs(found: Status) -> list[str]:
    if not found.runs:
        last = found.last_heartbeat_at
        return ["none" if last is None else f"none; last heartbeat of a dead one: {found.ago(last)} ago"]
    missing = [f"shard {number}/{found.shards}: none" for number in missing_shards(found.runs, found.shards)]
    runs = sorted(found.runs, key=lambda run: shard_number(run.shard) or 0)
    shown = [
        (f"shard {run.shard}: " if run.shard else "")
        + f"{run.run_id}, up for {found.ago(run.started_at)}"
        + (f", release {visible(run.release)}" if run.release else "")
        + (f", asked to stop {found.ago(run.asked_to_stop_at)} ago" if run.asked_to_stop_at else "")
        for run in runs
    ]
    return [*shown, *missing]


def _backlog(found: Status) -> list[str]:
    backlog = found.backlog
    lines, notes = ["nothing waits"], []
    if backlog.manifests:
        about = "about " if backlog.is_extrapolated else ""
        length = "unknown bytes" if backlog.input_bytes is None else f"{about}{size(backlog.input_bytes)}"
        oldest = shown_seconds(backlog.oldest_seconds)
        lines = [f"{count(backlog.manifests, 'manifest')}, {length}, the oldest for {oldest}"]
    if backlog.begun_manifests:
        notes.append(
            f"{backlog.begun_manifests:,} started, the first {shown_seconds(backlog.oldest_begun_seconds)} ago"
        )
    if backlog.is_extrapolated and backlog.manifests_read:
        notes.append(f"bytes from {backlog.manifests_read:,} of them")
    if notes:
        lines.append("; ".join(notes))
    if backlog.pending_parts:
        parts = count(backlog.pending_parts, "pending part")
        lines.append(f"{parts} of announced files, the oldest for {shown_seconds(backlog.oldest_pending_seconds)}")
    return lines


def _rates(found: Status) -> list[str]:
    rates, at_work = found.rates, found.rates.at_work_bytes_per_second
    arriving, processed = rate(rates.arriving_bytes_per_second, 1), rate(rates.processed_bytes_per_second, 1)
    words = f"{arriving} of input arriving, {processed} processed, over {shown_seconds(rates.window_seconds)}"
    return [words, *([] if at_work is None else [f"{rate(at_work, 1)} of input while at work"])]


def _drained(found: Status) -> str:
    drain = found.drain
    if drain.seconds is None:
        return f"{'never at this rate' if drain.is_never else 'not known yet'}: {drain.reason}"
    return f"in {shown_seconds(drain.seconds)}, by {drain.reason}" if drain.seconds else drain.reason


def _latency(found: Status) -> str:
    latency = found.latency
    if latency is None:
        return "unknown"
    p50, p99 = duration(latency.p50_seconds), duration(latency.p99_seconds)
    files = "file" if latency.times == 1 else f"{latency.times:,} files"
    return f"p50 {p50}, p99 {p99} from arrival to visible (latest {files})"


def _rejects(found: Status) -> list[str]:
    rejects = found.rejects
    if not rejects.lines:
        return [f"none in the latest {_latest(rejects.commits)}" if rejects.commits else "none"]
    share = percent(rejects.lines, rejects.lines + sum(commit.records for commit in found.recent))
    of = f"{count(rejects.lines, 'line')} ({share}) of the latest {_latest(rejects.commits)}"
    return [of, *([by_name(rejects.by_reason)] if rejects.by_reason else [])]


def _misfits(found: Status) -> list[str]:
    misfits = found.misfits
    of = f"{count(misfits.values, 'value')} in _rescued_data in the latest {_latest(misfits.commits)}"
    return [of, by_column(misfits.by_column)]


def _hit_rate(found: Status) -> list[str]:
    of, sizes = f"the latest {_latest(len(found.recent))}", found.sizes.by_bytes
    if sizes is None:
        return [f"none of {of} recorded today's target"]
    if found.sizes.commits < len(found.recent):
        of = f"{found.sizes.commits:,} of {of}"
    if not sizes.size_bytes:
        return [f"{of}: no output"]
    if sizes.hit_rate is None:
        target = f"{found.sizes.target_file_bytes / 2**20:,.4g} MiB"
        return [f"{DASH} (no manifest or partition fills a file of {target}, the target)", f"in {of}"]
    share = percent(sizes.right_sized_bytes, sizes.size_bytes)
    lines = [f"{share} of the output's bytes are in files within {100 * SIZE_TOLERANCE:g} % of the target", f"in {of}"]
    if sizes.small_bytes:
        small = percent(sizes.small_bytes, sizes.size_bytes)
        lines.append(f"{small} come from manifests or partitions too small for a full file")
    return lines


def _letters(found: Status) -> list[str]:
    letters = found.dead_letters
    settled = letters.looked_at - letters.open
    notes = [f"{settled:,} settled since"] if settled else []
    if letters.manifests > letters.looked_at:
        notes.append(f"{letters.manifests - letters.looked_at:,} older ones not checked")
    if not letters.open:
        return [f"none, {', '.join(notes)}" if notes else "none"]
    lines = [f"{count(letters.open, 'manifest')}: {by_name(letters.by_reason)}", *([", ".join(notes)] if notes else [])]
    for each in letters.latest[:_LETTERS_SHOWN]:
        when = f"{rough((found.as_of - each.decided_at).total_seconds())} ago, {each.reason}: "
        lines.append(f"{when}{short(each.manifest_id, VALUE_WIDTH - len(when))}")
    return lines


def _files(found: Status) -> list[str]:
    files = found.quarantined_files
    commits = f" in the latest {_latest(files.commits)}" if files.commits else ""
    dismissed = f"; {files.dismissed:,} dismissed" if files.dismissed else ""
    if not files.open:
        return [f"none quarantined{commits}{dismissed}"]
    words = f"{count(files.open, 'file')} quarantined{commits}: {by_name(files.by_status)}{dismissed}"
    return [words, *(short(each.uri, VALUE_WIDTH) for each in files.latest[:1])]


def _schema(found: Status) -> list[str]:
    schema = found.schema
    if schema.error:
        return ["unknown: unreadable", short(schema.error.partition(": ")[0], VALUE_WIDTH)]
    words = f"version {schema.version}, {count(schema.columns, 'column')}"
    if schema.newest_column and schema.changed_at:
        words += f", the newest {found.ago(schema.changed_at)} ago: "
        words += short(schema.newest_column, VALUE_WIDTH - len(words))
    return [words]


def _latest(commits: int) -> str:
    """The number of latest commits, as it follows `the latest`."""
    return "commit" if commits == 1 else f"{commits:,} commits"


def rough(seconds: float) -> str:
    """Time in its largest unit, in at most six characters; tenths below 10 s."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{min(int(seconds // length), 999)} {unit}"
    return f"{max(seconds, 0.0):.{1 if seconds < 9.95 else 0}f} s"  # noqa: PLR2004 - two digits are enough


def short(text: str, length: int = 48) -> str:
    """A name that fits. Its end stays, because names differ there."""
    if len(text) <= length:
        return text
    head = (length - 3) // 3
    return f"{text[:head]}...{text[-(length - 3 - head) :]}"


Statuses = Mapping[str, Status]
"""Each stream's status, by name."""


def show_statuses(found: Statuses, canary: str) -> None:
    """Print each stream's state, the overall state, and the next actions.

    `canary` is the stream that gets a release first; empty if there is none.
    """
    SafeConsole().print(_table(found))
    for line in _notes(found, canary):
        echo(line)


def streams_screen(
    found: Statuses,
    *,
    canary: str,
    width: int = LEAST_WIDTH,
    height: int = 0,  # noqa: ARG001 - a terminal that is too low cuts the end
    error: str = "",
) -> RenderableType:
    """The same as one screen, with its time; `error` is the reason why no newer one could be read."""
    as_of = max(each.as_of for each in found.values())
    failed = [Text(f"Cannot read the status: {error}", "bold red")] if error else []
    head = Text(f"{as_of:%Y-%m-%d %H:%M:%S} UTC".rjust(max(width, LEAST_WIDTH)), "dim")
    return Group(head, *failed, _table(found), *map(Text, _notes(found, canary)))


_FIGURES: dict[str, tuple[Callable[[Status], float | None], Callable[[Sequence[float]], float | None]]] = {
    "waiting": (lambda each: each.backlog.manifests + each.backlog.begun_manifests, sum),
    "oldest, s": (lambda each: each.backlog.oldest_seconds, max),
    "p99, s": (
        lambda each: each.latency.p99_seconds if each.latency else None,
        lambda values: max(values, default=None),
    ),
    "rejects": (lambda each: each.rejects.lines, sum),
    "dead": (lambda each: each.dead_letters.open, sum),
    "files": (lambda each: each.quarantined_files.open, sum),
}
"""Each stream's figures, and how the total is made: figures that cannot be added use the longest."""


def _table(found: Statuses) -> RenderableType:
    heads = ["stream", "state", *_FIGURES, "columns"]
    lines = [_line(name, each) for name, each in found.items()]
    known = ([value for each in found.values() if (value := of(each)) is not None] for of, _ in _FIGURES.values())
    in_all = (of_all(values) for values, (_, of_all) in zip(known, _FIGURES.values(), strict=True))
    lines.append(["all", "", *map(_figure, in_all), "", ""])
    if releases_differ({name: _releases(each) for name, each in found.items()}):
        heads.append("release")
    return table_of({head: itemgetter(at) for at, head in enumerate(heads)}, lines, names=2)


def _line(name: str, found: Status) -> list[str]:
    figures = [_figure(of(found)) for of, _ in _FIGURES.values()]
    release = visible(" ".join(_releases(found))) or "-"
    return [name, found.state.word.replace("_", " "), *figures, f"{found.schema.columns:,}", release]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _releases(found: Status) -> list[str]:
    return sorted({run.release for run in found.runs if run.release})


def _notes(found: Statuses, canary: str) -> Iterator[str]:
    for name, each in found.items():
        if each.state.next_move:
            yield f"{name}: {each.state.reason}"
            yield f"  next: {each.state.next_move}"
    if apart := releases_differ({name: _releases(each) for name, each in found.items()}, canary):
        yield visible(apart[0])
        yield f"  next: {apart[1]}"


MOST_WIDTH = 120
_LEAST_COMMITS, _MOST_COMMITS = 1, 10
_STYLES: dict[Word, str] = {
    "empty": "bold",
    "idle": "bold green",
    "running": "bold green",
    "stopping": "bold yellow",
    "behind": "bold yellow",
    "needs_you": "bold yellow",
    "stopped": "bold red",
    "stuck": "bold red",
}
_HEADINGS = ("ago", "latest commits", "MB in", "MB out", "files", "rows", "rejects", "took")
_ROW = "{:>6} {:{names}} {:>6} {:>6} {:>5} {:>10} {:>7} {:>6}\n"
"""A row in the table of commits. Manifest names get the remaining width."""


def screen(found: Status, *, width: int = LEAST_WIDTH, height: int = 40, error: str = "") -> Text:
    """The complete screen; `error` is the reason why no newer one could be read.

    It uses at least 80 columns. The list of commits is cut to fit the height.
    """
    width = min(max(width, LEAST_WIDTH), MOST_WIDTH)
    text = _head(found, width)
    if error:
        text.append("\n".join([*_wrapped(f"Cannot read the status: {error}", width), ""]), "bold red")
    text.append("\n")
    for name, lines, style in fields(found):
        wrapped = [part for line in lines for part in _wrapped(line, width - INDENT)]
        for number, line in enumerate(wrapped):
            text.append(f"{name if not number else '':{INDENT}}", style or "dim")
            text.append(f"{line}\n", style)
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
    # A job that ended for lack of work is `stopped`, too.
    style = "bold" if state.condition is Condition.ALL_DONE else _STYLES[state.word]
    text.append(f"{word:{width - len(moment)}}", style)
    text.append(f"{moment}\n", "dim")
    text.append("\n".join([*_wrapped(f"{state.reason[:1].upper()}{state.reason[1:]}.", width), ""]))
    if state.next_move:
        text.append("\n".join([*_wrapped(f"Next: {state.next_move}", width), ""]), "bold")
    return text


def _commits(found: Status, width: int, rows: int) -> Text:
    names = width + 2 - len(_ROW.format(*[""] * len(_HEADINGS), names=1))
    text = Text()
    text.append(_ROW.format(*_HEADINGS, names=names), "dim")
    for commit in found.recent[::-1][:rows]:
        text.append(_ROW.format(*_cells(commit, found, names), names=names))
    return text


def _cells(commit: RecentCommit, found: Status, names: int) -> list[str]:
    return [
        rough((found.as_of - commit.decided_at).total_seconds()),
        short(commit.manifest_id, names),
        _megabytes(commit.input_bytes),
        _megabytes(commit.output_bytes),
        f"{commit.output_files:,}",
        f"{commit.records:,}",
        f"{commit.rejected_lines:,}",
        rough(commit.seconds),
    ]


def _megabytes(length_bytes: int) -> str:
    """Millions of bytes, in at most six characters up to a terabyte."""
    amount = length_bytes / 1e6
    return f"{amount:.2f}" if amount < 1 else f"{amount:.1f}" if amount < 1000 else f"{amount:,.0f}"  # noqa: PLR2004


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most this width. Words are never broken, so commands can be copied."""
    return textwrap.wrap(visible(text), width, break_long_words=False, break_on_hyphens=False) or [""]
