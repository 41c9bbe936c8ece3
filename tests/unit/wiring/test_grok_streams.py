"""Promises of a stream of text: its columns, its commits, and everything that reads a line again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compactor.core.crash_points import ignore_crash_point
from compactor.core.documents.changes import Commit
from compactor.core.errors import SettingsError
from compactor.core.layout import ManifestKey
from compactor.ledger.accounts.account import Kind
from compactor.ledger.accounts.reading import Scope
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.wiring import engines, operating, rebuilding
from compactor.wiring.app import App
from compactor.wiring.opening import job_registry
from compactor.wiring.rebuilding import eraser
from tests.support import extras
from tests.support.engine_workspace import DAY, EngineWorkspace, engine_workspace, schema_file

extras.NATIVE.need()

LINES = b"GET 1.10 /a\nPUT many /b\n\n!\nGET 2 /c\r\n"
PATTERN = "^%{WORD:verb} %{NUMBER:size:int} %{GREEDYDATA:[file][path]}$"


def workspace(root: Path, pattern: str = PATTERN, **sections: dict[str, Any]) -> EngineWorkspace:
    text = {"allowed_prefixes": [f"{root}/raw"], "format": "grok", "grok": {"pattern": pattern}}
    return engine_workspace(str(root), "native", ignore_crash_point, 1.0, {"input": text, **sections})


def changed(place: EngineWorkspace, pattern: str) -> EngineWorkspace:
    """The same folders for processes that have another pattern."""
    settings = place.app.settings
    text = settings.input.model_copy(update={"grok": {"pattern": pattern}})
    return EngineWorkspace(App(replace(settings, input=text)), place.raw, place.engine_name)


def redriven(place: EngineWorkspace, kind: Kind) -> str:
    report = operating.redriver(place.app).redrive(find_redrivable(place.app.state, Scope(kind)))
    assert report.refused == ()
    (found,) = report.redriven
    assert found.manifest_id is not None
    return place.app.layout.manifest(found.manifest_id)


def test_captures_are_columns(tmp_path: Path) -> None:
    """In the order of the pattern, with its types, and with safe names. A value that does not fit is rescued."""
    found = workspace(tmp_path).compact({"a": LINES})
    assert [list(row) for row in found.rows] == [["verb", "size", "file_path", "_rescued_data"]] * 2
    assert found.by("file.path") == {
        "/a": {"verb": "GET", "size": "1.10", "file.path": "/a"},
        "/c": {"verb": "GET", "size": 2, "file.path": "/c"},
    }
    assert [(row["line_number"], row["reason"], row["raw"]) for row in found.rejects] == [
        (2, "no_match", b"PUT many /b"),
        (4, "no_match", b"!"),
    ]
    assert found.commit.grok is not None
    assert found.commit.grok.keys == ("verb", "size", "file.path")


def test_folders_give_text_columns_too(tmp_path: Path) -> None:
    """A capture of the same name comes before that of the path, as a key of a line does."""
    root = tmp_path / "raw"
    text = {"allowed_prefixes": [str(root)], "format": "grok", "hive_keys": True}
    place = engine_workspace(
        str(tmp_path),
        "native",
        ignore_crash_point,
        1.0,
        {"input": {**text, "grok": {"pattern": "^(?<id>.)(?:,(?<country>.+))?$"}}},
    )
    found = place.compact({"country=DE/a": b"1\n??\n2,FR\n"})
    assert {record["id"]: record["country"] for record in found.records} == {"1": "DE", "2": "FR"}
    assert [(row["line_number"], row["raw"]) for row in found.rejects] == [(2, b"??")]


def test_a_schema_file_types_captures(tmp_path: Path) -> None:
    """It comes first, and may type what the pattern leaves open."""
    (tmp_path / "columns.toml").write_text(schema_file({"size": "long", "verb": "string"}))
    columns = {"schema": {"file": f"{tmp_path}/columns.toml", "metadata_columns": ["file_date"]}}
    place = workspace(tmp_path, "%{WORD:verb} %{NUMBER:size}", **columns)
    assert [list(row) for row in place.compact({"a": b"GET 7\n"}).rows] == [
        ["file_date", "size", "verb", "_rescued_data"]
    ]
    other = workspace(tmp_path, "%{WORD:verb} %{NUMBER:size:float}", **columns)
    with pytest.raises(SettingsError, match=r"size is of type double -> expected long, as in schema\.file"):
        job_registry(other.app)


def test_columns_keep_their_types(tmp_path: Path) -> None:
    """A later pattern that types a key otherwise is refused; one that does not type it changes nothing."""
    place = workspace(tmp_path)
    place.compact({"a": LINES})
    with pytest.raises(SettingsError, match=r"size is of type double -> expected long, as its column size has been"):
        job_registry(changed(place, "%{NUMBER:size:float}").app)
    later = changed(place, "^%{WORD:verb} %{NUMBER:size} (?<more>.)")
    assert [row["size"] for row in later.compact({"b": b"GET 3 x\n"}, "later").rows] == [3]


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("%{WORD:_source_file}", "a capture is named _source_file -> expected a name that is not reserved"),
        ("%{WORD:File_Date}", "a capture is named File_Date"),
        ("%{WORD:a:date}", "a is of type date -> expected string, byte"),
        ("%{NOPE:a}", "there is no pattern NOPE"),
        ("plain", "it captures nothing"),
    ],
)
def test_faults_of_patterns(tmp_path: Path, pattern: str, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault) as raised:
        engines.engine_rules(workspace(tmp_path, pattern).app)
    assert str(raised.value).startswith("input.grok: ")


def test_the_native_module_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for Spark's engine. Other streams do without."""
    monkeypatch.delattr("compactor_native.INTERFACE")
    with pytest.raises(SettingsError, match=r'input.format: "grok": .* -> install it'):
        engines.engine_rules(workspace(tmp_path).app)


