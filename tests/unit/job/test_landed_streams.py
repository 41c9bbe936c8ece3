"""Landed objects of a stream, through the job and the commands: they are input as any other."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compactor.cli.entry import compactor as command
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import SettingsError
from compactor.core.layout import Layout
from compactor.ops.verify import landed
from compactor.settings.settings import load_settings
from compactor.wiring import streaming
from compactor.wiring.app import App
from tests.support.extras import NATIVE
from tests.support.memory_kinesis import STREAM, MemoryKinesis
from tests.support.memory_store import ManualClock
from tests.support.settings_files import write_settings

NATIVE.need()


class Lake:
    """A stream that was landed and compacted, in folders."""

    def __init__(self, root: Path, *values: bytes, **given: Any) -> None:
        self.root = root
        self.settle(**given)
        self.kinesis = MemoryKinesis(ManualClock())
        [self.shard] = self.kinesis.create()
        self.kinesis.put(*values)
        self.app = App(load_settings(self.config, {}), kinesis_log=self.kinesis.log())
        self.plan = streaming.lander(self.app, "kinesis").land(STREAM, max_manifests=9)
        self.run()

    def settle(self, **given: Any) -> None:
        """Write the settings: the usual ones, with further keys of the table of each name."""
        usual: dict[str, Any] = {
            "input": {"allowed_prefixes": ["kinesis://main"]},
            "kinesis": {"sources": {"main": {}}},
            "stream": {"source": "listing"},
        }
        self.config = write_settings(self.root, **{name: keys | given.get(name, {}) for name, keys in usual.items()})

    def run(self) -> None:
        streaming.threaded_job(App(load_settings(self.config, {})), 2).run(once=True)

    def result(self, *words: str) -> Result:
        return CliRunner().invoke(command, ["--config", str(self.config), *words, "--json"])

    def call(self, *words: str, code: int = 0) -> Any:
        result = self.result(*words)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    @property
    def layout(self) -> Layout:
        return self.app.layout

    @property
    def landed(self) -> list[str]:
        return [info.uri for info in self.app.store.list(self.layout.redriven_folder) if "/landed/" in info.uri]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path, b'{"id": 1}', b"no json", b"", b'{"id": 2}', b"[1]")


def test_a_record_is_traced(lake: Lake) -> None:
    """By its sequence number, to the Parquet file and the rejects of its object."""
    found = lake.call("trace", f"kinesis://main/events/{lake.shard}?sequence=7")
    assert found["state"] == "done"
    assert found["message"].endswith("is line 1 of this object")
    assert (len(found["outputs"]), len(found["rejects"])) == (1, 1)
    [uri] = lake.landed
    assert found["uri"] == uri
    assert lake.call("trace", uri)["manifest_id"] == found["manifest_id"]
    unknown = lake.call("trace", f"kinesis://main/events/{lake.shard}?sequence=99", code=1)
    assert unknown["searched"] == "the chains of landed records"
    assert (
        "sequence=N" in CliRunner().invoke(command, ["--config", str(lake.config), "trace", "kinesis://main/x"]).output
    )


def test_lines_are_counted_and_rebuilt(lake: Lake) -> None:
    """Rejects have the numbers of their lines; rows that were lost are made again from the object."""
    verified = lake.call("verify", "--deep")
    assert [verified[each] for each in ("lines", "rows", "rejected_lines", "blank_lines")] == [5, 2, 2, 1]
    rejected = lake.call("rejects")
    assert rejected["by_reason"]
    next((lake.root / "o").rglob("*.parquet")).unlink()
    lake.call("verify", code=3)
    lake.call("rebuild")
    lake.call("verify", "--deep")


def test_what_retention_took_is_quarantined_until_it_is_dismissed(lake: Lake) -> None:
    """Every command names the same gap, and none does once a person dismissed it."""
    lake.kinesis.put(b'{"id": 3}')
    lake.kinesis.clock.advance(2 * 86_400)
    lake.kinesis.put(b'{"id": 4}')
    streaming.lander(lake.app, "kinesis").land(STREAM, max_manifests=9)
    lake.run()
    gap = f"{STREAM}/{lake.shard}?after=35&before=49"
    verified = lake.call("verify", code=3)
    assert [each["uri"] for each in verified["quarantined_files"]] == [gap]
    assert verified["discrepancies"] == []
    assert lake.call("status", code=3)["state"]["condition"] == "files_quarantined"
    traced = lake.call("trace", f"{STREAM}/{lake.shard}?sequence=42", code=3)
    assert (traced["uri"], [each["uri"] for each in traced["quarantined"]]) == (gap, [gap])
    assert lake.call("trace", gap, code=3)["manifest_id"] == traced["manifest_id"]
    redriven = lake.call("redrive", "files", "--yes", code=3)
    assert "`compactor dismiss`" in json.dumps(redriven)
    dismissed = lake.call("dismiss", gap, "--why", "the stream stood still")
    assert [each["uri"] for each in dismissed["inputs"]] == [gap]
    verified = lake.call("verify")
    assert "the stream stood still" in verified["quarantined_files"][0]["settled_by"]
    assert lake.call("status")["state"]["condition"] != "files_quarantined"
    assert lake.call("dismiss", gap, "--why", "again", code=3)["inputs"] == []
    lake.call("verify", "--deep")


def test_values_are_erased_from_landed_objects(lake: Lake) -> None:
    """They are copies of the compactor: no one else would delete them."""
    values = lake.root / "values"
    values.write_text("2\n")
    lake.call("data", "erase", "--key", "id", "--value-file", str(values), "--yes")
    assert all(b'{"id": 2}' not in lake.app.store.read(uri) for uri in lake.landed)
    lake.call("verify")


def test_landed_objects_expire_with_the_archive(lake: Lake) -> None:
    """Once their manifest is done; what is asked of them says so."""
    cleaned = lake.call("data", "clean", "--archive-days", "0")
    assert cleaned
    assert lake.landed == []
    lake.call("verify")
    lake.call("verify", "--deep")


def test_manifests_that_no_plan_wrote(lake: Lake) -> None:
    """Landed objects and gaps have one manifest; what claims to be a redrive has to be on record."""
    before = lake.call("verify", "--deep")
    [planned] = lake.plan.manifests
    accepted = lake.app.ledger.accepted(planned.manifest_id)
    assert accepted is not None
    assert accepted.manifest is not None
    gap = ManifestFile(uri=f"{STREAM}/{lake.shard}?after=5&before=999", size_bytes=0, etag="1")
    named = {
        f"{planned.manifest_id}-r1": accepted.manifest.files,
        "gap": (gap,),
        "gap-of-none": (gap.model_copy(update={"etag": "../x"}),),
        "open-gap": (gap.model_copy(update={"uri": gap.uri.partition("&")[0]}),),
    }
    for manifest_id, files in named.items():
        manifest = accepted.manifest.model_copy(update={"manifest_id": manifest_id, "files": files})
        lake.app.store.put(lake.layout.manifest(manifest_id), manifest.to_json())
    lake.run()
    after = lake.call("verify", "--deep", code=3)
    assert {each["manifest_id"]: each["reason"] for each in after["dead_letter_manifests"]} == dict.fromkeys(
        named, "not_planned"
    )
    assert (after["rows"], after["quarantined_files"]) == (before["rows"], [])


def test_landed_objects_are_redriven(tmp_path: Path) -> None:
    """A quarantined one, and then its rejects; each redrive is on record."""
    short, long = {"max_line_bytes": 20}, b'{"id": "%s"}' % (b"a" * 20)
    lake = Lake(tmp_path, b"no json", long, b'{"id": "b"}', input={**short, "max_rejected_lines": 1})
    assert len(lake.call("verify", code=3)["quarantined_files"]) == 1
    lake.settle(input=short)
    assert len(lake.call("redrive", "files", "--yes")["redriven"]) == 1
    lake.run()
    found = lake.call("verify", "--deep")
    assert (found["rows"], found["rejected_lines"]) == (1, 2)
    lake.settle()
    assert len(lake.call("redrive", "rejects", "--yes", code=3)["redriven"]) == 1
    lake.run()
    found = lake.call("verify", "--deep")
    assert (found["rows"], found["rejected_lines"], found["dead_letters"]) == (2, 1, 0)


def test_a_manifest_of_landed_objects_that_is_lost(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` says what to do, and the next plan writes it again, although the stream is deleted meanwhile."""
    lake.kinesis.put(b'{"id": 3}')
    [plan] = streaming.lander(lake.app, "kinesis").land(STREAM, max_manifests=9).manifests
    lake.app.store.delete([lake.layout.manifest(plan.manifest_id)])
    monkeypatch.setattr(landed, "REWRITE_SECONDS", 0.0)
    [told] = lake.call("verify", code=3)["discrepancies"]
    assert f"`compactor plan {STREAM}` writes it again" in told["expected"]
    lake.kinesis.streams.clear()
    with suppress(SettingsError):
        streaming.lander(lake.app, "kinesis").land(STREAM, max_manifests=9)
    lake.run()
    found = lake.call("verify", "--deep")
    assert (found["rows"], found["discrepancies"]) == (3, [])


