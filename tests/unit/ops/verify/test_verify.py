"""`verify`: deliberate damage of every kind is named, and nothing else is."""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count, product
from threading import Event, Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.adapters.local.native.kernel import digest_kernel
from compactor.adapters.local.native.module import is_installed
from compactor.core.crash_points import CrashPoint
from compactor.core.documents.changes import StagedFile
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import THREADS
from compactor.core.ports import ObjectStore
from compactor.ledger.accounts.reading import Listed, Scope, listed
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ops.verify.contents import DeepVerifier
from compactor.ops.verify.native_sums import NewDigestKernel
from compactor.ops.verify.report import Discrepancy, VerifyResult, result_of
from compactor.ops.verify.row_sums import Sum
from compactor.table.merging.committed_rows import CommittedRows, OpenedRows
from compactor.wiring import operating
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness
from tests.support.meters import on_each
from tests.support.sampling import few_rows

KERNELS: list[NewDigestKernel | None] = [None, *([digest_kernel] if is_installed() else [])]

METADATA = [(), ("_source_file",), ("_source_file", "_processed_at", "_manifest_id")]


def compacted(metadata: tuple[str, ...] = ("_source_file",), max_columns: int = 2000) -> Harness:
    harness = Harness(schema={"metadata_columns": list(metadata), "max_columns": max_columns})
    harness.deliver("m1", GOOD, FLAWED)
    harness.run_once()
    return harness


def shallow(harness: Harness, *, everything: bool = False) -> VerifyResult:
    verifier = operating.verifier(harness.app())
    return verifier.verify_all() if everything else verifier.verify_date(DAY)


def contents(harness: Harness) -> list[Discrepancy]:
    """What comparing values finds, without the sizes of files."""
    app = harness.app()
    made = partial(DeepVerifier, state=app.state, registry=app.registry, visible=Visible(app.state))
    reports = [result_of(made(new_kernel=each).check(harness.commit("m1"))) for each in KERNELS]
    assert all(each == reports[0] for each in reports)
    return list(reports[0].discrepancies)


def rewrite(harness: Harness, uri: str, change: Callable[[pa.Table], pa.Table]) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(change(pq.read_table(io.BytesIO(harness.store.read(uri)))), sink)
    harness.store.put(uri, sink.getvalue().to_pybytes())


@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("max_columns", [1, 2, 2000])
def test_all_well(metadata: tuple[str, ...], max_columns: int) -> None:
    """Sound output is found sound, value by value, with and without metadata and rescued data."""
    report = compacted(metadata, max_columns).verification()
    assert report.discrepancies == []
    assert (report.manifests, report.input_files, report.files_by_status) == (1, 2, {"compacted": 2})
    assert (report.lines, report.rows, report.rejected_lines, report.blank_lines) == (7, 4, 2, 1)
    assert (report.inputs_compared, report.inputs_gone, report.needs_operator) == (2, 0, False)
    assert report.rejects_by_reason == {"invalid_json": 1, "not_an_object": 1}


@pytest.mark.parametrize(
    ("name", "manifest_id"),
    [("m1-00099.snappy.parquet", "m1"), ("m9-00000.snappy.parquet", ""), ("stranger.parquet", "")],
)
def test_surplus_files(name: str, manifest_id: str) -> None:
    """A surplus file is reported with its size, and with its manifest if that has an outcome."""
    harness = compacted()
    uri = harness.layout.output_folder_of(DAY) + name
    harness.store.put(uri, b"12345")
    found = Discrepancy(manifest_id, uri, "no such file: no commit names it", "5 bytes")
    assert shallow(harness).discrepancies == [found]
    assert shallow(harness, everything=True).discrepancies == [found]


def changed(table: pa.Table, name: str, value: object) -> pa.Table:
    values = table.column(name).to_pylist()
    values[0] = value
    field = table.schema.field(name)
    return table.set_column(table.schema.get_field_index(name), field, pa.array(values, field.type))


@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("column", ["id", "amount", "late"])
def test_changed_value(metadata: tuple[str, ...], column: str) -> None:
    """One other value in one row is found by a deep verification, with its file if rows name their file."""
    harness = compacted(metadata)
    rewrite(harness, harness.commit("m1").outputs[0].final, lambda table: changed(table, column, "other"))
    [found] = contents(harness)
    assert (found.where, found.found) == (
        "/w/raw/m1-0.ndjson" if metadata else "all inputs of the manifest",
        "other values",
    )


def test_changed_rescued_value() -> None:
    """Rescued data is compared as well."""
    harness = compacted(max_columns=1)
    uri = harness.commit("m1").outputs[0].final
    rewrite(harness, uri, lambda table: changed(table, "_rescued_data", [("amount", "1.1")]))
    assert [each.where for each in contents(harness)] == ["/w/raw/m1-0.ndjson"]


