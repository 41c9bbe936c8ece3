"""The fields of the screen of `compactor status`: a name and a few lines each."""

from collections.abc import Iterator

from compactor.cli.ui.common.expired import expired_lines
from compactor.cli.ui.common.kinesis_seen import kinesis_lines
from compactor.cli.ui.common.misfits import by_column
from compactor.cli.ui.common.table_seen import table_lines
from compactor.cli.ui.common.topics_seen import topic_lines
from compactor.core.rules.sharding import shard_number
from compactor.core.text.formatting import DASH, by_name, count, duration, percent, rate, shown_seconds, size
from compactor.core.text.safe_text import visible
from compactor.ledger.sizing import SIZE_TOLERANCE
from compactor.ops.status.health import missing_shards
from compactor.ops.status.values import Status

LEAST_WIDTH = 80
INDENT = 10
VALUE_WIDTH = LEAST_WIDTH - INDENT

_LETTERS_SHOWN = 3


def fields(found: Status) -> Iterator[tuple[str, list[str], str]]:
    """The name, the lines and the style of each field."""
    letters, files = found.dead_letters, found.quarantined_files
    yield "jobs", _jobs(found), ""
    yield "backlog", _backlog(found), ""
    yield "rates", _rates(found), ""
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
    if found.topics:
        yield "topics", topic_lines(found.topics), "red" if any(each.is_behind for each in found.topics) else ""
    if found.kinesis:
        yield "kinesis", kinesis_lines(found.kinesis), "red" if any(each.is_behind for each in found.kinesis) else ""
    if found.output_bytes_per_input_byte is not None:
        yield "size", [f"{found.output_bytes_per_input_byte:.3f} Parquet bytes for each stored input byte"], ""
    if found.recent:
        yield "hit rate", _hit_rate(found), ""
    if found.expired:
        yield "expired", expired_lines(found.expired), ""
    yield "cost", _cost(found), ""


def _jobs(found: Status) -> list[str]:
    if not found.runs:
        last = found.last_heartbeat_at
        return ["none" if last is None else f"none; the last heartbeat of one that died: {found.ago(last)} ago"]
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
        notes.append(f"{backlog.begun_manifests:,} begun, the first {shown_seconds(backlog.oldest_begun_seconds)} ago")
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
        return "not known yet"
    p50, p99 = duration(latency.p50_seconds), duration(latency.p99_seconds)
    files = "file" if latency.files == 1 else f"{latency.files:,} files"
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
        return [f"none of {of} recorded the target of today"]
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
        lines.append(f"{small} come from manifests or partitions too small to fill a file")
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
        return ["not known: it cannot be read", short(schema.error.partition(": ")[0], VALUE_WIDTH)]
    words = f"version {schema.version}, {count(schema.columns, 'column')}"
    if schema.newest_column and schema.changed_at:
        words += f", the newest {found.ago(schema.changed_at)} ago: "
        words += short(schema.newest_column, VALUE_WIDTH - len(words))
    return [words]


def _cost(found: Status) -> list[str]:
    cost = found.cost
    if cost.run_dollars is None or cost.day_dollars is None or cost.dollars_per_hour is None:
        return [cost.reason if cost.reason.startswith("not known") else f"none: {cost.reason}"]
    words = f"${cost.run_dollars:,.2f} this run so far, ${cost.day_dollars:,.2f} in 24 h, "
    words += f"${cost.dollars_per_hour:,.2f} an hour"
    if cost.dollars_per_terabyte is not None:
        words += f", ${cost.dollars_per_terabyte:,.2f} a TB"
    return [words, f"{cost.job}, for {shown_seconds(cost.run_seconds or 0.0)}; list prices"]


def _latest(commits: int) -> str:
    """How many of the latest commits, as it follows `the latest`."""
    return "commit" if commits == 1 else f"{commits:,} commits"


def rough(seconds: float) -> str:
    """Time in its largest unit, in at most six characters; less than 10 s to a tenth."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{min(int(seconds // length), 999)} {unit}"
    return f"{max(seconds, 0.0):.{1 if seconds < 9.95 else 0}f} s"  # noqa: PLR2004 - two digits are enough


def short(text: str, length: int = 48) -> str:
    """A name that fits. Its end is kept, as names differ there."""
    if len(text) <= length:
        return text
    head = (length - 3) // 3
    return f"{text[:head]}...{text[-(length - 3 - head) :]}"
