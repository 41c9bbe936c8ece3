"""A plan of sources on S3 finds in the index of closed dates what it finds in all of their records."""

from dataclasses import replace
from random import Random

import pytest

from compactor.adapters.claims import JournalClaims
from compactor.core.errors import StoreUnavailable
from compactor.core.ports import ObjectStore
from compactor.sources.folders.history import StoredSummarisedFiles
from compactor.sources.folders.planning import FolderPlanner
from compactor.sources.plan import Plan
from compactor.wiring import planning
from tests.support.fakes import FailingEngine, FaultyStore
from tests.support.folders import folder_planner
from tests.support.harness import Harness
from tests.support.histories import HOUR_SECONDS, QUIET_HOURS, closed
from tests.unit.sources.test_history_search import said

ROOT = "s3://bucket/w"


class Bucket:
    """A prefix that is compacted, call by call, each by a process that remembers nothing."""

    def __init__(self) -> None:
        self.harness = Harness(root=ROOT, stream={"max_attempts": 2})
        self.lines = 0

    def write(self, name: str) -> None:
        self.lines += 1
        self.harness.store.put(f"{ROOT}/raw/{name}", b'{"id": "%d"}\n' % self.lines)

    def planner(self, store: ObjectStore | None = None) -> FolderPlanner:
        harness = self.harness
        own = store or harness.store
        harness.claims = JournalClaims(own, harness.layout.claims_folder)  # type: ignore[assignment]
        planner = folder_planner(harness, f"{ROOT}/raw")
        inner = replace(
            planner.planner, state=harness.app(store=own).state, claimer=planning.claimer(harness.app(store=own))
        )
        return replace(planner, planner=inner, summarised=StoredSummarisedFiles(own, harness.layout))

    def compare(self) -> Plan:
        """What a call would plan by the index, and by all records."""
        planner = self.planner()
        plan = planner.plan(dry_run=True)
        assert said(plan) == said(replace(planner, summarised=None).plan(dry_run=True))
        return plan

    def compact(self) -> Plan:
        self.compare()
        plan = self.planner().plan()
        self.harness.run_once()
        return plan

    def close(self) -> None:
        self.harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
        closed(self.harness)

    def history(self, first: int, last: int) -> None:
        """Closed dates, each of a file that is gone."""
        for day in range(first, last + 1):
            self.write(f"2026-01-{day:02d}-x.ndjson")
        self.compact()
        self.harness.store.delete([info.uri for info in self.harness.store.list(f"{ROOT}/raw/")])
        self.close()

    def calls(self, *, summarised: bool = True) -> FaultyStore:
        """The calls that a call makes to plan."""
        store = FaultyStore(self.harness.store)
        planner = self.planner(store)
        (planner if summarised else replace(planner, summarised=None)).plan()
        return store


@pytest.mark.parametrize("seed", range(2))
def test_a_history_of_a_prefix(seed: int) -> None:
    """Objects are written, replaced, deleted and dead-lettered, and their dates closed: all plans are the same."""
    bucket, random = Bucket(), Random(seed)
    names = [f"2026-01-0{day}-{name}.ndjson" for day in (1, 2, 3) for name in "abc"]

    def fail() -> None:
        bucket.write(random.choice(names))
        bucket.planner().plan()
        for uri in bucket.harness.waiting() * 3:
            bucket.harness.runner(engine=FailingEngine(bucket.harness.store, ValueError("too much"))).run([uri])

    def deliver() -> None:
        """A manifest of another planner, whose files have no claims."""
        bucket.write(name := random.choice(names))
        file = bucket.harness.named(f"{ROOT}/raw/{name}")
        manifest = bucket.harness.manifest(f"other-{bucket.lines}", [file])
        bucket.harness.put_manifest(f"other-{bucket.lines}.json", manifest.to_json())
        bucket.harness.run_once()

    doings = [
        *(lambda: bucket.write(random.choice(names)), bucket.compact, bucket.close) * 3,
        *(lambda: bucket.harness.store.delete([f"{ROOT}/raw/{random.choice(names)}"]), fail, deliver),
    ]
    bucket.write(names[0])
    bucket.compact()
    for _ in range(25):
        random.choice(doings)()
    bucket.close()
    bucket.write(names[0])
    bucket.compact()
    assert bucket.compare().manifests == []
    assert StoredSummarisedFiles(bucket.harness.store, bucket.harness.layout).known()[0] > 0  # type: ignore[index]