def test_row_moved_to_another_source() -> None:
    """A row that claims another file as its source is found at both files."""
    harness = compacted()
    rewrite(
        harness,
        harness.commit("m1").outputs[0].final,
        lambda table: changed(table, "_source_file", "/w/raw/m1-1.ndjson"),
    )
    assert {each.where for each in contents(harness)} == {"/w/raw/m1-0.ndjson", "/w/raw/m1-1.ndjson"}


@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("replaced", [False, True])
def test_input_gone(metadata: tuple[str, ...], replaced: bool) -> None:
    """An input that is gone or replaced cannot be compared: it is counted, and is no discrepancy."""
    harness = compacted(metadata)
    harness.store.delete(["/w/raw/m1-0.ndjson"])
    if replaced:
        harness.store.put("/w/raw/m1-0.ndjson", FLAWED)
    report = harness.verification()
    assert (report.inputs_gone, report.inputs_compared, report.discrepancies) == (1, 1, [])


def test_input_gone_hides_no_other_manifest() -> None:
    """Rows that do not name their file are compared by manifest, also after a manifest whose input is gone."""
    harness = compacted(metadata=())
    harness.deliver("m2", GOOD)
    harness.run_once()
    harness.store.delete(["/w/raw/m1-0.ndjson"])
    [output] = harness.commit("m2").outputs
    rewrite(harness, output.final, lambda table: pa.concat_tables([table.slice(0, 1)] * table.num_rows))
    report = harness.verification()
    assert report.inputs_gone == 1
    assert "all inputs of the manifest" in {each.where for each in report.discrepancies if each.manifest_id == "m2"}


def test_unfinished_and_dead() -> None:
    """Unfinished manifests and dead letters are counted and no discrepancies; only dead letters need an operator."""
    harness = compacted()

    def die(point: CrashPoint, _manifest_id: str) -> None:
        if point == CrashPoint.PUBLISHED:
            raise DiedError

    with pytest.raises(DiedError):
        harness.runner(on_crash_point=die).run([harness.deliver("m2", GOOD)])
    report = harness.verification()
    assert (report.manifests, report.unfinished, report.discrepancies, report.needs_operator) == (1, 1, [], False)
    harness.put_manifest("bad.json", b"")
    harness.run_once()
    report = harness.verification()
    assert (report.manifests, report.unfinished, report.dead_letters, report.needs_operator) == (2, 0, 1, True)


def test_job_that_goes_on_meanwhile() -> None:
    """Output that a job publishes during a verification is not taken for surplus."""
    harness = compacted()
    app = harness.app()

    def compact_more() -> None:
        if harness.ledger.accepted("m2") is None:
            harness.deliver("m2", GOOD)
            harness.run_once()

    report = operating.verifier(on_each(app, compact_more)).verify_date(DAY)
    assert report.discrepancies == []
    assert len([*harness.ledger.manifests(DAY)]) == 2


class Meanwhile(FaultyStore):
    """A store in which something else happens right before one call."""

    def __init__(self, store: ObjectStore, call: int, happen: Callable[[], object]) -> None:
        super().__init__(store)
        self._at, self._happen = call, happen
        self._happening = Lock()

    def _call(self, method: str, uri: str, work: Callable[[], Any]) -> Any:
        with self._happening:
            if self.calls["any"] == self._at:
                self._happen()
            return super()._call(method, uri, work)


@pytest.mark.parametrize(
    ("point", "refused", "call"), few_rows(product([*CrashPoint][2:], [False, True], range(0, 45, 4)), 45)
)
def test_job_at_every_moment(point: CrashPoint, refused: bool, call: int) -> None:
    """A manifest at any point, which a job brings to its end at any moment of the verification, is no discrepancy."""
    harness = compacted()

    def die(reached: CrashPoint, _manifest_id: str) -> None:
        if reached == point:
            raise DiedError

    uri = harness.put_manifest("m2.json", b"[]") if refused else harness.deliver("m2", GOOD, FLAWED)
    with suppress(DiedError):
        harness.runner(on_crash_point=die).run([uri])
    assert shallow(harness, everything=True).discrepancies == []
    store = Meanwhile(harness.store, call, harness.run_once)
    app = harness.app(store=store)
    report = operating.verifier(app).verify_all()
    assert report.discrepancies == []
    assert report.manifests + report.dead_letters + report.unfinished in {1, 2}
    assert store.calls["any"] > 20


def test_forgotten_manifest() -> None:
    """An accepted manifest that no job will finish is a discrepancy; one that is open or waits is unfinished."""
    harness = compacted()
    uri = harness.deliver("m2", GOOD)

    def die(point: CrashPoint, _manifest_id: str) -> None:
        if point == CrashPoint.OPENED:
            raise DiedError

    with pytest.raises(DiedError):
        harness.runner(on_crash_point=die).run([uri])
    marker = harness.layout.open_marker("m2")
    for left, found in ((True, set()), (False, {harness.layout.ledger_records(ManifestKey(DAY, "m2"))})):
        report = shallow(harness, everything=True)
        assert ({each.where for each in report.discrepancies}, report.unfinished) == (found, int(left))
        harness.store.delete([uri, marker] if left else [])
    harness.store.put(uri, b"there again")
    assert shallow(harness, everything=True).unfinished == 1


