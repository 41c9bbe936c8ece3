"""Promises of a report's figures: they are those of the records, each counted once, at a cost that is bounded."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import orjson
import pytest

from compactor.cli.commands.report import make_report
from compactor.control.diagnosis.health import Condition
from compactor.core.documents.changes import Commit
from compactor.core.documents.records import (
    Accepted,
    Done,
    FileReport,
    FileStatus,
)
from compactor.core.layout import ManifestKey
from compactor.core.text.safe_text import Suggestions
from compactor.ops.report.figures import Figures
from compactor.ops.report.period import MAX_BUCKETS, Period, piece_at, pieces_of, step_for
from compactor.ops.report.reader import read_figures
from compactor.ops.report.report import judge
from compactor.ops.report.tallies import CHECKED_FILES, NEWEST_DEAD_LETTERS, Newest
from tests.support.fakes import FaultyStore
from tests.support.harness import FLAWED, GOOD, Harness
from tests.support.report_day import MIB, MIDNIGHT, TEN_WORKERS, WHOLE_DAY, ReportDay, report_on


@pytest.fixture(scope="module")
def harness() -> Harness:
    """A day of 60 manifests, which no test changes."""
    harness = Harness()
    ReportDay(harness).fill(60)
    return harness


def records(harness: Harness) -> Iterator[tuple[Commit, Done, Accepted]]:
    """The committed manifests, read from the store as plain documents, past the code under test."""
    documents: dict[str, dict[str, Any]] = {}
    for info in harness.store.list(harness.layout.ledger_folder):
        manifest_id, name = info.uri.rsplit("/", 2)[1:]
        documents.setdefault(manifest_id, {})[name] = orjson.loads(harness.store.read(info.uri))
    for manifest_id, found in documents.items():
        if found.get("outcome.json", {}).get("why") == "compacted":
            accepted = Accepted.model_validate_json(harness.store.read(harness.layout.accepted(manifest_id)))
            yield Commit.model_validate(found["outcome.json"]), Done.model_validate(found["done.json"]), accepted


def nearest_rank(values: list[float], percent: float) -> float:
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


def test_sums_are_those_of_the_records(harness: Harness) -> None:
    """Every sum of the whole period is that of the records, which are added up here in another way."""
    totals = report_on(harness).figures.totals
    commits = [commit for commit, _, _ in records(harness)]
    files = [file for commit in commits for file in commit.files]
    compacted = [file for file in files if file.status == FileStatus.COMPACTED]
    outputs = [file for commit in commits for file in commit.outputs]
    assert (totals.manifests, totals.dead_letters, totals.failed_attempts) == (60, 2, 1)
    assert (totals.input_files, totals.input_bytes) == (len(compacted), sum(file.size_bytes for file in compacted))
    assert (totals.output_files, totals.output_bytes) == (len(outputs), sum(file.size_bytes for file in outputs))
    assert totals.lines == sum(file.lines for file in files)
    assert totals.rows == sum(file.records for file in files)
    assert totals.rejected_lines == sum(file.rejected_lines for file in files) > 0
    assert totals.blank_lines == sum(file.blank_lines for file in files)
    assert totals.lines == totals.rows + totals.rejected_lines + totals.blank_lines
    assert report_on(harness).figures.quarantined_files.by_status == Counter(
        str(file.status) for file in files if file.status != FileStatus.COMPACTED
    )


def test_times_are_those_of_the_records(harness: Harness) -> None:
    """Percentiles of manifests and of files are those of the records, to a second or 1 %."""
    totals = report_on(harness).figures.totals
    durations, arrivals = [], []
    for commit, done, accepted in records(harness):
        durations.append((done.done_at - commit.started_at).total_seconds())
        assert accepted.manifest is not None
        compacted = {file.uri for file in commit.files if file.status == FileStatus.COMPACTED}
        for file in accepted.manifest.files:
            if file.uri in compacted:
                assert file.event_time is not None
                arrivals.append((done.done_at - file.event_time).total_seconds())
    assert totals.durations is not None
    assert totals.latency is not None
    assert (totals.durations.times, totals.latency.times) == (len(durations), len(arrivals))
    for spread, values in ((totals.durations, durations), (totals.latency, arrivals)):
        assert spread.p50_seconds == pytest.approx(nearest_rank(values, 50), rel=0.01, abs=1)
        assert spread.p99_seconds == pytest.approx(nearest_rank(values, 99), rel=0.01, abs=1)
        assert spread.longest_seconds == pytest.approx(max(values), rel=0.01, abs=1)


def test_buckets_are_the_day_in_pieces(harness: Harness) -> None:
    """Each manifest is in the half hour in which it was done, and the pieces add up to the whole."""
    found = report_on(harness).figures
    assert (found.bucket_seconds, len(found.buckets)) == (1800, 48)
    expected = Counter[int]()
    for _, done, _ in records(harness):
        expected[int((done.done_at - MIDNIGHT).total_seconds() // 1800)] += 1
    assert {number: each.manifests for number, each in enumerate(found.buckets) if each.manifests} == dict(expected)
    for name in ("input_bytes", "input_files", "output_bytes", "output_files", "rows", "rejected_lines"):
        assert sum(getattr(each, name) for each in found.buckets) == getattr(found.totals, name)


def test_sizes_are_those_of_the_records(harness: Harness) -> None:
    """The hit rate is that of the bytes of all output files."""
    sizes = report_on(harness).figures.sizes
    each_bytes = [file.size_bytes for commit, _, _ in records(harness) for file in commit.outputs]
    right_bytes = sum(size for size in each_bytes if 96 * MIB <= size <= 160 * MIB)
    assert (sizes.size_bytes, sizes.right_sized_bytes) == (sum(each_bytes), right_bytes)
    assert sizes.hit_rate == right_bytes / sum(each_bytes)


def test_rejects_by_reason(harness: Harness) -> None:
    """Lines by reason are those of the records, the most frequent first, with a few of the lines as they are."""
    found = report_on(harness).figures.rejects
    expected = Counter[str]()
    for commit, _, _ in records(harness):
        for file in commit.files:
            expected.update(file.rejects)
    assert {each.reason: each.lines for each in found} == dict(expected)
    assert [each.lines for each in found] == sorted(expected.values(), reverse=True)
    [not_utf8] = [each for each in found if each.reason == "invalid_utf8"]
    assert 1 <= len(not_utf8.samples) <= 3
    assert not_utf8.samples[0].head == '{"id": 18, "city": "K\\xf6ln"}'
    assert (not_utf8.samples[0].line_number, not_utf8.samples[0].length_bytes) == (7, 26)


def test_no_samples(harness: Harness) -> None:
    """Without samples no file of rejects is read, and no line is in the figures."""
    store = CountingStore(harness)
    report = report_on_with(harness, store, with_samples=False)
    assert all(not each.samples for each in report.rejects)
    assert not [uri for uri in store.reads if harness.layout.rejects_folder in uri]


class CountingStore(FaultyStore):
    """Notes what is read."""

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness.store)
        self.reads: list[str] = []

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        self.reads.append(uri)
        return super().read(uri, etag=etag)

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        self.reads.append(uri)
        return super().read_range(uri, start, length, etag=etag)


def report_on_with(harness: Harness, store: FaultyStore, *, with_samples: bool = True) -> Figures:
    app = harness.app(store=store)
    hour = Period(MIDNIGHT + timedelta(hours=14), MIDNIGHT + timedelta(hours=15))
    return read_figures(app.state, app.registry, hour, target_file_bytes=128 * MIB, with_samples=with_samples)


def test_only_the_period_is_read(harness: Harness) -> None:
    """Of the manifests, three records each are read, and only of those that the store wrote near the period."""
    store = CountingStore(harness)
    found = report_on_with(harness, store, with_samples=False)
    read = [sum(kind in uri for uri in store.reads) for kind in ("/done.json", "/outcome.json", "/accepted/")]
    assert found.totals.manifests == 2
    assert set(read) == {found.totals.manifests + 1}


def test_periods_side_by_side(harness: Harness) -> None:
    """Periods that follow upon each other count every manifest once."""
    edges = [MIDNIGHT + timedelta(minutes=minutes) for minutes in (0, 61, 599, 600, 661, 1440)]
    counts = [report_on(harness, Period(*pair)).figures.totals.manifests for pair in itertools.pairwise(edges)]
    assert sum(counts) == 60
    assert counts[2] == 0


def test_clocks_that_jump() -> None:
    """A manifest whose driver's clock was wrong is in the period in which the store wrote it, once, and it is said."""
    harness = Harness()
    day = ReportDay(harness, files=1)
    for number, jump_hours in enumerate((-30, -1, 0, 1 / 60, 2, 48)):
        commit = day.commit(f"m{number}", 5 + number, wait_seconds=10, load=1)
        done_at = harness.clock.now() + timedelta(hours=jump_hours)
        uri = harness.layout.done(commit.key)
        harness.store.put(
            uri, Done(manifest_id=commit.manifest_id, run_id="run", done_at=done_at).model_dump_json().encode()
        )
    harness.clock.set(WHOLE_DAY.until)
    report = report_on(harness)
    assert (report.figures.totals.manifests, report.figures.totals.clocks_off) == (6, 4)
    assert [each.manifests for each in report.figures.buckets if each.manifests] == [1] * 6
    assert any("4 manifests are dated" in point.text for point in report.verdict.points)
    assert report.figures.totals.durations is not None
    assert report.figures.totals.latency is not None
    assert all(each.latency.p50_seconds >= 0 for each in report.figures.buckets if each.latency)
    before = Period(MIDNIGHT - timedelta(days=2), MIDNIGHT)
    assert report_on(harness, before).figures.totals.manifests == 0


