"""A plan of a folder finds in the memory of closed dates what it finds in all of their records."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from compactor.adapters.local.sqlite.seen_files import LocalSummarisedFiles
from compactor.sources.file_search import Naming
from compactor.sources.folders.history import Known
from compactor.sources.folders.planning import FolderPlanner
from compactor.sources.plan import Plan
from tests.support.fakes import FaultyStore
from tests.support.histories import HOUR_SECONDS, QUIET_HOURS, closed
from tests.unit.sources.test_folder_life import NAMES, FolderLife

STEPS = 20


@pytest.fixture
def life() -> Iterator["ClosedLife"]:
    life = ClosedLife()
    life.begin()
    yield life
    life.teardown()


class ClosedLife(FolderLife):
    """A folder whose dates are closed between calls. Each plan is made from the memory, and then from the records."""

    compared = 0

    def planner(self, policy, dies=None) -> FolderPlanner:
        planner = replace(super().planner(policy, dies), summarised=self.memory)
        if dies is None:
            self.compare(planner)
        return planner

    @property
    def memory(self) -> LocalSummarisedFiles:
        return LocalSummarisedFiles(str(self.top / "seen.sqlite"))

    def compare(self, planner: FolderPlanner) -> Plan:
        plans = [replace(planner, summarised=each).plan(dry_run=True) for each in (planner.summarised, None)]
        assert said(plans[0]) == said(plans[1])
        self.compared += 1
        return plans[0]

    def close(self) -> None:
        self.harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
        closed(self.harness)

    def _check(self, left_out) -> None:
        """Rows are those of another test: here plans are compared."""


def said(plan: Plan) -> list[object]:
    """A plan without what differs between two dry runs."""
    files = [(each.date, each.files, each.size_bytes) for each in plan.manifests]
    others = {name: getattr(plan, name) for name in Plan.__dataclass_fields__ if name != "manifests"}
    return [files, others]


@pytest.mark.parametrize("seed", range(2))
def test_a_life_with_closed_dates(seed: int, life: ClosedLife) -> None:
    """Files are written, moved, touched, replaced and removed, and their dates closed: all plans are the same."""
    random = Random(seed)
    life.write(NAMES[0], 2)
    life.compact("quarantine", None)
    life.close()
    doings = [
        *(lambda: life.write(random.choice(NAMES), 2), lambda: life.append(random.choice(NAMES))),
        *(lambda: life.touch(random.choice(NAMES)), lambda: life.remove(random.choice(NAMES))),
        *(lambda: life.rename(random.choice(NAMES), random.choice(NAMES)), life.close),
        *(lambda: life.rotate(random.choice(NAMES), random.choice(NAMES)),) * 2,
        *(lambda: life.compact("rebuild", None), lambda: life.compact("quarantine", None)) * 2,
        lambda: life.restore_earlier(random.choice(NAMES), 1),
    ]
    for _ in range(STEPS):
        random.choice(doings)()
    life.close()
    life.write(NAMES[0], 2)
    life.compact("rebuild", None)
    assert life.compared > 2
    reached = life.memory.known()
    assert reached is not None
    assert reached.place


def history(life: ClosedLife, first: int, last: int) -> None:
    """Closed dates with a file each, which is gone; and a new file, which is longer."""
    names = [f"2026-01-{day:02d}-x.ndjson" for day in range(first, last + 1)]
    for name in names:
        life.write(name, 2)
    life.compact("quarantine", None)
    for name in names:
        life.remove(name)
    life.close()
    life.write(f"2025-12-{last + 10}-new.ndjson", 3)


def calls(life: ClosedLife, *, with_memory: bool = True) -> int:
    """The calls that a plan makes, as those of a store that gives a thousand names at a time."""
    store = FaultyStore(life.harness.store)
    planner = replace(FolderLife.planner(life, "quarantine"), summarised=life.memory)
    planner = planner if with_memory else replace(planner, summarised=None)
    state = replace(planner.planner.state, store=store, ledger=life.harness.app(store=store).ledger)
    replace(planner, planner=replace(planner.planner, state=state)).plan(dry_run=True)
    return store.calls["any"]


def test_new_files_cost_the_same_after_more_closed_dates(life: ClosedLife) -> None:
    """Ten more closed dates cost no call more; by their records, each costs some."""
    history(life, 1, 2)
    life.compact("quarantine", None)
    life.write("2025-12-30-newer.ndjson", 3)
    few, few_by_records = calls(life), calls(life, with_memory=False)
    for name in ("2025-12-12-new.ndjson", "2025-12-30-newer.ndjson"):
        life.remove(name)
    history(life, 3, 12)
    life.compact("quarantine", None)
    life.write("2025-12-31-newest.ndjson", 3)
    assert calls(life) == few
    assert calls(life, with_memory=False) >= few_by_records + 10


@pytest.mark.parametrize(
    ("happening", "expected"),
    [
        (lambda life: life.rename("a.ndjson", "renamed.ndjson"), (1, 0, 0)),  # found by its version
        (lambda life: life.write("a.ndjson", 1), (0, 1, 0)),  # by its name
        (lambda life: life.rotate("a.ndjson", "grown.ndjson"), (0, 1, 0)),  # by what it begins with
        (lambda life: life.write("other.ndjson", 3), (0, 0, 1)),
    ],
    ids=["renamed", "replaced", "renamed_and_grown", "new"],
)
def test_what_became_of_a_file_of_a_closed_date(happening, expected, life: ClosedLife) -> None:
    """It was renamed, replaced by a shorter one, or renamed and grew; a new file is new."""
    history(life, 1, 2)
    life.write("a.ndjson", 2)
    life.compact("quarantine", None)
    life.close()
    life.write("later.ndjson", 1)
    life.compact("quarantine", None)  # the date is remembered
    happening(life)
    planner = replace(FolderLife.planner(life, "quarantine"), summarised=life.memory)
    plan = life.compare(planner)
    assert (plan.renamed, plan.replaced, len(plan.manifests)) == expected


def test_a_version_that_was_passed_over_comes_back(life: ClosedLife) -> None:
    """What is gone is read once for files that may begin with it, and again after it was there."""
    history(life, 1, 2)
    life.compact("quarantine", None)
    life.write("longer.ndjson", 4)
    life.compact("quarantine", None)
    gone = {each.uri.rpartition("/")[2] for each in life.memory.shorter(9**9)}
    assert not [name for name in gone if name.endswith("-x.ndjson")]
    life.restore_earlier("2026-01-01-x.ndjson", 0)
    life.write("longest.ndjson", 5)
    life.compact("quarantine", None)
    gone = {each.uri.rpartition("/")[2] for each in life.memory.shorter(9**9)}
    assert [name for name in gone if name.endswith("-x.ndjson")] == ["2026-01-01-x.ndjson"]


def test_what_is_remembered_of_another_log_is_forgotten(life: ClosedLife) -> None:
    """As after the state was restored: the summary in the place is another one."""
    history(life, 1, 2)
    life.compact("quarantine", None)
    reached = life.memory.known()
    assert reached is not None
    assert reached.place
    life.memory.forget()
    for place in range(1, reached.place + 1):
        life.memory.reach(Known(place, "of another log"))
    life.write("new.ndjson", 2)
    life.compact("quarantine", None)
    assert life.memory.known() == reached


def test_a_place_is_not_reached_over_a_gap(life: ClosedLife) -> None:
    """Another process has forgotten the files of the summaries before it."""
    life.memory.reach(Known(1, "one"))
    life.memory.reach(Known(3, "three"))
    assert life.memory.known() == Known(1, "one")


def test_a_memory_that_cannot_be_read(life: ClosedLife) -> None:
    """Then all records are read, and the plan is the same."""
    history(life, 1, 2)
    seen = life.top / "seen.sqlite"
    seen.write_bytes(b"no database" * 1000)
    planner = replace(FolderLife.planner(life, "quarantine"), summarised=life.memory)
    assert life.memory.known() is None
    assert life.memory.naming(["/a"], []) is None
    assert not life.memory.add([])
    with pytest.raises(LookupError):
        list(life.memory.shorter(9))
    assert len(life.compare(planner).manifests) == 1


def test_a_dry_run_makes_no_file(life: ClosedLife) -> None:
    """It reads the records of what is not remembered."""
    history(life, 1, 2)
    (life.top / "seen.sqlite").unlink()
    planner = replace(FolderLife.planner(life, "quarantine"), summarised=life.memory)
    life.compare(planner)
    assert not (life.top / "seen.sqlite").exists()


def test_a_name_that_is_no_text(life: ClosedLife) -> None:
    """Bytes that are not UTF-8 are found again."""
    uri = "/raw/\udcff.ndjson"
    naming = Naming("m", uri, "1-2", "compacted", "2026-01-02", 2, "d")
    assert life.memory.add([naming])
    assert [each.id for each in life.memory.naming([uri], []) or ()] == ["m"]
    assert [each.id for each in life.memory.naming([], ["1-2"]) or ()] == ["m"]
    assert [each.key.id for each in life.memory.shorter(2)] == ["m"]
    assert list(life.memory.shorter(1)) == []