def test_landed_objects_stay_for_a_redrive_of_what_was_planned(lake: Lake) -> None:
    """The id of their manifest is committed with another file, and what was planned for it waits."""
    lake.kinesis.put(b'{"id": 3}')
    [plan] = streaming.lander(lake.app, "kinesis").land(STREAM, max_manifests=9).manifests
    uri = lake.layout.manifest(plan.manifest_id)
    manifest = json.loads(lake.app.store.read(uri))
    lake.app.store.delete([uri, lake.layout.accepted(plan.manifest_id)])  # as if its planner had died before it
    (lake.root / "in").mkdir()
    (lake.root / "in" / "own.ndjson").write_text('{"id": 4}\n')
    lake.settle(input={"allowed_prefixes": ["kinesis://main", str(lake.root / "in")]})
    own = {"uri": str(lake.root / "in" / "own.ndjson")}
    lake.app.store.put(uri, json.dumps({**manifest, "version": 1, "files": [own]}).encode())
    lake.run()
    streaming.lander(lake.app, "kinesis").land(STREAM, max_manifests=9)
    lake.call("data", "clean", "--archive-days", "0")
    lake.run()
    found = lake.call("verify", "--deep")
    assert (found["rows"], found["quarantined_files"], found["discrepancies"]) == (4, [], [])