def test_what_takes_too_long_is_told() -> None:
    """Files are held against the SLA, manifests against half of it; what keeps both is no point."""
    harness = Harness()
    ReportDay(harness, files=1).commit("m", 5, wait_seconds=10, load=1, bad=0)
    figures = report_on(harness).figures
    assert figures.totals.durations is not None
    took = figures.totals.durations.p99_seconds
    found = [point.condition for point in judge(figures, took, Suggestions()).points]
    assert found == [Condition.LATE_FILES, Condition.SLOW_MANIFESTS]
    assert judge(figures, 10 * took, Suggestions()).points == ()
    assert judge(figures, None, Suggestions()).points == ()


def test_records_that_were_copied() -> None:
    """Records that the store wrote long after the work, as a copy does, make no work of the time in between."""
    harness = Harness()
    commit = ReportDay(harness, files=1).commit("m", 5, wait_seconds=10, load=1)
    uri = harness.layout.done(ManifestKey(commit.date, "m"))
    done = harness.store.read(uri)
    harness.clock.set(MIDNIGHT + timedelta(hours=15))
    harness.store.put(uri, done)
    totals = report_on(harness).figures.totals
    assert (totals.manifests, totals.clocks_off) == (1, 1)
    assert totals.durations is not None
    assert totals.at_work_seconds == (commit.decided_at - commit.started_at).total_seconds()


