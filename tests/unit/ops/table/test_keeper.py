"""`compactor table check` finds what differs from the ledger; `repair` makes a lost table again from it alone."""

from dataclasses import replace

import pytest

from compactor.core.documents.changes import Commit, StagedFile
from compactor.core.errors import OperatorError, SettingsError
from compactor.job import table_commits
from compactor.job.report import ManifestsUnfinished
from compactor.ops.table.keeper import TableReport
from compactor.table.catalog import TableFile, TableHead
from compactor.wiring import operating, table_sink
from tests.support.expiring import NEXT_DAY, closed_days, compacted, expire, wait_and_close
from tests.support.harness import DAY, GOOD, Harness, sink_of
from tests.support.memory_table import MemoryTable
from tests.support.meters import on_each
from tests.support.rebuilding import rebuild


@pytest.fixture
def harness() -> Harness:
    made = Harness(table={})
    for name in ("m1", "m2"):
        made.deliver(name, GOOD)
        made.run_once()
    return made


def differences(report: TableReport) -> dict[str, int]:
    found = {name: len(getattr(report, name)) for name in ("missing", "surplus", "doubled", "differing")}
    return {name: many for name, many in found.items() if many}


def test_a_table_that_agrees(harness: Harness) -> None:
    """It says which batch it is at, and how many files and rows it has; what is only placed is no difference."""
    report = table_sink.table_keeper(harness.app()).compare()
    assert (report.last_batch, report.recorded_batch, report.rows, report.needs_operator) == (2, 2, 4, False)
    assert (report.files, report.schema_version) == (len(list(sink_of(harness).live_files())), 1)
    sink_of(harness).rewrite()
    assert differences(table_sink.table_keeper(harness.app()).compare()) == {}


def test_what_differs(harness: Harness) -> None:
    """A file that is lost, of others, there twice, or with other rows is named, each as what it is."""
    table, keeper = sink_of(harness), table_sink.table_keeper(harness.app())
    first, second = table.live_files()

    def replaced(*files: TableFile) -> dict[str, int]:
        head = table.head()
        assert head is not None
        table._replace(head, files)
        return differences(keeper.compare())

    assert replaced(first) == {"missing": 1}
    assert replaced(first, second, TableFile("/w/output/other.parquet", 1, 1, "2026-01-02")) == {"surplus": 1}
    assert replaced(first, second, second) == {"doubled": 1}
    assert replaced(first, TableFile(second.uri, second.size_bytes, 7, second.date)) == {"differing": 1}
    assert replaced(first, second) == {}


