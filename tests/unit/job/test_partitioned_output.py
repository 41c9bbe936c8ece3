"""A job whose output has partitions: verified as ever, whatever the data has, and whatever becomes of the files."""

import json
from collections.abc import Mapping
from contextlib import suppress

import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.crash_points import CrashPoint, OnCrashPoint
from compactor.core.errors import CompactorError, SettingsError
from compactor.core.layout import ManifestKey
from compactor.engines.engine import Engine
from compactor.engines.partitioned.row_partitions import RowPartitions
from compactor.schema.registry import EMPTY_SCHEMA, partition_faults
from compactor.schema.schema import Column
from compactor.wiring import engines, operating, streaming
from compactor.wiring.opening import job_registry
from tests.support.engines import DEFAULT, PLAIN
from tests.support.expiring import NEXT_DAY, expire, wait_and_close
from tests.support.extras import NATIVE
from tests.support.harness import DAY, Harness, sink_of
from tests.support.interleaving import interleave
from tests.support.logged import events_logged
from tests.support.rebuilding import rebuild

BY_DAY: Mapping[str, object] = {"partition_by": ["event_day = day(ts)"]}
LINES = [
    {"ts": "2025-09-30T23:59:59Z", "who": "../../a"},
    {"ts": "2025-10-01T00:30:00+02:00", "who": "a/b"},
    {"ts": "2026-01-02T00:00:00Z", "who": ""},
    {"ts": "never", "who": "x" * 300},
    {"other": "1"},
]
INPUT = b"".join(json.dumps(line).encode() + b"\n" for line in LINES) + b"no json\n"

MAKES_FEW_FILES = NATIVE.needed
"""The native engine writes all rows of these lines with one schema; the plain one has a version for each new key."""


def engine(harness: Harness) -> Engine:
    app = harness.app()
    plain = engines.partitioned(app, harness.engine())
    return plain if DEFAULT == PLAIN else engines.native_engine(app, ThreadBinWorkers(app.store))


def compacted(harness: Harness, *names: str) -> Harness:
    for name in names:
        harness.deliver(name, INPUT)
    harness.run_once(engine=engine(harness))
    return harness


def folders_of(harness: Harness) -> list[str]:
    """The folders of the output below that of the date, each once."""
    place = harness.layout.output_folder_of(DAY)
    names = (info.uri.removeprefix(place).rpartition("/")[0] for info in harness.store.list(place))
    return sorted(set(names))


@MAKES_FEW_FILES
def test_days_of_events() -> None:
    """Late events are in the folder of their own day; what is no time is told of; every row is verified."""
    harness = Harness(output=BY_DAY)
    with events_logged("partitions.unparsed") as told:
        compacted(harness, "m1", "m2")
    assert folders_of(harness) == [
        "event_day=2025-09-30",
        "event_day=2026-01-02",
        "event_day=__HIVE_DEFAULT_PARTITION__",
    ]
    commit = harness.commit("m1")
    assert commit.partition_by == ["event_day = day(ts)"]
    assert [(file.partition, file.rows) for file in commit.outputs] == [
        (["2025-09-30"], 2),
        (["2026-01-02"], 1),
        ([None], 2),
    ]
    assert commit.unparsed_times == 1
    assert [event["rows"] for event in told] == [1, 1]
    assert harness.verification().discrepancies == []
    harness.check_exact()
    [batch] = [values for values in harness.metrics.emitted if "RowsOfNoPartition" in values]
    assert (batch["RowsOfNoPartition"], batch["SmallPartitionFiles"], batch["OutputFiles"]) == (4, 6, 6)
    assert "OutputFileSizeHitRate" not in batch


@MAKES_FEW_FILES
def test_hostile_values() -> None:
    """A value leads nowhere but to its own folder; one that is too long for a folder shares that without values."""
    harness = compacted(Harness(output={"partition_by": ["w = identity(who)", "bucket(who, 4)"]}), "m1")
    commit = harness.commit("m1")
    assert [(file.partition[0], file.holds_others) for file in commit.outputs] == [
        ("", False),
        ("../../a", False),
        ("a/b", False),
        (None, False),
        (None, True),
    ]
    assert "w=..%2F..%2Fa" in {name.partition("/")[0] for name in folders_of(harness)}
    assert harness.verification().discrepancies == []
    harness.check_exact()