def test_what_was_not_checked() -> None:
    """Of dead letters and quarantined files beyond the limit, the report says only that they were not checked."""
    harness = Harness()
    day = ReportDay(harness, files=1)
    commit = day.commit("m", 5, wait_seconds=10, load=1)
    gone = [
        FileReport(uri=f"s3://lake/raw/gone-{number}", status=FileStatus.MISSING, detail="gone")
        for number in range(CHECKED_FILES + 2)
    ]
    changed = FileReport(uri="s3://lake/raw/new", status=FileStatus.CHANGED, detail="another version")
    harness.store.put(
        harness.layout.outcome(ManifestKey(commit.date, "m")),
        commit.model_copy(update={"files": [*commit.files, *gone, changed]}).model_dump_json().encode(),
    )
    for number in range(NEWEST_DEAD_LETTERS + 1):
        day.dead_letter(f"bad-{number}", 6, "not_json", "no JSON")
    report = report_on(harness)
    files = report.figures.quarantined_files
    assert (report.figures.dead_letters.older, files.older) == (1, 2)
    assert (files.open, files.ever_by_status, files.changed) == (CHECKED_FILES, {"missing": CHECKED_FILES + 2}, 1)
    assert [point.reason for point in report.verdict.points if point.severity == "act"] == [
        f"{NEWEST_DEAD_LETTERS} manifests are dead letters",
        "1 older dead letter was not checked for a redrive",
        f"{CHECKED_FILES:,} input files are quarantined: {CHECKED_FILES:,} missing",
        "2 older quarantined files were not checked for a redrive",
    ]