def test_rejected_lines_are_redriven_by_the_pattern_of_today(tmp_path: Path) -> None:
    """Whatever was wrong with the pattern before. Numbers and places are those of the first file."""
    place = workspace(tmp_path)
    place.compact({"a": LINES})
    wider = changed(place, "^(?:%{WORD:verb} %{NOTSPACE:size} %{GREEDYDATA:[file][path]}|%{NOTSPACE:other})$")
    assert wider.run(redriven(wider, "rejects")).failures == {}
    again = wider.compacted("m-r1")
    assert sorted(record.get("verb", "") for record in again.records) == ["", "PUT"]
    assert wider.check().inputs_compared == 1  # by the pattern of each commit
    (report,) = again.commit.files
    assert (report.lines, report.records, report.rejects) == (2, 2, {})


def test_rows_are_made_again_by_the_pattern_of_their_commit(tmp_path: Path) -> None:
    """Rebuilding and verification do not ask what the pattern is today."""
    place = workspace(tmp_path)
    first = place.compact({"a": LINES})
    for file in first.commit.outputs:
        place.app.store.delete([file.final])
    now = changed(place, "^%{WORD:another}")
    scan = operating.rebuild_scanner(now.app).scan(("m",))
    report = rebuilding.rebuilder(now.app, lambda rules: engines.native_engine(now.app, _workers(now), rules)).rebuild(
        scan
    )
    assert [each.manifest_id for each in report.rebuilt] == ["m"]
    again = now.outcome("m")
    assert isinstance(again, Commit)
    assert (again.generation, again.grok) == (2, first.commit.grok)
    rows = [row for file in again.outputs for row in now.parquet_rows(file.final)]
    assert sorted(rows, key=str) == sorted(first.rows, key=str)
    now.check()


def test_what_is_erased_is_found_in_text(tmp_path: Path) -> None:
    """In rows, in rejects, and in the input files themselves."""
    place = workspace(tmp_path)
    place.compact({"a": LINES, "b": b"GET 3 /keep\n"})
    work = eraser(place.app, key="file.path", values=frozenset({"/b", "/c"}), inputs="delete", by="tests")
    report = work.erase(work.scanner.scan())
    assert [each.uri for each in report.inputs if each.deleted] == [f"{place.raw}a"]
    left = place.app.ledger.outcome(ManifestKey(DAY, "m"))
    assert sum(file.records for file in left.files) - left.erased_rows == 2
    assert not any(b"/b" in row["raw"] for file in left.rejects for row in place.parquet_rows(file.final))


def _workers(place: EngineWorkspace) -> Any:
    from compactor.adapters.local.native.threads import ThreadBinWorkers  # noqa: PLC0415

    return ThreadBinWorkers(place.app.store)
