"""`trace` with a table: the batch and the snapshot that took a manifest, or that it waits."""

from contextlib import suppress
from datetime import timedelta

import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.crash_points import CrashPoint
from compactor.core.documents.table_records import BatchedManifest
from compactor.core.layout import ManifestKey
from compactor.ledger.table.batches import TableBatches
from compactor.ops.trace.trace import TraceResult
from compactor.wiring import operating, streaming, table_sink
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness, dying_at, sink_of
from tests.support.rebuilding import rebuild


@pytest.fixture
def harness() -> Harness:
    """Three manifests, in three batches."""
    made = Harness(table={})
    for name in ("m1", "m2", "m3"):
        made.deliver(name, GOOD, FLAWED)
        made.run_once()
        made.clock.advance(600)
    return made


def traced(harness: Harness, thing: str) -> TraceResult:
    app = harness.app()
    return operating.tracer(app).trace(thing) if "/" in thing else operating.tracer(app).trace_manifest(thing)


def words(harness: Harness, thing: str) -> str:
    found = traced(harness, thing).table
    assert found is not None
    return found.meaning


def test_what_the_table_has(harness: Harness) -> None:
    """A manifest, its input, its output and its rejects all name the batch and the snapshot that took it."""
    commit = harness.commit("m2")
    expected = "lake.events: in batch 2, snapshot 2"
    for thing in ("m2", commit.files[0].uri, commit.outputs[0].final, commit.rejects[0].final):
        assert words(harness, thing) == expected
    assert words(harness, "m3") == "lake.events: in batch 3, snapshot 3"


def test_an_expired_snapshot(harness: Harness) -> None:
    """The batch is on record for ever."""
    sink_of(harness).rewrite()
    sink_of(harness).forget()
    assert words(harness, "m3") == "lake.events: in batch 3, snapshot expired"


def test_a_catalog_that_is_down(harness: Harness) -> None:
    """Only the snapshot is not known."""
    sink_of(harness).is_down = True
    assert words(harness, "m1") == "lake.events: in batch 1, snapshot not known: the catalog does not respond"
    assert traced(harness, "m1").meaning.startswith("done")


@pytest.mark.parametrize("is_batched", [False, True])
def test_what_waits(harness: Harness, *, is_batched: bool) -> None:
    """Until it is done, it waits, also if a batch on record has it already."""
    harness.deliver("m4", GOOD)
    source = ListedManifests(harness.store, harness.layout.manifests_folder)
    with suppress(DiedError):
        streaming.service_on(harness.app(on_crash_point=dying_at(CrashPoint.DECIDED)), harness.engine(), source).run(
            once=True
        )
    if is_batched:
        batches = TableBatches(harness.app().state)
        batches.create(4, [BatchedManifest(date=DAY, manifest_id="m4")])
    harness.clock.advance(120)
    batch = "; it is in batch 4" if is_batched else ""
    assert words(harness, "m4") == f"lake.events: waits for the table, for 2 min{batch}"


def test_what_is_held_back(harness: Harness) -> None:
    """It waits for nothing: the catalog refuses it, and the trace has the reason and what helps, until that is done."""
    table = sink_of(harness)
    table.exists = lambda uri: "/m4-" not in uri
    harness.deliver("m4", GOOD)
    assert [*harness.run_once().stuck] == ["m4"]
    for is_down in (False, True):
        table.is_down = is_down
        found = traced(harness, "m4")
        assert found.table is not None
        assert (found.table.state, found.table.batch, found.table.waiting_seconds) == ("held_back", 4, None)
        assert found.table.meaning == f"lake.events: held back, because the catalog refuses it: {found.table.reason}"
        assert "expected the files of the change" in found.table.reason
        assert found.next_moves == ["compactor table repair", "compactor rebuild --manifest m4"]
        assert found.needs_operator
    table.is_down, table.exists = False, lambda _: True
    assert rebuild(harness, "m4").failed == ()
    assert words(harness, "m4").startswith("lake.events: in batch ")
    assert not traced(harness, "m4").needs_operator


def test_what_was_added_long_after_it_was_decided(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its batch is behind those that are searched: the table itself tells that it has the files, if it answers."""
    monkeypatch.setattr("compactor.ledger.table.batches.SEARCHED_BATCHES", 0)
    found = traced(harness, "m2")
    assert found.table is not None
    assert (found.table.state, found.table.batch, found.next_moves) == ("listed", None, [])
    assert found.table.meaning == "lake.events: the table has its files, by a batch long after it was decided"
    sink_of(harness).is_down = True
    assert words(harness, "m2").endswith("whether the table has its files is not known: the catalog does not respond")


def test_a_damaged_record_of_what_is_held_back(harness: Harness) -> None:
    """The rest of the trace does not need it."""
    sink_of(harness).exists = lambda uri: "/m4-" not in uri
    harness.deliver("m4", GOOD)
    harness.run_once()
    harness.store.put(harness.layout.held(ManifestKey(DAY, "m4")), b"{")
    assert words(harness, "m4").startswith("lake.events: held back, because the catalog refuses it: ")


def test_from_before_the_table() -> None:
    """It is in no batch until a rebuild adds it, and the trace names the command; without rows there is nothing."""
    plain = Harness()
    plain.deliver("m1", GOOD)
    plain.deliver("m2", b"no json\n")
    plain.run_once()
    listed = Harness(table={}, store=plain.store)
    found = traced(listed, "m1")
    assert found.table is not None
    assert (found.table.state, found.next_moves) == ("unlisted", ["compactor table repair"])
    listed.clock.advance(86_400)
    table_sink.table_keeper(listed.app()).repair()
    assert words(listed, "m1") == "lake.events: in batch 1, snapshot 1"
    assert traced(listed, "m2").table is None
    assert traced(plain, "m1").table is None


def test_the_search_begins_at_the_time_of_the_manifest(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """So its cost does not grow with the batches before it; clocks may differ a little."""
    monkeypatch.setattr("compactor.ledger.table.batches.SEARCHED_BATCHES", 1)
    batches = TableBatches(harness.app().state)
    for number, name in enumerate(("m1", "m2", "m3"), 1):
        decided_at = harness.commit(name).decided_at
        for since in (decided_at, decided_at + timedelta(seconds=200)):
            assert batches.number_of(ManifestKey(DAY, name), 1, since=since) == number
    assert batches.number_of(ManifestKey(DAY, "m1"), 2, since=harness.commit("m1").decided_at) is None
