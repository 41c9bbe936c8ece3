"""`verify`: deliberate damage of every kind is named, and nothing else is."""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.core.crash_points import Step
from compactor.core.layout import redriven_id
from compactor.core.manifest import ManifestFile
from compactor.core.map_ordered import THREADS
from compactor.core.ports import ObjectStore
from compactor.core.records import Accepted, Commit, Redrive
from compactor.ops.verify.contents import Sum
from compactor.ops.verify.verifier import AuditReport, Discrepancy
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, World

METADATA = [(), ("_source_file",), ("_source_file", "_processed_at", "_manifest_id")]


def compacted(metadata: tuple[str, ...] = ("_source_file",), max_columns: int = 2000) -> World:
    world = World(schema={"metadata_columns": list(metadata), "max_columns": max_columns})
    world.deliver("m1", GOOD, FLAWED)
    world.run_once()
    return world


def shallow(world: World, *, everything: bool = False) -> AuditReport:
    app = world.app()
    return app.auditor.audit_all() if everything else app.auditor.audit(app.ledger.manifests(), whole_days=True)


def contents(world: World) -> list[Discrepancy]:
    """What comparing values finds, without the sizes of files."""
    report = AuditReport()
    world.app().deep_check(world.commit("m1"), report)
    return report.discrepancies


def rewrite(world: World, uri: str, change: Callable[[pa.Table], pa.Table]) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(change(pq.read_table(io.BytesIO(world.store.read(uri)))), sink)
    world.store.put(uri, sink.getvalue().to_pybytes())


@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("max_columns", [1, 2, 2000])
def test_all_well(metadata: tuple[str, ...], max_columns: int) -> None:
    """Sound output is found sound, value by value, with and without metadata and rescued data."""
    report = compacted(metadata, max_columns).audit()
    assert report.discrepancies == []
    assert (report.manifests, report.lines, report.rows, report.rejected_lines, report.blank_lines) == (1, 7, 4, 2, 1)
    assert (report.inputs_compared, report.inputs_gone, report.needs_operator) == (2, 0, False)
    assert report.rejects_by_reason == {"invalid_json": 1, "not_an_object": 1}


def _delete(world: World, commit: Commit) -> str:
    world.store.delete([commit.outputs[0].final])
    return commit.outputs[0].final


def _truncate(world: World, commit: Commit) -> str:
    uri = commit.outputs[0].final
    world.store.put(uri, world.store.read(uri)[:-10])
    return uri


def _fewer_rows(world: World, commit: Commit) -> str:
    uri = commit.outputs[0].final
    rewrite(world, uri, lambda table: table.slice(0, 1))
    return uri


def _other_columns(world: World, commit: Commit) -> str:
    uri = commit.outputs[0].final
    rewrite(world, uri, lambda table: table.drop_columns(["late"]))
    return uri


def _surplus(world: World, commit: Commit) -> str:
    uri = f"{world.layout.output_day(commit.date)}copy.snappy.parquet"
    world.store.copy(commit.outputs[0].final, uri)
    return uri


def _no_rejects(world: World, commit: Commit) -> str:
    world.store.delete([commit.rejects[0].final])
    return commit.rejects[0].final


@pytest.mark.parametrize("damage", [_delete, _truncate, _fewer_rows, _other_columns, _surplus, _no_rejects])
def test_damage_that_counting_finds(damage: Callable[[World, Commit], str]) -> None:
    """A file that is gone, cut, short of rows or columns, or one too many is named without reading any input."""
    world = compacted()
    where = damage(world, world.commit("m1"))
    report = shallow(world)
    assert {each.where for each in report.discrepancies} == {where}
    assert report.needs_operator
    deep = world.audit()
    assert where in {each.where for each in deep.discrepancies}


def changed(table: pa.Table, name: str, value: object) -> pa.Table:
    values = table.column(name).to_pylist()
    values[0] = value
    field = table.schema.field(name)
    return table.set_column(table.schema.get_field_index(name), field, pa.array(values, field.type))


@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("column", ["id", "amount", "late"])
def test_changed_value(metadata: tuple[str, ...], column: str) -> None:
    """One other value in one row is found by a deep audit, and its file named where rows tell their file."""
    world = compacted(metadata)
    rewrite(world, world.commit("m1").outputs[0].final, lambda table: changed(table, column, "other"))
    [found] = contents(world)
    assert (found.where, found.found) == (
        "/w/raw/m1-0.ndjson" if metadata else "all inputs of the manifest",
        "other values",
    )


def test_changed_rescued_value() -> None:
    """Rescued data is compared as well."""
    world = compacted(max_columns=1)
    uri = world.commit("m1").outputs[0].final
    rewrite(world, uri, lambda table: changed(table, "_rescued_data", [("amount", "1.1")]))
    assert [each.where for each in contents(world)] == ["/w/raw/m1-0.ndjson"]