def test_lost_staging() -> None:
    """A committed file that is neither staged nor published is named, while its manifest is not done yet."""
    harness = compacted()

    def die(point: CrashPoint, _manifest_id: str) -> None:
        if point == CrashPoint.PUBLISHED_ONE:
            raise DiedError

    with pytest.raises(DiedError):
        harness.runner(on_crash_point=die).run([harness.deliver("m2", GOOD, FLAWED)])
    first, second = harness.commit("m2").outputs
    harness.store.delete([first.staged])
    assert shallow(harness, everything=True).discrepancies == []
    harness.store.delete([second.staged])
    report = shallow(harness, everything=True)
    assert ([each.where for each in report.discrepancies], report.unfinished) == ([second.staged], 1)


def test_markers_and_other_tables_are_no_surplus() -> None:
    """Markers, hidden names and files outside the folders of dates are not output."""
    harness = compacted()
    day = harness.layout.output_folder_of(DAY)
    for name in ("", "_SUCCESS", ".part.crc", "below_$folder$"):
        harness.store.put(day + name, b"")
    for place in (f"{harness.layout.output}/other-table/part-0.parquet", harness.layout.rejects_folder):
        harness.store.put(place, b"")
    assert harness.verification().discrepancies == []
    harness.store.put(f"{harness.layout.output}/merged-parquet-2026-02-30/part-0.parquet", b"")  # no day at all
    assert harness.verification().discrepancies == []


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most a fixed number of manifests is read in advance."""
    harness = Harness()
    for number in range(3 * THREADS):
        harness.deliver(f"m{number:03d}", GOOD)
    harness.run_once()
    app = harness.app()
    begun: list[str] = []

    def manifests(state: State, scope: Scope) -> Iterator[Listed]:
        for each in listed(state, scope):
            begun.append(each.key.id)
            yield each

    in_advance: list[int] = []
    done = count(1)
    monkeypatch.setattr("compactor.ops.verify.verifier.listed_in", manifests)
    operating.verifier(on_each(app, lambda: in_advance.append(len(begun) - next(done)))).verify_date(DAY)
    assert len(begun) == len(in_advance) == 3 * THREADS
    assert max(in_advance) <= 2 * THREADS


def test_one_manifest_only() -> None:
    """The verification of one manifest does not take the files of others for surplus."""
    harness = compacted()
    harness.deliver("m2", GOOD)
    harness.run_once()
    app = harness.app()
    report = operating.verifier(app, deep=True).verify_manifests([ManifestKey(DAY, "m2")])
    assert (report.manifests, report.discrepancies) == (1, [])


def test_ledger_that_does_not_add_up() -> None:
    """A commit whose own figures contradict each other is named."""
    harness = compacted()
    commit = harness.commit("m1")
    false = commit.model_copy(update={"files": [commit.files[0].model_copy(update={"records": 1}), commit.files[1]]})
    harness.store.put(harness.layout.outcome(ManifestKey(DAY, "m1")), false.model_dump_json().encode())
    found = {(each.where, each.expected, each.found) for each in shallow(harness).discrepancies}
    assert found == {
        ("/w/raw/m1-0.ndjson", "3 lines", "2 accounted for"),
        ("outputs of the commit", "3 rows", "4 rows"),
    }


def test_sums_tell_multiplicities_apart() -> None:
    """The order of rows makes no difference; how often each comes does."""

    def total(*rows: Sequence[object]) -> Sum:
        made = Sum()
        for row in rows:
            made.add(row)
        return made

    one, two = ["1", None], ["2", None]
    assert total(one, two, one) == total(one, one, two)
    assert total(one, two, one) != total(one, two, two)
    assert total(["1", None]) != total([None, "1"])
    merged = total(one)
    merged.merge(total(two))
    assert merged == total(one, two)


def test_an_interruption_does_not_wait_for_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read while the inputs are; an interruption does not wait for the rest of them."""
    harness = compacted()
    app, commit = harness.app(), harness.commit("m1")
    opened: list[str] = []
    reached, interrupted = Event(), Event()

    def slow(rows: CommittedRows, date: str, file: StagedFile, of=CommittedRows.open) -> OpenedRows:
        opened.append(file.final)
        reached.set()
        assert interrupted.wait(30)
        return of(rows, date, file)

    def interrupt(*_: object) -> None:
        assert reached.wait(30)
        interrupted.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(DeepVerifier, "_input_sums", interrupt)
    monkeypatch.setattr(CommittedRows, "open", slow)
    many = commit.model_copy(update={"outputs": [*commit.outputs] * 100})
    with pytest.raises(KeyboardInterrupt):
        list(DeepVerifier(state=app.state, registry=app.registry, visible=Visible(app.state)).check(many))
    assert len(opened) < 50