def test_nothing_in_the_period() -> None:
    """A period without work has figures of zero, and a verdict that says so."""
    report = report_on(Harness())
    assert (report.verdict.severity, report.verdict.points) == ("nothing", ())
    assert report.figures.totals.manifests == 0
    assert report.figures.totals.durations is None


def test_of_real_work() -> None:
    """The report of a real run has its rows, its rejected lines and its dead letter."""
    harness = Harness()
    harness.deliver("m1", GOOD, FLAWED)
    harness.put_manifest("bad.json", b"{")
    harness.run_once()
    period = Period(harness.clock.now() - timedelta(hours=1), harness.clock.now() + timedelta(seconds=1))
    found = report_on(harness, period).figures
    assert (found.totals.manifests, found.totals.dead_letters, found.totals.rows) == (1, 1, 4)
    assert [(each.reason, each.lines) for each in found.rejects] == [("invalid_json", 1), ("not_an_object", 1)]
    assert [sample.head for each in found.rejects for sample in each.samples] == ["no json", "[5]"]
    assert [(each.version, each.added_columns) for each in found.schema.changes] == [(1, 3)]
    assert found.schema.changes[0].added[0].source_uri == "/w/raw/m1-0.ndjson"
    [letter] = found.dead_letters.latest
    assert (letter.manifest_id, letter.reason, letter.redriven) == ("bad", "not_json", False)


def test_damaged_records_are_left_out_and_said() -> None:
    """A damaged record costs its own manifest only, and the report says which one."""
    harness = Harness()
    day = ReportDay(harness, files=1)
    for number in range(3):
        day.commit(f"m{number}", 5, wait_seconds=10, load=1)
    damaged = harness.layout.outcome(ManifestKey("2025-12-21", "m1"))
    harness.store.put(damaged, b'{"why": "compacted"')
    report = report_on(harness)
    assert (report.figures.totals.manifests, report.figures.unreadable.records) == (2, 1)
    assert damaged in report.figures.unreadable.messages[0]
    assert report.verdict.severity == "act"


def test_cost_against_the_classic_plan(harness: Harness) -> None:
    """The classic plan costs its hours; the time at work is what any manifest covers, in the period."""
    cost = make_report(harness.app(), WHOLE_DAY, TEN_WORKERS, is_job_named=True, with_samples=False).cost
    assert cost is not None
    assert report_on(harness).cost is None  # it is of a disk
    covered: set[int] = set()
    for commit, _, _ in records(harness):
        start, end = ((moment - MIDNIGHT).total_seconds() for moment in (commit.started_at, commit.decided_at))
        covered.update(range(max(0, round(start)), round(end)))
    spent = cost.measured
    assert spent.at_work_seconds == pytest.approx(len(covered), abs=60)
    assert cost.compared_dollars == pytest.approx(24 * 20 * 0.308)
    assert spent.dollars_at_work == pytest.approx(spent.at_work_seconds / 3600 * 20 * 0.308)
    assert cost.services_dollars > 0