@pytest.mark.parametrize(("column", "value"), [("raw", b"no jsoN"), ("line_number", 9), ("reason", "too_deep")])
def test_changed_reject(column: str, value: object) -> None:
    """One other byte, line or reason in a reject is found."""
    world = compacted()
    rewrite(world, world.commit("m1").rejects[0].final, lambda table: changed(table, column, value))
    [found] = contents(world)
    assert (found.where, found.expected, found.found) == ("/w/raw/m1-1.ndjson", "2 rejects", "other values")


def test_row_moved_to_another_source() -> None:
    """A row that claims another file as its source is found at both files."""
    world = compacted()
    rewrite(
        world, world.commit("m1").outputs[0].final, lambda table: changed(table, "_source_file", "/w/raw/m1-1.ndjson")
    )
    assert {each.where for each in contents(world)} == {"/w/raw/m1-0.ndjson", "/w/raw/m1-1.ndjson"}


@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("replaced", [False, True])
def test_input_gone(metadata: tuple[str, ...], replaced: bool) -> None:
    """An input that is gone or replaced cannot be compared: it is counted, and is no discrepancy."""
    world = compacted(metadata)
    world.store.delete(["/w/raw/m1-0.ndjson"])
    if replaced:
        world.store.put("/w/raw/m1-0.ndjson", FLAWED)
    report = world.audit()
    assert (report.inputs_gone, report.inputs_compared, report.discrepancies) == (1, 1, [])


def test_unfinished_and_dead() -> None:
    """What is not done, or was set aside, is counted and is no discrepancy; only the latter needs an operator."""
    world = compacted()

    def die(step: Step, _manifest_id: str) -> None:
        if step == Step.PUBLISHED:
            raise DiedError

    with pytest.raises(DiedError):
        world.runner(on_step=die).run([world.deliver("m2", GOOD)])
    report = world.audit()
    assert (report.manifests, report.unfinished, report.discrepancies, report.needs_operator) == (1, 1, [], False)
    world.put_manifest("bad.json", b"")
    world.run_once()
    report = world.audit()
    assert (report.manifests, report.unfinished, report.dead_letters, report.needs_operator) == (2, 0, 1, True)


def test_job_that_goes_on_meanwhile() -> None:
    """Output that a job publishes while the audit runs is not taken for surplus."""
    world = compacted()
    app = world.app()

    def compact_more(_manifest_id: str) -> None:
        if world.ledger.accepted("m2") is None:
            world.deliver("m2", GOOD)
            world.run_once()

    manifests = list(app.ledger.manifests())
    report = app.auditor.audit(manifests, whole_days=True, on_manifest=compact_more)
    assert report.discrepancies == []
    assert len([*world.ledger.manifests(DAY)]) == 2


class Meanwhile(FaultyStore):
    """A store at one call of which something else happens first."""

    def __init__(self, store: ObjectStore, call: int, happen: Callable[[], object]) -> None:
        super().__init__(store)
        self._at, self._happen = call, happen
        self._happening = Lock()

    def _call(self, method: str, uri: str, work: Callable[[], Any]) -> Any:
        with self._happening:
            if self.calls["any"] == self._at:
                self._happen()
            return super()._call(method, uri, work)


@pytest.mark.parametrize("step", [*Step][2:])
@pytest.mark.parametrize("refused", [False, True])
def test_job_at_every_moment(step: Step, refused: bool) -> None:
    """A manifest at any step, which a job brings to its end at any moment of the audit, is no discrepancy."""
    for call in range(0, 45, 4):
        world = compacted()

        def die(reached: Step, _manifest_id: str) -> None:
            if reached == step:
                raise DiedError

        uri = world.put_manifest("m2.json", b"[]") if refused else world.deliver("m2", GOOD, FLAWED)
        with suppress(DiedError):
            world.runner(on_step=die).run([uri])
        assert shallow(world, everything=True).discrepancies == []
        store = Meanwhile(world.store, call, world.run_once)
        app = world.app(store=store)
        report = app.auditor.audit_all()
        assert report.discrepancies == []
        assert report.manifests + report.dead_letters + report.unfinished in {1, 2}
        assert store.calls["any"] > 20


def test_forgotten_manifest() -> None:
    """An accepted manifest that nobody will go on with is named; one that is open or waits is merely not done."""
    world = compacted()
    uri = world.deliver("m2", GOOD)

    def die(step: Step, _manifest_id: str) -> None:
        if step == Step.OPENED:
            raise DiedError

    with pytest.raises(DiedError):
        world.runner(on_step=die).run([uri])
    marker = world.layout.open_marker("m2")
    for left, found in ((True, set()), (False, {world.layout.ledger_records(DAY, "m2")})):
        report = shallow(world, everything=True)
        assert ({each.where for each in report.discrepancies}, report.unfinished) == (found, int(left))
        world.store.delete([uri, marker] if left else [])
    world.store.put(uri, b"there again")
    assert shallow(world, everything=True).unfinished == 1


