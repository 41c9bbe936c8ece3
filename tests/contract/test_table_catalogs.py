"""What every catalog of a table sink does: one suite, over each implementation."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compactor.core.errors import OperatorError, TableCommitUnknown, TableConflict
from compactor.table.catalog import TableChange, TableHead
from tests.support.iceberg_tables import iceberg_case, rest_place, sql_place
from tests.support.rest_catalog import RestCatalogServer
from tests.support.table_catalogs import OWNER, CatalogCase, memory_case, now, version

CASES: dict[str, Callable[[pytest.FixtureRequest], CatalogCase]] = {
    "memory": lambda _: memory_case(),
    "sql": lambda request: sql_case(request.getfixturevalue("tmp_path")),
    "rest": lambda request: rest_case(request.getfixturevalue("rest_catalog"), request.getfixturevalue("tmp_path")),
}
"""How each implementation is made, with an empty place for one table."""


@pytest.fixture(params=["memory", "sql", pytest.param("rest", marks=pytest.mark.full)])
def case(request: pytest.FixtureRequest) -> CatalogCase:
    return CASES[request.param](request)


def sql_case(folder: Path) -> CatalogCase:
    """A table in a catalog in SQLite."""
    return iceberg_case(sql_place(folder), folder)


def rest_case(server: RestCatalogServer, folder: Path) -> CatalogCase:
    """A table of its own in the catalog of a server."""
    return iceberg_case(rest_place(server.url), folder, f"lake.events_{uuid.uuid4().hex}")


def live(case: CatalogCase, snapshot_id: int | None = None) -> list[str]:
    return sorted(file.uri for file in case.catalog.live_files(snapshot_id))


def added(case: CatalogCase, head: TableHead, batch: int, *names: str) -> TableHead:
    """The head after a batch of files."""
    case.catalog.commit(head, TableChange(batch, tuple(case.file(name) for name in names)))
    return now(case)


def test_a_new_table(case: CatalogCase) -> None:
    """There is none before it is made; then it has its owner, fence 0, no files and the columns of a version."""
    assert case.catalog.head() is None
    made = case.catalog.create(OWNER, version(1))
    assert (made.owner, made.fence, made.schema_version) == (OWNER, 0, 1)
    assert now(case) == made
    assert live(case) == []


def test_a_table_is_made_once(case: CatalogCase) -> None:
    """Who comes second gets the first one's table, whatever it wanted."""
    made = case.catalog.create(OWNER, version(1))
    again = case.other().create("file:///other/", version(1))
    assert (again.owner, again.table_id) == (OWNER, made.table_id)


def test_a_change_is_made_as_a_whole(case: CatalogCase) -> None:
    """Files, removals, fence and columns are there at once, with the figures that they were given."""
    head = added(case, case.catalog.create(OWNER, version(1)), 1, "a", "b")
    assert (head.fence, live(case)) == (1, sorted([case.file("a").uri, case.file("b").uri]))
    assert {file.records for file in case.catalog.live_files()} == {case.file("a").records}
    change = TableChange(2, (case.file("c", 2),), (case.file("a").uri,), version(2))
    snapshot = case.catalog.commit(head, change)
    head = now(case)
    assert (head.fence, head.schema_version, head.snapshot_id) == (2, 2, snapshot)
    assert live(case) == sorted([case.file("b").uri, case.file("c", 2).uri])
    assert {file.date for file in case.catalog.live_files()} == {case.file("a").date}
    assert case.file("c", 2) in list(case.catalog.live_files())


def test_a_removed_file_that_is_not_live(case: CatalogCase) -> None:
    """Is no error: a table that is made again may never have had it."""
    head = added(case, case.catalog.create(OWNER, version(1)), 1, "a")
    case.catalog.commit(head, TableChange(2, (case.file("b"),), (case.file("never").uri,)))
    assert live(case) == sorted([case.file("a").uri, case.file("b").uri])


