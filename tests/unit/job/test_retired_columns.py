"""A retired column gives its place to another key; its values stay, and later ones are rescued."""

import threading

import pytest

from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.crash_points import CrashPoint
from compactor.core.errors import SettingsError
from compactor.engines.engine import Engine
from compactor.engines.native import engine as native_engine
from compactor.schema import schema_of_settings
from compactor.schema.schema import RESCUED_COLUMN
from compactor.wiring import engines, operating, streaming
from compactor.wiring.app import App
from compactor.wiring.opening import job_registry
from tests.support.engines import NATIVE, engine_without_spark, engines_without_spark
from tests.support.harness import Harness, commit_of_ratio


@pytest.fixture(params=engines_without_spark())
def engine_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def engine(app: App, harness: Harness, name: str) -> Engine:
    return engines.native_engine(app, ThreadBinWorkers(app.store)) if name == NATIVE else harness.engine()


def compact(harness: Harness, engine_name: str, manifest_id: str, *lines: bytes) -> list[dict[str, object]]:
    """Compact a manifest with one file; returns its rows without nulls."""
    uri = harness.deliver(manifest_id, b"".join(line + b"\n" for line in lines))
    app = harness.app()
    assert streaming.scheduler(app, engine(app, harness, engine_name)).run([uri]).failures == {}
    return rows(harness, manifest_id)


def rows(harness: Harness, manifest_id: str) -> list[dict[str, object]]:
    assert verified(harness) == []
    found = [row for file in harness.commit(manifest_id).outputs for row in harness.table(file.final)]
    return [{key: value for key, value in row.items() if value is not None} for row in found]


def verified(harness: Harness) -> list[object]:
    app = harness.app()
    return list(operating.verifier(app, deep=True).verify_all().discrepancies)


def test_a_place_is_given_back(engine_name: str) -> None:
    """A full table has room for one key again. The retired key is rescued for good, and its name is never reused."""
    harness = Harness(schema={"max_columns": 2})
    assert compact(harness, engine_name, "m1", b'{"id":1,"Junk":2}') == [{"id": "1", "junk": "2"}]
    assert compact(harness, engine_name, "m2", b'{"id":1,"new":3}') == [{"id": "1", RESCUED_COLUMN: [("new", "3")]}]
    app = harness.app()
    retired = job_registry(app).retire(["junk"])
    assert ([column.key for column in retired.columns], retired.retired[0].key) == (["id", None], "Junk")
    assert compact(harness, engine_name, "m3", b'{"new":4,"Junk":5,"more":6}') == [
        {"new": "4", RESCUED_COLUMN: [("Junk", "5"), ("more", "6")]}
    ]
    assert harness.commit("m3").refused_keys == 1
    again = Harness(schema={"max_columns": 9}, store=harness.store)
    assert compact(again, engine_name, "m4", b'{"junk":7,"Junk":8}') == [
        {"junk__2": "7", RESCUED_COLUMN: [("Junk", "8")]}
    ]
    assert rows(harness, "m1") == [{"id": "1", "junk": "2"}]


def test_a_running_job_takes_the_place(engine_name: str) -> None:
    """Its table is full, so that no key makes a version; it finds the version that made room."""
    harness = Harness(schema={"max_columns": 1})
    app = harness.app()
    runner = streaming.scheduler(app, engine(app, harness, engine_name))
    for number, line in enumerate((b'{"junk":1}\n', b'{"id":1}\n', b'{"id":2}\n')):
        if number == 2:
            job_registry(harness.app()).retire(["junk"])
        assert runner.run([harness.deliver(f"m{number}", line)]).failures == {}
    assert rows(harness, "m1") == [{RESCUED_COLUMN: [("id", "1")]}]
    assert rows(harness, "m2") == [{"id": "2"}]