def open_letters(lake: Lake) -> set[int]:
    """How many dead letters wait for a person, as each command counts them."""
    verified = json.loads(lake.result("verify").stdout)
    letters = [each["manifest_id"] for each in verified["dead_letter_manifests"]]
    left = [each for each in verified["dead_letter_manifests"] if not (each["settled_by"] or each["redriven"])]
    traced = [json.loads(lake.result("trace", each).stdout) for each in letters]
    redriven = json.loads(lake.result("redrive", "manifests", "--dry-run").stdout)
    reported = json.loads(lake.result("report").stdout)["dead_letters"]["latest"]
    return {
        len(left),
        sum(each["needs_operator"] for each in traced),
        json.loads(lake.result("status").stdout)["dead_letters"]["open"],
        len(redriven["redriven"]) + len(redriven["refused"]),
        sum(not (each["settled_by"] or each["redriven"]) for each in reported),
    }


def own_files(lake: Lake, planned: bytes) -> bytes:
    """The manifest with one more file, which is there: what someone adds to it by hand."""
    manifest = Manifest.model_validate_json(planned)
    (lake.root / "own.ndjson").write_bytes(b'{"id": 9}')
    return with_file(manifest, str(lake.root / "own.ndjson"))


def with_file(manifest: Manifest, uri: str) -> bytes:
    return manifest.model_copy(update={"files": (*manifest.files, ManifestFile(uri=uri))}).to_json()


OVERWRITTEN: dict[str, tuple[Callable[[Lake, bytes], bytes], bool]] = {
    "garbage": (lambda _lake, _planned: b"no manifest", False),
    "empty": (lambda _lake, _planned: b"", False),
    "the same files": (lambda _lake, planned: planned + b" ", False),
    "a file of its own": (own_files, True),
    "no manifest of ours": (lambda _lake, _planned: b'{"version": 1, "files": 7}', True),
}


@pytest.mark.parametrize("how", OVERWRITTEN)
def test_what_a_planned_manifest_was_overwritten_with(lake: Lake, how: str) -> None:
    """It is a dead letter of its own, settled with the planned one if it adds nothing to it, as each command says."""
    write, is_open = OVERWRITTEN[how]
    lake.kinesis.put(b'{"id": 3}')
    [plan] = streaming.lander(lake.app, "kinesis").land(STREAM, max_manifests=9).manifests
    uri = lake.layout.manifest(plan.manifest_id)
    lake.app.store.put(uri, write(lake, lake.app.store.read(uri)))
    lake.run()
    [refused] = lake.call("verify", code=3)["dead_letter_manifests"]
    assert refused["manifest_id"].startswith(f"{plan.manifest_id}-dup-")
    assert open_letters(lake) == {1}
    streaming.lander(lake.app, "kinesis").land(STREAM, max_manifests=9)
    lake.run()
    assert open_letters(lake) == {int(is_open)}
    found = lake.call("verify", "--deep", code=3 if is_open else 0)
    assert (found["rows"], found["discrepancies"]) == (3, [])
    assert [each["settled_by"] for each in found["dead_letter_manifests"]] == ["" if is_open else plan.manifest_id]