def test_files_of_earlier_snapshots(case: CatalogCase) -> None:
    """A file that was replaced by one with the same rows is one of the table's until its snapshots expire."""
    first, second = case.file("a"), case.file("b")
    head = added(case, case.catalog.create(OWNER, version(1)), 1, "a")
    folder = first.uri.rpartition("/")[0] + "/"
    case.catalog.commit(head, TableChange(2, (second,), (first.uri,), keeps_rows=True))
    assert (live(case), case.catalog.files_below("/elsewhere/")) == ([second.uri], frozenset())
    assert case.catalog.files_below(folder) == {first.uri, second.uri}
    assert head.snapshot_id is not None
    case.catalog.expire(now(case), [head.snapshot_id])
    assert case.catalog.files_below(folder) == {second.uri}


def test_a_change_without_files(case: CatalogCase) -> None:
    """Moves the fence all the same."""
    head = added(case, case.catalog.create(OWNER, version(1)), 1)
    assert (head.fence, live(case)) == (1, [])


def test_a_batch_that_is_passed_over(case: CatalogCase) -> None:
    """Moves the fence, and the head says so from then on; files and columns stay, and the batch itself is too late."""
    first = added(case, case.catalog.create(OWNER, version(1)), 1, "a")
    assert first.refused == 0
    case.catalog.commit(first, TableChange(2, (), is_refused=True))
    head = now(case)
    assert (head.fence, head.refused, head.schema_version, live(case)) == (2, 2, 1, [case.file("a").uri])
    with pytest.raises(TableConflict):
        case.other().commit(first, TableChange(2, (case.file("b", 2),), schema=version(2)))
    head = added(case, head, 3, "c")
    assert (head.fence, head.refused) == (3, 2)
    assert live(case) == sorted([case.file("a").uri, case.file("c").uri])


def test_a_head_that_is_past(case: CatalogCase) -> None:
    """An append conflicts with any other change: nothing is done to the table."""
    head = case.catalog.create(OWNER, version(1))
    added(case, head, 1, "a")
    with pytest.raises(TableConflict):
        case.other().commit(head, TableChange(1, (case.file("a"),)))
    assert (now(case).fence, live(case)) == (1, [case.file("a").uri])


def test_a_table_that_was_made_again(case: CatalogCase) -> None:
    """It is another one, although both are without a snapshot."""
    if case.drop is None:
        pytest.skip("this catalog cannot drop its table")
    head = case.catalog.create(OWNER, version(1))
    case.drop()
    assert case.catalog.head() is None
    assert case.catalog.create(OWNER, version(1)).table_id != head.table_id
    with pytest.raises(TableConflict):
        case.catalog.commit(head, TableChange(1, (case.file("a"),)))
    assert live(case) == []


def test_many_at_once(case: CatalogCase) -> None:
    """Of several changes that are based on one head, one is made."""
    head = case.catalog.create(OWNER, version(1))
    others = [case.other() for _ in range(4)]

    def commit(index: int) -> bool:
        try:
            others[index].commit(head, TableChange(1, (case.file(f"f{index}"),)))
        except (TableConflict, TableCommitUnknown):
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(commit, range(4)))
    assert won.count(True) <= 1
    assert len(live(case)) == 1
    assert now(case).fence == 1


def test_earlier_snapshots(case: CatalogCase) -> None:
    """Are there to be read as they were; one that never was is refused."""
    head = added(case, case.catalog.create(OWNER, version(1)), 1, "a")
    added(case, head, 2, "b")
    assert live(case, head.snapshot_id) == [case.file("a").uri]
    with pytest.raises(OperatorError):
        list(case.catalog.live_files(4711))


def test_the_snapshot_of_a_batch(case: CatalogCase) -> None:
    """It is found among the snapshots by the number of the batch."""
    assert case.catalog.snapshot_of(1) is None
    first = added(case, case.catalog.create(OWNER, version(1)), 1, "a")
    second = added(case, first, 2, "b")
    found = [case.catalog.snapshot_of(batch) for batch in (1, 2, 3)]
    assert found == [first.snapshot_id, second.snapshot_id, None]