def test_a_rebuild_meanwhile(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger is read before the table: files that a rebuild has replaced by then are not missing."""
    keeper, table = table_sink.table_keeper(harness.app()), sink_of(harness)
    head, rebuilt = table.head, list[str]()

    def slow() -> TableHead | None:
        if not rebuilt:
            rebuilt.append("m1")
            assert rebuild(harness, "m1", force=True).failed == ()
        return head()

    monkeypatch.setattr(MemoryTable, "head", lambda _: slow())
    report = keeper.compare()
    assert (rebuilt, differences(report), report.needs_operator) == (["m1"], {}, False)


def test_a_lost_table(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job commits nothing to a new one until it was rebuilt; then it has the same files, and the job goes on."""
    monkeypatch.setattr(table_commits, "GIVES_UP_AFTER", 1)
    table = sink_of(harness)
    before = sorted(file.uri for file in table.live_files())
    table.drop()
    assert table_sink.table_keeper(harness.app()).compare().needs_operator
    harness.deliver("m3", GOOD)
    with pytest.raises(ManifestsUnfinished, match="`compactor table repair`"):
        harness.run_once()
    app, counted = harness.app(), list[int]()
    report = table_sink.table_keeper(on_each(app, lambda: counted.append(app.state.meter.done))).repair()
    assert (report.applied, report.adopted, counted[:2], report.needs_operator) == (2, 0, [1, 2], False)
    assert sorted(file.uri for file in table.live_files()) == before
    assert harness.run_once().committed == 1
    assert differences(table_sink.table_keeper(harness.app()).compare()) == {}
    assert table_sink.table_keeper(harness.app()).repair().applied == 0


def test_manifests_from_before_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are missing at first; a rebuild adds them, once, beside what the job has committed since."""
    monkeypatch.setattr(table_sink, "MANIFESTS_PER_COMMIT", 2)
    plain = Harness()
    for name in ("m1", "m2", "m3"):
        plain.deliver(name, GOOD)
    plain.run_once()
    harness = Harness(table={}, store=plain.store)
    harness.deliver("m4", GOOD)
    harness.run_once()
    assert differences(table_sink.table_keeper(harness.app()).compare()) == {"missing": 3}
    report = table_sink.table_keeper(harness.app()).repair()
    assert (report.adopted, report.last_batch, report.needs_operator) == (3, 3, False)
    assert table_sink.table_keeper(harness.app()).repair().adopted == 0
    harness.deliver("m5", GOOD)
    harness.run_once()
    assert differences(table_sink.table_keeper(harness.app()).compare()) == {}


@pytest.mark.parametrize("adopted_first", [False, True])
def test_manifests_from_before_the_table_that_were_rebuilt(*, adopted_first: bool) -> None:
    """What is rebuilt goes into the table, whether or not it was there before."""
    plain = Harness()
    for name in ("m1", "m2"):
        plain.deliver(name, GOOD)
    plain.run_once()
    harness = Harness(table={}, store=plain.store)
    if adopted_first:
        table_sink.table_keeper(harness.app()).repair()
    assert rebuild(harness, "m1", force=True).failed == ()
    report = table_sink.table_keeper(harness.app()).repair()
    assert (report.adopted, report.needs_operator) == (0 if adopted_first else 1, False)
    assert harness.run_once().stuck == {}
    assert sorted(file.uri for file in sink_of(harness).live_files()) == sorted(
        file.final for name in ("m1", "m2") for file in harness.commit(name).outputs
    )
    sink_of(harness).drop()
    assert not table_sink.table_keeper(harness.app()).repair().needs_operator


def test_a_manifest_that_was_rebuilt_before_the_table_was_set() -> None:
    """Its files have the names of before: it is added all the same."""
    plain = Harness()
    plain.deliver("m1", GOOD)
    plain.run_once()
    before = plain.commit("m1").outputs
    plain.store.delete([before[0].final])
    assert rebuild(plain, "m1").failed == ()
    assert [each.final for each in plain.commit("m1").outputs] == [each.final for each in before]
    report = table_sink.table_keeper(Harness(table={}, store=plain.store).app()).repair()
    assert (report.adopted, report.needs_operator) == (1, False)


def test_what_cannot_be_added(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    """The reason is in the report and in the log, and an operator is asked for; the others are added."""
    plain, sink = Harness(store=harness.store), sink_of(harness)
    first = harness.commit("m1").outputs[0].final
    data = plain.store.read(first)
    sink.rewrite(lambda file: replace(file, uri=f"{file.uri}.moved") if file.uri == first else file)
    plain.deliver("m3", GOOD)
    plain.run_once()
    assert rebuild(plain, "m1", force=True).failed == ()
    plain.store.put(first, data)
    report = table_sink.table_keeper(harness.app()).repair()
    assert [(each.manifest_id, each.date, each.generation) for each in report.stuck] == [("m1", DAY, 2)]
    assert "another program may have rewritten them" in report.stuck[0].why
    assert (report.adopted, report.needs_operator, TableReport("", exists=True).needs_operator) == (1, True, False)
    assert TableReport("", exists=True, stuck=report.stuck).needs_operator
    assert [record.getMessage() for record in caplog.records].count("manifest.stuck") == 1


def test_what_is_held_back() -> None:
    """It is named with the reason, as long as the catalog refuses it; a rebuild takes it in, and the job ends it."""
    harness = Harness(table={})
    table = sink_of(harness)
    table.exists = lambda uri: "/m1-" not in uri
    for name in ("m1", "m2", "m3"):
        harness.deliver(name, GOOD)
    report = harness.run_once()
    assert (report.committed, [*report.stuck]) == (2, ["m1"])
    for found in (table_sink.table_keeper(harness.app()).compare(), table_sink.table_keeper(harness.app()).repair()):
        assert ([each.manifest_id for each in found.held], found.differs, found.needs_operator) == (["m1"], False, True)
        assert "expected the files of the change" in found.held[0].reason
    assert harness.run_once().committed == 0
    table.exists = lambda _: True
    rebuilt = table_sink.table_keeper(harness.app()).repair()
    assert (rebuilt.adopted, rebuilt.held, rebuilt.needs_operator) == (1, (), False)
    assert harness.run_once().committed == 1
    assert harness.waiting() == []


def test_a_file_that_is_gone_when_a_lost_table_is_made_again(harness: Harness) -> None:
    """All others are in the table; its manifest is missing, and the reason is told."""
    table = sink_of(harness)
    gone = next(file.uri for file in table.live_files() if "/m1-" in file.uri)
    table.drop()
    table.exists = lambda uri: uri != gone
    report = table_sink.table_keeper(harness.app()).repair()
    assert ([each.manifest_id for each in report.held], report.missing, report.files) == (["m1"], (gone,), 1)
    harness.deliver("m3", GOOD)
    assert harness.run_once().committed == 1
    table.exists = lambda _: True
    report = table_sink.table_keeper(harness.app()).repair()
    assert (report.adopted, report.files, report.needs_operator) == (1, 3, False)


def test_what_was_held_back_and_rebuilt() -> None:
    """A later generation takes its place, and nothing is held back any more."""
    harness = Harness(table={})
    table = sink_of(harness)
    table.exists = lambda uri: "/m1-" not in uri
    harness.deliver("m1", GOOD)
    harness.run_once()
    table.exists = lambda _: True
    assert rebuild(harness, "m1").failed == ()
    assert not table_sink.table_keeper(harness.app()).compare().needs_operator
    report = table_sink.table_keeper(harness.app()).repair()
    assert (report.adopted, report.needs_operator) == (0, False)
    assert list(harness.store.list(harness.layout.held_folder)) == []


def test_no_table_in_the_settings() -> None:
    """There is nothing to compare; and a stream with a table expires nothing."""
    with pytest.raises(SettingsError, match=r"table\.name"):
        table_sink.table_keeper(Harness().app())
    with pytest.raises(SettingsError, match="expired dates"):
        operating.date_expirer(Harness(table={}).app(), "ann")


def test_a_lost_table_whose_first_file_is_gone() -> None:
    """Only its manifest is held back of those that had one batch; the others are added, whichever comes first."""
    harness = Harness(table={})
    for name in ("m1", "m2", "m3"):
        harness.deliver(name, GOOD)
    assert harness.run_once().committed == 3
    table = sink_of(harness)
    table.drop()
    table.exists = lambda uri: "/m1-" not in uri
    report = table_sink.table_keeper(harness.app()).repair()
    assert ([each.manifest_id for each in report.held], len(report.missing), report.adopted) == (["m1"], 1, 2)
    verified = operating.verifier(harness.app()).verify_all()
    assert ["held back, because the catalog refuses it" in each.found for each in verified.discrepancies] == [True]
    table.exists = lambda _: True
    assert not table_sink.table_keeper(harness.app()).repair().needs_operator


def test_no_job_beside_a_table_that_is_made_again(harness: Harness) -> None:
    """It knows what the lost table did with each batch, which the new one may do otherwise: it has to end first."""
    table = sink_of(harness)
    with harness.app().heartbeat:
        assert table_sink.table_keeper(harness.app()).repair().applied == 0
        table.drop()
        with pytest.raises(OperatorError, match="`compactor stop`"):
            table_sink.table_keeper(harness.app()).repair()
        assert table.head() is None
    assert table_sink.table_keeper(harness.app()).repair().applied == 2
    early = Harness(table={})
    early.deliver("m1", GOOD)
    with early.app().heartbeat:  # there was no table yet
        assert table_sink.table_keeper(early.app()).repair().applied == 0


def test_rows_that_expired_before_the_table_was_set() -> None:
    """They are not missing, and no rebuild looks for their files; what comes to their date later is added."""
    plain = closed_days()
    expire(plain)
    compacted(plain, "late")
    listed = Harness(table={}, store=plain.store)
    files = [file.final for name in ("late", "m3") for file in outputs_of(listed, name)]
    assert sorted(table_sink.table_keeper(listed.app()).compare().missing) == sorted(files)
    report = table_sink.table_keeper(listed.app()).repair()
    assert (report.adopted, report.held, report.needs_operator) == (2, (), False)
    assert sorted(file.uri for file in sink_of(listed).live_files()) == sorted(files)
    assert operating.tracer(listed.app()).trace_manifest("m1").table is None


def test_rows_that_expired_while_there_was_no_table_setting() -> None:
    """A table that is made again takes the batches of before without them."""
    listed = Harness(table={})
    compacted(listed, "m1")
    compacted(listed, "m3", NEXT_DAY)
    plain = Harness(store=listed.store)
    plain.clock = listed.clock
    wait_and_close(plain)
    expire(plain)
    again = Harness(table={}, store=listed.store)
    report = table_sink.table_keeper(again.app()).repair()
    assert (report.applied, report.held, report.needs_operator) == (2, (), False)
    assert all("/m3-" in file.uri for file in sink_of(again).live_files())


def test_a_failure_that_a_rebuild_has_ended(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """`status` shows it no more, also if no job has committed since."""
    monkeypatch.setattr(table_commits, "GIVES_UP_AFTER", 1)
    table = sink_of(harness)
    table.drop()
    harness.deliver("m3", GOOD)
    with pytest.raises(ManifestsUnfinished):
        harness.run_once()

    def failures() -> tuple[int, str]:
        seen = operating.status_reader(harness.app()).read().table
        assert seen is not None
        return seen.failures, seen.error

    assert failures()[0] == 1
    table_sink.table_keeper(harness.app()).repair()
    assert failures() == (0, "")


def outputs_of(harness: Harness, name: str) -> list[StagedFile]:
    [key] = [key for key in harness.ledger.manifests() if key.id == name]
    commit = harness.ledger.outcome_of(key, 1)
    assert isinstance(commit, Commit)
    return commit.outputs


@pytest.mark.parametrize("is_missing", [False, True])
def test_an_outcome_that_is_gone_keeps_nothing_else_from_the_table(harness: Harness, is_missing: bool) -> None:
    """A damaged record and one that is gone are the same: its batch is passed over, and all others are there."""
    outcome = harness.layout.outcome(harness.commit("m1").key)
    good = harness.store.read(outcome)
    if is_missing:
        harness.store.delete([outcome])
    else:
        harness.store.put(outcome, b"{")
    sink_of(harness).drop()
    report = table_sink.table_keeper(harness.app()).repair()
    assert (report.last_batch, report.files) == (2, 1)
    harness.deliver("m3", GOOD)
    harness.run_once()
    assert len(list(sink_of(harness).live_files())) == 2
    harness.store.put(outcome, good)
    report = table_sink.table_keeper(harness.app()).repair()
    assert (report.files, differences(report)) == (3, {})