def test_the_verdict_of_a_good_day() -> None:
    """A day on which nothing was amiss is in order, without points."""
    harness = Harness()
    day = ReportDay(harness, files=4)
    for number in range(5):
        day.chance.seed(7)
        day.commit(f"m{number}", 3 + number, wait_seconds=60, load=0.86, bad=0)
    report = report_on(harness)
    assert (report.verdict.severity, report.verdict.points) == ("in_order", ())


@pytest.mark.parametrize("hours", [1 / 3600, 0.1, 1, 5, 24, 25, 24 * 7, 24 * 31, 24 * 366 * 3, 24 * 366 * 50])
def test_buckets_of_any_period(hours: float) -> None:
    """Pieces cover a period without a gap, are few, and a moment is in the piece that holds it."""
    since = MIDNIGHT + timedelta(minutes=17, seconds=11)
    period = Period(since, since + timedelta(hours=hours))
    pieces = pieces_of(period)
    assert len(pieces) <= MAX_BUCKETS + 1
    assert (pieces[0].since, pieces[-1].until) == (period.since, period.until)
    for number, piece in enumerate(pieces):
        assert piece_at(pieces, piece.since) == number
        assert piece_at(pieces, piece.until - timedelta(microseconds=1)) == number
    assert all(before.until == after.since for before, after in itertools.pairwise(pieces))
    if len(pieces) > 1:
        assert min(piece.seconds for piece in pieces) >= step_for(period, MAX_BUCKETS) / 2


def test_a_cut_piece_is_no_peak() -> None:
    """A manifest in the few seconds that a period takes of a piece makes no rate of hundreds of times the real one."""
    harness = Harness()
    day = ReportDay(harness, files=1)
    for number in range(8):
        day.commit(f"m{number}", 5 + number / 2, wait_seconds=10, load=1)
    end = MIDNIGHT + timedelta(hours=8.5, seconds=2)
    found = report_on(harness, Period(end - timedelta(days=1), end)).figures
    rates = [each.input_bytes / each.seconds for each in found.buckets if each.input_bytes]
    assert (found.bucket_seconds, len(found.buckets), found.buckets[-1].manifests) == (1800, 48, 2)
    assert max(rates) < 3 * min(rates)


def test_the_newest_are_kept() -> None:
    """Of many things the newest few are kept, the newest first, in whatever order they come."""
    newest: Newest[int] = Newest(3)
    for minute in (5, 1, 9, 3, 7, 2):
        newest.add(MIDNIGHT + timedelta(minutes=minute), minute)
    assert list(newest) == [9, 7, 5]


def test_time_at_work_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many manifests overlap: their spans are merged now and then."""
    monkeypatch.setattr("compactor.ops.report.tallies._MERGE_AT", 3)
    harness = Harness()
    day = ReportDay(harness, files=1)
    begun, ended = [], []
    for number in range(30):
        commit = day.commit(f"m{number}", 5 + number / 600, wait_seconds=10, load=1)
        begun.append(commit.started_at)
        ended.append(commit.decided_at)
    assert report_on(harness).figures.totals.at_work_seconds == (max(ended) - min(begun)).total_seconds()


def test_edges_of_a_period() -> None:
    """Work before the period is not in it; nor are attempts that failed near it; but all that was done in it is."""
    harness = Harness()
    day = ReportDay(harness, files=1)
    commit = day.commit("m", 5, wait_seconds=10, load=1)
    uri = harness.layout.done(ManifestKey(commit.date, "m"))
    done = harness.store.read(uri)
    harness.clock.advance(30)
    harness.store.put(uri, done)  # by the clock of the store it was done half a minute later
    for hour in (4.9, 5.005):
        day.fail_attempt("m", hour)
    since = MIDNIGHT + timedelta(hours=5, seconds=-10)
    totals = report_on(harness, Period(since, MIDNIGHT + timedelta(hours=5, seconds=10))).figures.totals
    assert (totals.manifests, totals.failed_attempts, totals.clocks_off) == (1, 0, 0)
    assert totals.at_work_seconds == (commit.decided_at - since).total_seconds()
