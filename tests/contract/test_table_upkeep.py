"""What every catalog does for the upkeep of a table: one suite, over each implementation."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from compactor.core.errors import OperatorError, TableCommitUnknown, TableConflict
from compactor.table.catalog import TableChange, TableHead
from compactor.table.upkeep import TableHistory, leftovers
from tests.contract.test_table_catalogs import CASES, added, live, now
from tests.support.table_catalogs import CatalogCase, version
from tests.support.table_upkeep import OWNER, maintainer

LATER = datetime.now(UTC) + timedelta(days=3)


@pytest.fixture(params=["memory", "sql", pytest.param("rest", marks=pytest.mark.full)])
def case(request: pytest.FixtureRequest) -> CatalogCase:
    return CASES[request.param](request)


@pytest.fixture
def heads(case: CatalogCase) -> list[TableHead]:
    """The heads after each of four batches, of one file each."""
    head, made = case.catalog.create(OWNER, version(1)), list[TableHead]()
    for number in range(1, 5):
        head = added(case, head, number, f"f{number}")
        made.append(head)
    return made


def history(case: CatalogCase) -> TableHistory:
    found = case.catalog.history()
    assert found is not None
    return found[1]


def ids(case: CatalogCase) -> set[int]:
    return {each.snapshot_id for each in history(case).snapshots}


def number(head: TableHead) -> int:
    assert head.snapshot_id is not None
    return head.snapshot_id


def test_the_history_of_a_table(case: CatalogCase, heads: list[TableHead]) -> None:
    """Has each snapshot with the one before it, the branch, and the manifests of the current one."""
    found = history(case)
    assert {each.snapshot_id: each.parent_id for each in found.snapshots} == {
        number(head): before.snapshot_id if before else None
        for before, head in zip([None, *heads], heads, strict=False)
    }
    assert [(each.snapshot_id, each.is_branch) for each in found.refs] == [(heads[-1].snapshot_id, True)]
    assert len(found.manifest_bytes) == 4
    assert not found.keeps_all
    case.tag(number(heads[0]))
    assert (heads[0].snapshot_id, False) in [(each.snapshot_id, each.is_branch) for each in history(case).refs]


def test_there_is_no_table(case: CatalogCase) -> None:
    """Then there is nothing to do."""
    assert case.catalog.history() is None
    assert case.catalog.folder() is None
    assert not maintainer(case.catalog, LATER).maintain().exists


def test_snapshots_expire(case: CatalogCase, heads: list[TableHead]) -> None:
    """Those that are named, and no others; owner, fence, columns and files stay, and the next batch is taken."""
    gone, before = [number(each) for each in heads[:2]], live(case)
    case.catalog.expire(heads[-1], gone)
    assert (now(case), live(case)) == (heads[-1], before)
    assert ids(case) == {number(each) for each in heads[2:]}
    assert live(case, heads[2].snapshot_id) == before[:3]
    with pytest.raises(OperatorError):
        list(case.catalog.live_files(gone[0]))
    assert added(case, heads[-1], 5, "f5").fence == 5


def test_a_head_that_is_past(case: CatalogCase, heads: list[TableHead]) -> None:
    """A job has committed meanwhile: nothing is done, for what was decided may no longer hold."""
    past, other = heads[2], case.other()
    with pytest.raises(TableConflict):
        other.expire(past, [number(heads[0])])
    with pytest.raises(TableConflict):
        other.merge_manifests(past)
    assert ids(case) == {number(each) for each in heads}
    assert len(history(case).manifest_bytes) == 4


def test_what_expired_before(case: CatalogCase, heads: list[TableHead]) -> None:
    """Is no refusal: another process may do the upkeep, too."""
    try:
        for _ in range(2):
            case.catalog.expire(heads[-1], [number(heads[0])])
    except TableCommitUnknown:
        pass
    assert number(heads[0]) not in ids(case)


def test_manifests_are_merged(case: CatalogCase, heads: list[TableHead]) -> None:
    """Into one here, with the same files; the fence stays, and a change for the head before it is too late."""
    before = list(case.catalog.live_files())
    case.catalog.merge_manifests(heads[-1])
    head = now(case)
    assert (head.fence, head.refused, head.owner) == (4, 0, OWNER)
    assert head.snapshot_id != heads[-1].snapshot_id
    assert len(history(case).manifest_bytes) == 1
    assert sorted(case.catalog.live_files(), key=str) == sorted(before, key=str)
    with pytest.raises(TableConflict):
        case.other().commit(heads[-1], TableChange(5, (case.file("f5"),)))
    assert added(case, head, 5, "f5").fence == 5
    assert len(live(case)) == 5


def test_what_the_folder_has(case: CatalogCase, heads: list[TableHead]) -> None:
    """Each file of it is needed, until a snapshot has expired; those that only this one needs are found before that."""
    folder, gone = case.catalog.folder(), [number(each) for each in heads[:2]]
    case.age(2)
    assert folder is not None
    assert {each.name for each in folder.files if each.name.endswith(".avro")} <= folder.named
    without = case.catalog.folder(gone)
    assert without is not None
    lists = {each.name for each in without.files if each.name.endswith(".avro")} - without.named
    assert len(lists) == 2  # their manifests are in use
    case.catalog.expire(heads[-1], gone)
    after = case.catalog.folder()
    assert after is not None
    going = {each.name for each in leftovers(after, LATER)}
    assert going == lists
    assert case.catalog.remove(going) == len(going)
    assert case.catalog.remove(going) == 0
    assert live(case, heads[2].snapshot_id) == live(case)[:3]


def test_all_of_it(case: CatalogCase, heads: list[TableHead]) -> None:
    """What is kept can be read; what is tagged, too; a second call has nothing to do."""
    case.tag(number(heads[1]))
    case.age(2)
    keeps = [heads[1], heads[3]]
    before = {number(each): live(case, each.snapshot_id) for each in keeps}
    files = names(case)
    foreseen = maintainer(case.catalog, LATER).maintain(dry_run=True)
    assert (ids(case), names(case)) == ({number(each) for each in heads}, files)
    report = maintainer(case.catalog, LATER).maintain()
    assert (report.expired_snapshots, report.snapshots, report.removed_files) == (2, 2, 2)
    assert replace(foreseen, dry_run=False) == report
    assert ids(case) == before.keys()
    assert {each: live(case, each) for each in before} == before
    again = maintainer(case.catalog, LATER).maintain()
    assert (again.expired_snapshots, again.merged_manifests, again.removed_files) == (0, 0, 0)


def test_files_of_a_change_that_may_still_land(case: CatalogCase, heads: list[TableHead]) -> None:
    """Stay as long as the current snapshot is no later than they; then they go, and those of strangers stay."""
    left, strange = f"{uuid.uuid4()}-m0.avro", {"notes.txt", "m0.avro", "a.stats"}
    for name in (left, *strange):
        case.leave(name)
    assert maintainer(case.catalog, LATER, least=9).maintain().removed_files == 0
    case.age(1 / 24)
    assert maintainer(case.catalog, LATER, least=9).maintain().removed_files == 1
    assert names(case) & {left, *strange} == strange
    assert len(live(case, heads[0].snapshot_id)) == 1


def test_a_table_that_was_dropped(case: CatalogCase) -> None:
    """The one that is made in its place may have its folder: then what is left of the dropped one stays."""
    if case.drop is None:
        pytest.skip("this catalog cannot drop its table")
    added(case, case.catalog.create(OWNER, version(1)), 1, "before")
    before = names(case)
    case.drop()
    head = added(case, case.catalog.create(OWNER, version(1)), 1, "f1")
    added(case, head, 2, "f2")
    case.age(2)
    assert maintainer(case.catalog, LATER).maintain().expired_snapshots == 1
    assert before & names(case) == (before if case.drop_keeps_files else set())
    assert len(live(case)) == 2


def names(case: CatalogCase) -> set[str]:
    """The files in the folder of metadata."""
    folder = case.catalog.folder()
    return {each.name for each in folder.files} if folder else set()