@MAKES_FEW_FILES
def test_too_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with the most rows have files of their own; all other rows are together, told of, and none is lost."""
    monkeypatch.setattr(engines, "MAX_PARTITIONS", 1)
    harness = Harness(output=BY_DAY)
    with events_logged("partitions.too_many") as told:
        compacted(harness, "m1")
    assert [(file.partition, file.rows, file.holds_others) for file in harness.commit("m1").outputs] == [
        ([None], 2, False),
        ([None], 3, True),
    ]
    assert [(event["rows"], event["partitions"]) for event in told] == [(3, 1)]
    assert harness.verification().discrepancies == []
    harness.check_exact()


@MAKES_FEW_FILES
def test_a_row_in_another_partition_is_found() -> None:
    """Verification with contents reads the column; the record alone tells of a file in another folder."""
    harness = compacted(Harness(output=BY_DAY), "m1")
    one, two, none = harness.commit("m1").outputs
    harness.store.copy(none.final, one.final)
    found = operating.verifier(harness.app(), deep=True).verify_all().discrepancies
    assert any((each.where, each.found) == (one.final, "2 of others") for each in found)
    assert two.final not in {each.where for each in found}


@pytest.mark.parametrize("later", [{}, {"partition_by": ["w = identity(who)"]}], ids=("none", "other"))
def test_settings_that_change(later: Mapping[str, object]) -> None:
    """Each commit says how it was divided: files of other settings are verified, rebuilt and expired as well."""
    before = compacted(Harness(output=BY_DAY), "m1")
    after = Harness(output=later, store=before.store)
    after.clock = before.clock
    compacted(after, "m2")
    assert after.verification().discrepancies == []
    rows = after.output_rows()
    lost = after.commit("m1").outputs[0].final
    after.store.delete([lost])
    [found] = operating.verifier(after.app(), deep=False).verify_manifests([ManifestKey(DAY, "m1")]).discrepancies
    assert found.where == lost
    assert [each.manifest_id for each in rebuild(after, "m1", engine=engine(after)).rebuilt] == ["m1"]
    assert after.output_rows() == rows
    assert after.commit("m1").partition_by == [*map(str, after.settings.partition_fields)]
    assert after.verification().discrepancies == []
    wait_and_close(after)
    [date] = expire(after, NEXT_DAY).expired
    assert date.output_files == len(after.commit("m1").outputs) + len(after.commit("m2").outputs)
    assert list(after.store.list(after.layout.output + "/")) == []


def test_files_that_no_commit_names() -> None:
    """A search for one manifest looks into its partitions, too."""
    harness = compacted(Harness(output=BY_DAY), "m1", "m2")
    one = harness.commit("m1").outputs[0].final
    surplus = one.replace("2025-09-30", "2025-09-29")
    harness.store.copy(one, surplus)
    for report in (
        harness.verification(),
        operating.verifier(harness.app(), deep=False).verify_manifests([ManifestKey(DAY, "m1")]),
    ):
        assert [(each.manifest_id, each.where) for each in report.discrepancies] == [("m1", surplus)]
    assert operating.verifier(harness.app(), deep=False).verify_manifests([ManifestKey(DAY, "m2")]).discrepancies == []


def test_what_the_table_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values of each file with the columns that they are from; none for rows of too many partitions."""
    monkeypatch.setattr(engines, "MAX_PARTITIONS", 3)
    harness = Harness(
        output={"partition_by": ["event_day = day(ts)", "bucket(who, 4)"]},
        schema={"file": "/w/schema.toml"},
        table={},
    )
    columns = ('name = "ts"\ntype = "timestamp"', 'name = "who"\ntype = "string"')
    harness.store.put("/w/schema.toml", "".join(f"[[columns]]\n{column}\n" for column in columns).encode())
    compacted(harness, "m1")
    files = {file.uri: file for file in sink_of(harness).live_files()}
    ids = {column.key: column.field_id for column in harness.app().registry.latest().columns}
    for output in harness.commit("m1").outputs:
        partition = files[output.final].partition
        assert [each.value for each in partition] == ([] if output.holds_others else output.partition)
        assert [each.field_id for each in partition] in ([], [ids["ts"], ids["who"]])
    assert any(output.holds_others for output in harness.commit("m1").outputs)
    assert harness.verification().discrepancies == []