def test_new_objects_cost_the_same_after_more_closed_dates() -> None:
    """Ten more closed dates cost no call more; by their records, each costs some."""
    bucket, found, by_records = Bucket(), list[int](), list[int]()
    for first, last in ((1, 2), (3, 15)):
        bucket.history(first, last)
        bucket.write(f"2026-01-20-{first}.ndjson")
        bucket.compact()  # learns
        bucket.write(f"2026-01-21-{first}.ndjson")
        by_records.append(bucket.calls(summarised=False).calls["any"])
        bucket.write(f"2026-01-22-{first}.ndjson")
        found.append(bucket.calls().calls["any"])
    # A run of the index for each date until sixteen of them are merged, and the totals know the dates.
    assert found[1] <= found[0] + 2 * 13
    assert by_records[1] >= by_records[0] + 3 * 13


def test_a_replaced_object_of_a_closed_date() -> None:
    """It is found by its name, and its manifest is the only one of that date that is read."""
    bucket = Bucket()
    bucket.history(1, 3)
    bucket.write("2026-01-02-x.ndjson")
    plan = bucket.compact()
    assert (plan.replaced, len(plan.manifests)) == (1, 0)
    store = bucket.calls()
    assert store.calls["read"] < 20


def test_an_index_of_another_log_is_forgotten() -> None:
    """As after dates were closed anew: the summary in its last place is another one."""
    bucket = Bucket()
    bucket.history(1, 2)
    bucket.write("2026-01-20-new.ndjson")
    bucket.compact()
    harness = bucket.harness
    listed = [info.uri for info in harness.store.list(harness.layout.closed_folder)]
    harness.store.delete([*listed, harness.layout.closing_begun, harness.layout.closed_totals])
    bucket.close()
    bucket.write("2026-01-01-x.ndjson")
    assert bucket.compact().replaced == 1
    bucket.write("2026-01-21-new.ndjson")
    assert len(bucket.compact().manifests) == 1


def test_an_index_that_cannot_be_written_ends_the_call() -> None:
    """As any write of the state; the next call writes it."""
    bucket = Bucket()
    bucket.history(1, 2)
    bucket.write("2026-01-01-x.ndjson")
    store = FaultyStore(bucket.harness.store)
    store.unavailable_at(1, "writer")
    with pytest.raises(StoreUnavailable):
        bucket.planner(store).plan()
    assert bucket.compact().replaced == 1


def test_files_of_a_disk_are_not_found_by_name_only() -> None:
    """Versions and beginnings are not in the index, so all records are read."""
    harness = Harness(root=ROOT)
    memory = StoredSummarisedFiles(harness.store, harness.layout)
    assert memory.naming(["/a"], ["1-2"]) is None
    with pytest.raises(LookupError):
        memory.shorter(1)
    assert list(memory.shorter(0)) == []


def test_a_damaged_index() -> None:
    """All records are read then."""
    bucket = Bucket()
    bucket.history(1, 2)
    bucket.write("2026-01-20-new.ndjson")
    bucket.compact()
    store = bucket.harness.store
    for info in list(store.list(bucket.harness.layout.closed_names)):
        store.put(info.uri, store.read(info.uri)[:-1])
    bucket.write("2026-01-01-x.ndjson")
    bucket.write("2026-01-21-new.ndjson")
    plan = bucket.compact()
    assert (plan.replaced, len(plan.manifests)) == (1, 1)