def test_lost_staging() -> None:
    """A committed file that is neither staged nor published is named, while its manifest is not done yet."""
    world = compacted()

    def die(step: Step, _manifest_id: str) -> None:
        if step == Step.PUBLISHED_ONE:
            raise DiedError

    with pytest.raises(DiedError):
        world.runner(on_step=die).run([world.deliver("m2", GOOD, FLAWED)])
    first, second = world.commit("m2").outputs
    world.store.delete([first.staged])
    assert shallow(world, everything=True).discrepancies == []
    world.store.delete([second.staged])
    report = shallow(world, everything=True)
    assert ([each.where for each in report.discrepancies], report.unfinished) == ([second.staged], 1)


def test_void_id_and_redriven_dead_letter() -> None:
    """An id that its planner gave up is nothing to look for; a dead letter that was put back needs nobody."""
    world = compacted()
    world.ledger.accept(Accepted(manifest_id="given-up", kind="void", date=DAY, accepted_at=world.clock.now()))
    world.put_manifest("bad.json", b"{")
    world.run_once()
    report = world.audit()
    assert (report.discrepancies, report.unfinished, report.needs_operator) == ([], 0, True)
    assert [(each.manifest_id, each.reason, each.redriven) for each in report.manifests_set_aside] == [
        ("bad", "not_json", False)
    ]
    day = world.dead_letter("bad").date
    put_back(world, day, "bad", "manifests", [])
    report = world.audit()
    assert (report.discrepancies, report.dead_letters, report.needs_operator) == ([], 1, False)
    assert report.manifests_set_aside[0].redriven


def put_back(world: World, day: str, manifest_id: str, kind: str, files: Sequence[ManifestFile]) -> None:
    redrive = Redrive(
        kind=kind,
        source=manifest_id,
        number=1,
        counts={},
        manifest=world.manifest(redriven_id(manifest_id, 1), files),
        run_id="r",
        redriven_at=world.clock.now(),
    )
    world.store.put(world.layout.redrive(day, manifest_id, 1), redrive.model_dump_json().encode())


def test_files_set_aside_are_listed() -> None:
    """A file that was set aside whole is listed with its manifest, its status and what was found."""
    world = World()
    files = [world.file("there.ndjson", GOOD), world.file("gone.ndjson", GOOD)]
    world.put_manifest("m1.json", world.manifest("m1", files).to_json())
    world.store.delete(["/w/raw/gone.ndjson"])
    world.run_once()
    report = world.audit()
    [found] = report.files_set_aside
    assert (found.manifest_id, found.uri, found.status) == ("m1", "/w/raw/gone.ndjson", "missing")
    assert found.detail
    assert (report.discrepancies, report.needs_operator) == ([], True)
    put_back(world, DAY, "m1", "files", [ManifestFile(uri=found.uri)])
    report = world.audit()
    assert (report.discrepancies, report.needs_operator) == ([], False)


def test_markers_and_other_tables_are_no_surplus() -> None:
    """Markers of folders, hidden names and what lies outside the folders of days are nobody's output."""
    world = compacted()
    day = world.layout.output_day(DAY)
    for name in ("", "_SUCCESS", ".part.crc", "below_$folder$"):
        world.store.put(day + name, b"")
    for place in (f"{world.layout.output}/other-table/part-0.parquet", world.layout.rejects_folder):
        world.store.put(place, b"")
    assert world.audit().discrepancies == []
    world.store.put(f"{world.layout.output}/merged-parquet-2026-02-30/part-0.parquet", b"")  # no day at all
    assert world.audit().discrepancies == []


def test_memory_of_an_audit_is_bounded() -> None:
    """No more of the ledger is read ahead than a fixed number of manifests."""
    world = World()
    for number in range(3 * THREADS):
        world.deliver(f"m{number:03d}", GOOD)
    world.run_once()
    app = world.app()
    begun: list[str] = []

    def manifests() -> Iterator[tuple[str, str]]:
        for day, manifest_id in app.ledger.manifests():
            begun.append(manifest_id)
            yield day, manifest_id

    ahead: list[int] = []
    done = count(1)
    app.auditor.audit(manifests(), whole_days=True, on_manifest=lambda _: ahead.append(len(begun) - next(done)))
    assert len(begun) == len(ahead) == 3 * THREADS
    assert max(ahead) <= 2 * THREADS


def test_one_manifest_only() -> None:
    """An audit of one manifest does not take the files of others for surplus."""
    world = compacted()
    world.deliver("m2", GOOD)
    world.run_once()
    app = world.app()
    report = app.auditor.audit([(DAY, "m2")], whole_days=False, deep_check=app.deep_check)
    assert (report.manifests, report.discrepancies) == (1, [])


def test_ledger_that_does_not_add_up() -> None:
    """A commit whose own figures contradict each other is named."""
    world = compacted()
    commit = world.commit("m1")
    false = commit.model_copy(update={"files": [commit.files[0].model_copy(update={"records": 1}), commit.files[1]]})
    world.store.put(world.layout.outcome(DAY, "m1"), false.model_dump_json().encode())
    found = {(each.where, each.expected, each.found) for each in shallow(world).discrepancies}
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
