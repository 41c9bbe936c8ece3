"""How many files, how gathered, and what counts as right-sized; and what the history of commits teaches."""

from datetime import UTC, datetime, timedelta

import pytest

from compactor.core.documents.changes import Commit
from compactor.core.documents.records import RecentCommit
from compactor.ledger.sizing import (
    MIN_LEARNING_BYTES,
    RATIO_HISTORY,
    SizedBytes,
    is_right_sized,
    learned_ratio,
    partitioning,
    sized_bytes,
    sizing_hits,
)
from compactor.ledger.sizing_history import SizingHistory, summarised
from tests.support.harness import FLAWED, GOOD, Harness
from tests.support.recent_commits import recent_commit

MIB = 1024 * 1024
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def recent(decoded_bytes: int, output_bytes: int, age_seconds: float = 0) -> RecentCommit:
    decided_at = NOW - timedelta(seconds=age_seconds)
    return recent_commit(decided_at, decoded_bytes=decoded_bytes, input_bytes=decoded_bytes, output_bytes=output_bytes)


BIG = MIN_LEARNING_BYTES


def test_bounds_of_learning() -> None:
    """Sizing learns from the latest 16 commits of at least 8 MiB each."""
    assert (RATIO_HISTORY, MIN_LEARNING_BYTES) == (16, 8 * MIB)
    older = [recent(8 * MIB, 4 * MIB, age_seconds=1)]
    assert learned_ratio([recent(8 * MIB, 8 * MIB)] * 15 + older) == (15 + 0.5) / 16
    assert learned_ratio([recent(8 * MIB, 8 * MIB)] * 16 + older) == 1


@pytest.mark.parametrize(
    ("commits", "ratio"),
    [
        ([], None),
        ([recent(BIG - 1, BIG)], None),
        ([recent(BIG, BIG // 4)], 0.25),
        ([recent(BIG, BIG // 4), recent(3 * BIG, 3 * BIG // 2)], 0.4375),
        ([recent(BIG, BIG // 4), recent(1000, 1000)], 0.25),
        ([recent(BIG, BIG, age_seconds=1)] + [recent(BIG, BIG // 2)] * RATIO_HISTORY, 0.5),
        ([recent(BIG, 0)], 0.0),
    ],
)
def test_learned_ratio(commits: list[RecentCommit], ratio: float | None) -> None:
    """The ratio is that of the latest commits that are large enough to tell."""
    assert learned_ratio(commits) == ratio


@pytest.mark.parametrize(
    ("files", "in_flight", "cores", "how"),
    [(2, 1, 2, "coalesce"), (2, 1, 3, "rebalance"), (2, 4, 8, "coalesce"), (1, 1, 1, "coalesce")],
)
def test_gathering(files: int, in_flight: int, cores: int, how: str) -> None:
    """Rows are moved only where there are fewer files in work than cores."""
    assert partitioning(files, in_flight, cores) == how


@pytest.mark.parametrize(
    ("sizes", "hits"),
    [
        ([], (0, 0)),
        ([74], (0, 0)),
        ([75], (1, 1)),
        ([125], (1, 1)),
        ([126], (0, 1)),
        ([100, 40], (1, 2)),
        ([40, 40], (0, 2)),
    ],
)
def test_sizing_hits(sizes: list[int], hits: tuple[int, int]) -> None:
    """Only manifests that fill a file count, and a file within a quarter of the target is a hit."""
    assert sizing_hits(sizes, 100) == hits


def test_is_right_sized() -> None:
    """The tolerance holds to both sides."""
    assert [is_right_sized(size, 100) for size in (74, 75, 100, 125, 126)] == [False, True, True, True, False]


def test_summary_of_a_commit() -> None:
    """The summary counts what was compacted, and leaves out what was quarantined."""
    harness = Harness()
    uri = harness.deliver("m1", GOOD, FLAWED, GOOD)
    harness.store.delete(["/w/raw/m1-2.ndjson"])
    harness.runner().run([uri])
    outcome = harness.outcome("m1")
    assert isinstance(outcome, Commit)
    [created_at] = {uri.created_at for uri in [harness.ledger.accepted("m1").manifest]}
    summary = summarised(outcome, target_file_bytes=128 * MIB, arrived_at=created_at)
    assert (summary.input_files, summary.records, summary.rejected_lines) == (2, 4, 2)
    assert summary.decoded_bytes == summary.input_bytes == len(GOOD) + len(FLAWED)
    assert (summary.output_files, summary.output_bytes) == (2, sum(file.size_bytes for file in outcome.outputs))
    assert (summary.rejects, summary.quarantined) == ({"invalid_json": 1, "not_an_object": 1}, {"missing": 1})
    assert harness.ledger.recent() == [summary]


def test_history_learns_within_a_run_and_across_runs() -> None:
    """What a commit teaches is known at once, and to the next run."""
    harness = Harness()
    uri = harness.deliver("m1", GOOD)
    harness.runner().run([uri])
    commit = harness.commit("m1")
    large = commit.model_copy(
        update={"files": [commit.files[0].model_copy(update={"decoded_bytes": 10 * MIN_LEARNING_BYTES})]}
    )
    history = SizingHistory(harness.ledger, 128 * MIB)
    assert history.ratio() is None
    history.add(large)
    expected = sum(file.size_bytes for file in commit.outputs) / (10 * MIN_LEARNING_BYTES)
    assert history.ratio() == expected
    assert SizingHistory(harness.ledger, 128 * MIB).ratio() == expected


def test_bytes_in_files_of_the_right_size() -> None:
    """The share is of all bytes, those of partitions that fill no file included; it is unknown without bytes."""
    found = sized_bytes([[100, 125, 75], [126, 100], [74], [30, 40], [180]], 100)
    assert found == SizedBytes(850, right_sized_bytes=400, small_bytes=144, hit_rate=400 / 850)
    assert sized_bytes([], 100) == SizedBytes(0, 0, 0, hit_rate=None)


def test_a_summary_has_the_bytes_of_the_right_size() -> None:
    """It counts the files of each partition by the target of the settings."""
    harness = Harness(output={"target_file_bytes": MIB})
    harness.runner().run([harness.deliver("m1", GOOD)])
    commit = harness.commit("m1")
    sizes = {"2026-01-01": (MIB, MIB // 3), "2026-01-02": (MIB // 2,)}
    outputs = [
        commit.outputs[0].model_copy(update={"size_bytes": size, "partition": [day]})
        for day, of_day in sizes.items()
        for size in of_day
    ]
    harness.app().history.add(commit.model_copy(update={"outputs": outputs, "partition_by": ["day(at)"]}))
    summary = harness.ledger.recent()[-1]
    assert (summary.target_file_bytes, summary.right_sized_bytes, summary.small_bytes) == (MIB, MIB, MIB // 2)