def test_columns_that_cannot_tell_are_told_of() -> None:
    """Before a manifest is read: a table needs columns of the right type, and a date has no hour."""
    harness = Harness(output={"partition_by": ["hour(ts)"]}, schema={"file": "/w/schema.toml"})
    harness.store.put("/w/schema.toml", b'[[columns]]\nname = "ts"\ntype = "date"\n')
    with pytest.raises(SettingsError, match="the column is of type date -> expected a type with a time"):
        job_registry(harness.app()).check_declared()
    harness.store.put("/w/schema.toml", b'[[columns]]\nname = "ts"\ntype = "list<timestamp>"\n')
    with pytest.raises(SettingsError, match="the column is of type list<timestamp> -> expected a type without parts"):
        job_registry(harness.app()).check_declared()
    fields = harness.settings.partition_fields
    kept = Column(key="ts", name="ts", added_in=1, type="list<timestamp>")
    with pytest.raises(SettingsError, match="'ts' is of type list<timestamp> -> expected a type without parts"):
        RowPartitions(fields, EMPTY_SCHEMA.model_copy(update={"columns": (kept,)}))
    assert "its key has no column" in next(partition_faults(fields, (), has_table=True))
    assert list(partition_faults(fields, (), has_table=False)) == []


def test_no_column_has_the_name_of_a_folder() -> None:
    """A key of that name gets another column; if it has had the column before, a person chooses another folder."""
    harness = Harness(output={"partition_by": ["Event_Day = day(ts)"]})
    harness.deliver("m1", b'{"ts": "2025-09-30T00:00:00Z", "event_day": "x"}\n')
    harness.run_once(engine=engine(harness))
    assert [column.name for column in harness.app().registry.latest().columns] == ["ts", "event_day__2"]
    other = Harness(output={"partition_by": ["event_day__2 = day(ts)"]}, store=harness.store)
    with pytest.raises(SettingsError, match="'event_day__2' is a column name -> expected a different folder name"):
        job_registry(other.app()).check_declared()


STEPS = list(CrashPoint)


@MAKES_FEW_FILES
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("step", STEPS)
def test_death_and_delay_at_every_step(step: CrashPoint) -> None:
    """Whatever was staged or published by then, other runs have each row once, in its partition; also with a table."""

    def world() -> Harness:
        made = Harness(output=BY_DAY, schema={"file": "/w/schema.toml"}, table={})
        made.store.put("/w/schema.toml", b'[[columns]]\nname = "ts"\ntype = "timestamp"\n')
        made.deliver("m1", INPUT)
        return made

    def process(made: Harness, on_crash_point: OnCrashPoint) -> None:
        source = ListedManifests(made.store, made.layout.manifests_folder)
        streaming.service_on(made.app(on_crash_point=on_crash_point), engine(made), source).run(once=True)

    def others(made: Harness) -> None:
        for _ in range(2):
            made.clock.advance(3600)
            with suppress(CompactorError):
                made.run_once(engine=engine(made))

    def check(made: Harness) -> None:
        commit = made.commit("m1")
        files = [(file.partition, file.rows) for file in commit.outputs]
        assert files == [(["2025-09-30"], 2), (["2026-01-02"], 1), ([None], 2)]
        named = sorted(file.final for file in commit.outputs)
        assert sorted(file.uri for file in sink_of(made).live_files()) == named
        assert sorted(info.uri for info in made.store.list(made.layout.output + "/")) == named
        assert made.verification().discrepancies == []

    interleave(step, world, process, others, check)