def test_a_column_is_retired_while_a_manifest_has_it(engine_name: str) -> None:
    """Between its first and its second schema version: every value is in the column or rescued, and verified."""
    harness = Harness()
    compact(harness, engine_name, "m1", b'{"id":1,"junk":2}')
    harness.ledger.remember(commit_of_ratio(1.0))
    files = [b'{"id":"%0200d","junk":3}\n' % number for number in range(4)]
    uri = harness.deliver("m2", *files, b'{"late":1,"junk":4}\n')
    done = threading.Event()

    def retire(step: CrashPoint, _manifest_id: str) -> None:
        if step is CrashPoint.INSPECTED and not done.is_set():
            done.set()
            job_registry(harness.app()).retire(["junk"])

    app = harness.app(on_crash_point=retire)
    small = engine_without_spark(engine_name, app, rows_per_file=2, target_file_bytes=200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_engine, "SAMPLE_BYTES", 1)
        assert streaming.scheduler(app, small).run([uri]).failures == {}
    found = rows(harness, "m2")
    junk = [row.get("junk") or dict(row[RESCUED_COLUMN])["junk"] for row in found]
    assert sorted(junk) == ["3", "3", "3", "3", "4"]
    assert [row["late"] for row in found if "late" in row] == ["1"]
    if engine_name == NATIVE:
        assert {file.schema_version for file in harness.commit("m2").outputs} >= {1, None}


def test_a_key_that_was_rescued_gets_its_column_during_the_same_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of an older version has it rescued, the commit's version has a column: both are verified."""
    monkeypatch.setattr(schema_of_settings, "MAX_NEW_COLUMNS_PER_DAY", 1)
    harness = Harness()
    engine_name = NATIVE if engines_without_spark()[0] == NATIVE else "plain"
    compact(harness, engine_name, "m1", b'{"id":1}')
    compact(harness, engine_name, "m2", b'{"id":1,"other":2}')
    commit = harness.commit("m2")
    assert commit.schema_version == 2
    monkeypatch.undo()
    app = Harness(store=harness.store).app()
    job_registry(app).covering({"other": "/w/raw/x"}, "m3")
    newer = commit.model_copy(
        update={
            "schema_version": 3,
            "outputs": [file.model_copy(update={"schema_version": 2}) for file in commit.outputs],
        }
    )
    harness.store.put(harness.layout.outcome(commit.key), newer.model_dump_json().encode())
    assert verified(harness) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nothing", "no such column in schema version 2"),
        (RESCUED_COLUMN, "has the rescued data"),
        ("n", "declared in schema.file"),
        ("gone", "already retired in schema version 2"),
    ],
)
def test_what_cannot_be_retired(name: str, why: str) -> None:
    """Each fault is named, and no version is made."""
    harness = Harness(schema={"file": "/w/columns.toml"})
    harness.store.put("/w/columns.toml", b'[[columns]]\nname = "n"\ntype = "long"\n')
    registry = job_registry(harness.app())
    registry.covering({"gone": "/r/1", "a": "/r/1"}, "m1")
    registry.retire(["gone"])
    with pytest.raises(SettingsError) as caught:
        registry.retire(["a", name])
    assert [why in fault for fault in caught.value.faults] == [True]
    assert harness.app().registry.latest().version == 2


def test_a_retired_key_cannot_be_declared() -> None:
    """Neither its key nor its name comes again with another meaning."""
    harness = Harness(schema={"file": "/w/columns.toml"})
    harness.store.put("/w/columns.toml", b'[[columns]]\nname = "n"\ntype = "long"\n')
    registry = job_registry(harness.app())
    registry.covering({"Gone": "/r/1"}, "m1")
    registry.retire(["gone"])
    for declared in (b'name = "other"\nkey = "Gone"', b'name = "gone"'):
        harness.store.put("/w/columns.toml", b"[[columns]]\n" + declared + b'\ntype = "long"\n')
        with pytest.raises(SettingsError, match="retired in schema version 2"):
            job_registry(harness.app()).check_declared()
