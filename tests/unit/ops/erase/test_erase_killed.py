"""An erasure that dies at any change of the store and is repeated ends as one that did not; no row is seen twice."""

from collections import Counter
from contextlib import suppress

import pytest

from compactor.core.documents.changes import Erasure, Why
from tests.support.erasing import REJECTS, ROWS, check_tidy, deliver, erase, holding, others
from tests.support.harness import DiedError, Harness
from tests.support.rebuilding import NEVER, WatchedStore, visible_rows

FEWEST_CHANGES = 40


def compacted(*, with_table: bool = False) -> Harness:
    harness = Harness(table={} if with_table else None)
    deliver(harness)
    harness.run_once()
    return harness


def changes(*, with_table: bool = False) -> int:
    """How often a whole erasure changes the store."""
    harness = compacted(with_table=with_table)
    store = WatchedStore(harness.store)
    erase(harness, store=store)
    assert store.changes > FEWEST_CHANGES
    return store.changes


def killed_and_repeated(die_at: int, *, with_table: bool = False) -> None:
    harness = compacted(with_table=with_table)
    kept, before = others(harness), visible_rows(harness)
    seen = list[Counter[str]]()
    store = WatchedStore(harness.store, die_at, on_change=lambda: seen.append(visible_rows(harness) - before))
    with suppress(DiedError):
        erase(harness, store=store)
    assert store.has_died is (die_at != NEVER)
    assert with_table or not any(seen)
    report = erase(harness)
    assert (report.refused, report.failed, report.discrepancies) == ((), (), ())
    assert holding(harness) == []
    assert recorded(harness) == {"m1": (ROWS, REJECTS), "m2": (ROWS, REJECTS)}
    assert (harness.output_rows(), harness.rejects()) == kept
    found = harness.verification()
    assert found.rows + found.rejected_lines + found.erased_lines == found.lines
    harness.run_once()
    check_tidy(harness)


def recorded(harness: Harness) -> dict[str, tuple[int, int]]:
    """The rows and rejected lines of each manifest that are on record as erased, once, by the erasure that did it."""
    layout, found = harness.layout, dict[str, tuple[int, int]]()
    uris = [info.uri for info in harness.store.list(layout.changes_folder(Why.ERASED))]
    for done in (harness.ledger.record(uri, Erasure) for uri in uris):
        for each in done.manifests:
            erased = harness.commit(each.manifest_id).erased
            assert erased is not None
            assert (each.manifest_id in found, erased.erasures) == (False, [done.id])
            found[each.manifest_id] = each.rows, each.rejected_lines
    return found


@pytest.mark.parametrize("with_table", [False, True], ids=["files", "table"])
def test_killed_in_the_middle(*, with_table: bool) -> None:
    """Right after the first manifest was decided, of two."""
    killed_and_repeated(FEWEST_CHANGES // 2, with_table=with_table)


@pytest.mark.full
@pytest.mark.parametrize("with_table", [False, True], ids=["files", "table"])
def test_killed_at_every_change(*, with_table: bool) -> None:
    """The same at each of them."""
    for die_at in range(changes(with_table=with_table)):
        killed_and_repeated(die_at, with_table=with_table)
