"""What others do while lines are erased: rebuilds, producers that replace files, a table that does not answer."""

from collections.abc import Iterable

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.changes import Erasure, Why
from compactor.core.errors import AccessError, CompactorError, OperatorError, StuckError, TryAgainError
from compactor.ops.table.maintainer import Maintainer
from compactor.wiring import table_sink
from tests.support.erasing import PLAIN, ROWS, check_tidy, deliver, erase, holding
from tests.support.harness import DiedError, Harness, dying_at, sink_of
from tests.support.memory_table import Answer
from tests.support.rebuilding import rebuild


@pytest.fixture
def harness() -> Harness:
    made = Harness()
    deliver(made)
    made.run_once()
    return made


def test_a_rebuild_that_is_faster(harness: Harness) -> None:
    """It brings the rows back that it began with; the erasure says so, and the next call takes them."""
    overtaken = list[str]()

    def on_crash_point(step: CrashPoint, manifest_id: str) -> None:
        if step is CrashPoint.CONVERTED and manifest_id == "m1" and not overtaken:
            overtaken.append(manifest_id)
            assert rebuild(harness, "m1", force=True).rebuilt

    report = erase(harness, on_crash_point=on_crash_point)
    assert [(each.manifest_id, "faster" in each.why) for each in report.refused] == [("m1", True)]
    assert [each.manifest_id for each in report.erased] == ["m2"]
    assert erase(harness).left == 0
    assert holding(harness) == []
    check_tidy(harness)


@pytest.mark.parametrize("step", [CrashPoint.DECIDED, CrashPoint.PUBLISHED_ONE, CrashPoint.DONE])
def test_the_job_finishes_what_was_decided(harness: Harness, step: CrashPoint) -> None:
    """Right after a death, without another erasure."""
    with pytest.raises(DiedError):
        erase(harness, on_crash_point=dying_at(step))
    harness.run_once()
    assert harness.commit("m1").erased is not None
    check_tidy(harness)


def test_an_input_file_that_was_replaced(harness: Harness) -> None:
    """Its new version may have lines that are in no output yet: it is named, not deleted."""
    uri = harness.commit("m1").files[0].uri
    harness.store.put(uri, PLAIN + b"{}\n")
    [held] = [each for each in erase(harness).inputs if not each.deleted]
    assert (held.uri, "replaced" in held.why) == (uri, True)
    assert holding(harness) == [uri]


def test_input_that_may_not_be_deleted(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows and rejects go all the same; each file is named with what the store says."""
    delete = harness.store.delete

    def refusing(uris: Iterable[str]) -> None:
        asked = list(uris)
        if any("/raw/" in uri for uri in asked):
            raise AccessError("s3:DeleteObject is denied")
        delete(asked)

    monkeypatch.setattr(harness.store, "delete", refusing)
    report = erase(harness)
    assert (len(report.erased), report.left) == (2, 8)
    assert {each.why for each in report.inputs} == {"it cannot be deleted: s3:DeleteObject is denied"}
    assert all("/raw/" in uri for uri in holding(harness))


@pytest.mark.parametrize("kind", [TryAgainError, OperatorError, StuckError])
def test_a_table_that_does_not_answer(kind: type[CompactorError], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its earlier snapshots stay for now; the call says that it is not done, and the next one goes on."""
    harness = Harness(table={})
    deliver(harness)
    harness.run_once()

    def silent(_maintainer: Maintainer) -> None:
        raise kind("the catalog does not respond")

    with monkeypatch.context() as patch:
        patch.setattr(Maintainer, "maintain", silent)
        report = erase(harness)
        assert [each.why for each in report.failed] == ["the catalog does not respond"]
    done = harness.ledger.record(harness.layout.change(Why.ERASED, "", report.erasure), Erasure)
    assert (len(done.manifests), done.left) == (2, report.left)
    assert erase(harness).left == 0
    assert table_sink.table_keeper(harness.app()).compare().rows == harness.verification().rows


def test_a_table_that_takes_nothing() -> None:
    """What was decided is on record as erased, although it is published by a later call."""
    harness = Harness(table={})
    deliver(harness)
    harness.run_once()
    sink_of(harness).answers = lambda: Answer.UNAVAILABLE
    report = erase(harness)
    assert ({each.manifest_id for each in report.failed}, report.erased) == ({"m1", "m2", ""}, ())
    done = harness.ledger.record(harness.layout.change(Why.ERASED, "", report.erasure), Erasure)
    assert [(each.manifest_id, each.rows) for each in done.manifests] == [("m1", ROWS), ("m2", ROWS)]
    sink_of(harness).answers = lambda: Answer.WELL
    assert ["of failed commits" in each.why for each in erase(harness).refused] == [True]  # in the table's metadata
    assert holding(harness) == []


def test_rows_that_the_table_never_had() -> None:
    """The table was set, and no `table repair` has added what was there before: all goes all the same."""
    plain = Harness()
    deliver(plain)
    plain.run_once()
    harness = Harness(table={}, store=plain.store)
    assert erase(harness).left == 0
    assert holding(harness) == []
    assert table_sink.table_keeper(harness.app()).repair().adopted == 1
    check_tidy(harness)
