"""Promises of `redrive`, and of `trace` beside it, on plain folders: what they do, what they print, how they end."""

import gzip
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from compactor.adapters.listed_manifests import ListedManifests
from compactor.cli.commands import redrive as redrive_module
from compactor.cli.entry import compactor as command
from compactor.cli.ui import failures
from compactor.settings.settings import load_settings
from compactor.wiring import streaming
from compactor.wiring.app import App
from tests.support import fakes
from tests.support.fakes import PlainEngine
from tests.support.settings_files import write_settings

DAY = "2025-12-21"


@dataclass(frozen=True)
class Workspace:
    """Settings on plain folders."""

    root: Path
    config: Path

    def call(self, *arguments: str, answer: str = "") -> Result:
        result = CliRunner().invoke(command, ["--config", str(self.config), *arguments], input=answer)
        assert "Traceback" not in result.stderr
        return result

    def json(self, *arguments: str) -> tuple[Any, int]:
        """The one document that a command prints, and its exit code."""
        result = self.call(*arguments, "--json")
        return json.loads(result.stdout), result.exit_code

    def write(self, name: str, content: bytes) -> Path:
        path = self.root / "raw" / name
        path.write_bytes(content)
        return path

    def plan(self) -> str:
        """Plan all that is new, into the one manifest whose id is given back."""
        [manifest] = self.json("plan", str(self.root / "raw"))[0]["manifests"]
        return str(manifest["manifest_id"])

    def compact(self) -> None:
        """Do all there is to do."""
        app = App(load_settings(self.config, {}))
        streaming.service_on(
            app,
            PlainEngine(app.store, metadata_columns=app.settings.metadata_columns),
            ListedManifests(app.store, app.layout.manifests_folder),
        ).run(once=True)

    def ids(self) -> list[str]:
        """What readers see in the column `id`."""
        tables = [pq.read_table(path) for path in (self.root / "o").rglob("*.parquet")]
        return sorted(value for table in tables for value in table["id"].to_pylist())

    def everything(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Nothing but settings and an empty folder of input."""
    config = write_settings(tmp_path)
    (tmp_path / "raw").mkdir()
    return Workspace(tmp_path, config)


def quarantined(workspace: Workspace) -> str:
    """A manifest one of whose two files was missing, and is back; its id."""
    workspace.write(f"{DAY}-a.ndjson", b'{"id": 1}\n')
    late = workspace.write(f"{DAY}-b.ndjson", b'{"id": 2}\n')
    manifest_id = workspace.plan()
    late.unlink()
    workspace.compact()
    workspace.write(late.name, b'{"id": 2}\n')
    return manifest_id


def test_files(workspace: Workspace) -> None:
    """A file that was missing is redriven, found by trace under its new manifest, and never taken twice."""
    manifest_id = quarantined(workspace)
    late = str(workspace.root / "raw" / f"{DAY}-b.ndjson")
    traced, code = workspace.json("trace", late)
    assert (traced["state"], traced["next_moves"], code) == (
        "quarantined",
        [f"compactor redrive files --manifest {manifest_id}", f"compactor dismiss {late} --why <TEXT>"],
        3,
    )
    document, code = workspace.json("redrive", "files")
    assert code == 0
    assert document == {
        "dry_run": False,
        "kind": "files",
        "unchanged": {},
        "redriven": [
            {
                "source": manifest_id,
                "manifest_id": f"{manifest_id}-r1",
                "kind": "files",
                "counts": {"missing": 1},
                "files": 1,
            }
        ],
        "settled": [],
        "refused": [],
        "healed": [],
    }
    assert workspace.json("plan", str(workspace.root / "raw"))[0]["manifests"] == []
    workspace.compact()
    assert workspace.ids() == ["1", "2"]
    traced, code = workspace.json("trace", late)
    assert (traced["manifest_id"], traced["redriven_from"], code) == (f"{manifest_id}-r1", manifest_id, 0)
    assert workspace.json("redrive", "files")[0]["redriven"] == []
    assert workspace.json("verify", "--deep")[0]["discrepancies"] == []


def test_manifests(workspace: Workspace) -> None:
    """A dead letter is redriven once the settings allow its files; until then it is refused with the reason."""
    elsewhere = workspace.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"{DAY}.ndjson").write_bytes(b'{"id": 7}\n')
    (workspace.root / "m").mkdir()
    letter = {"fileLocations": [{"URIPrefixes": [str(elsewhere / f"{DAY}.ndjson")]}]}
    (workspace.root / "m" / "letter.json").write_text(json.dumps(letter))
    workspace.compact()
    result = workspace.call("redrive", "manifests")
    assert result.exit_code == 3
    assert "outside_allowed_prefixes: " in result.stdout
    traced = workspace.call("trace", "letter")
    assert traced.exit_code == 3
    assert "compactor redrive manifests --manifest letter" in traced.stdout
    workspace.config.write_text(workspace.config.read_text().replace('/raw"]', f'/raw", "{elsewhere}"]'))
    result = workspace.call("redrive", "manifests", "--manifest", "letter")
    assert result.exit_code == 0
    assert "letter as letter-r1  1 outside_allowed_prefixes" in result.stdout
    workspace.compact()
    assert workspace.ids() == ["7"]
    traced = workspace.call("trace", "letter")
    assert traced.exit_code == 0
    assert "letter-r1 (accepted): 1 outside_allowed_prefixes" in traced.stdout
    assert workspace.json("verify")[0]["discrepancies"] == []


def test_rejects(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rejected lines that fit by now become rows; those that are as wrong as before are refused and stay rejects."""
    source = workspace.write(f"{DAY}-a.ndjson", b'{"id": 1}\nno json\n{"id": "long"}\n')
    manifest_id = workspace.plan()
    settings = workspace.config.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(fakes, "LIMITS", replace(fakes.LIMITS, max_line_bytes=10))
        workspace.config.write_text(settings.replace("[input]", "[input]\nmax_line_bytes = 10"))
        workspace.compact()
    workspace.config.write_text(settings)
    for words, verb in ((["--dry-run"], "Would redrive"), ([], "Redrove")):
        result = workspace.call("redrive", "rejects", "--date", DAY, *words)
        assert (result.exit_code, result.stdout.splitlines()[0]) == (3, f"{verb} 1 line in 1 file of 1 manifest")
        assert "1 line still invalid: 1 invalid_json" in result.stdout
    [lines] = (workspace.root / "s" / "redriven").rglob("*.gz")
    assert gzip.decompress(lines.read_bytes()) == b'\n\n{"id": "long"}\n'
    workspace.compact()
    assert workspace.ids() == ["1", "long"]
    traced, _ = workspace.json("trace", str(lines))
    assert (traced["manifest_id"], traced["origin"]) == (f"{manifest_id}-r1", str(source))
    assert [each["manifest_id"] for each in workspace.json("trace", str(source))[0]["redriven_as"]] == [
        f"{manifest_id}-r1"
    ]
    verified = workspace.json("verify", "--deep")[0]
    assert (verified["discrepancies"], verified["lines"], verified["rejected_lines"]) == ([], 3, 1)
    assert (workspace.json("verify", "--manifest", f"{manifest_id}-r1")[0]["lines"], verified["input_files"]) == (1, 1)
    assert workspace.json("status")[0]["rejects"]["lines"] == 1
    report = workspace.json("report")[0]
    assert [report["totals"][name] for name in ("lines", "rows", "rejected_lines", "input_files")] == [3, 2, 1, 1]
    [reject] = workspace.json("rejects")[0]["rejects"]
    assert (reject["uri"], reject["line_number"], reject["reason"]) == (str(source), 2, "invalid_json")
    assert workspace.call("redrive", "rejects").exit_code == 3
    assert len(list((workspace.root / "s" / "redriven").rglob("*.gz"))) == 1


def test_dry_run(workspace: Workspace) -> None:
    """A dry run shows what would be done and changes nothing on the disk."""
    manifest_id = quarantined(workspace)
    before = workspace.everything()
    result = workspace.call("redrive", "files", "--dry-run")
    assert (result.exit_code, result.stdout) == (
        0,
        f"Would redrive 1 file of 1 manifest\n  {manifest_id}  1 missing\n",
    )
    assert workspace.everything() == before


def test_what_is_asked_before_much_is_done(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above a limit it asks at a terminal; without one it needs --yes, and says so; a dry run needs neither."""
    quarantined(workspace)
    monkeypatch.setattr(redrive_module, "ASKED_ABOVE", 0)
    result = workspace.call("redrive", "files")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "redrive: 1 file of 1 manifest -> expected --yes" in result.stderr
    assert workspace.call("redrive", "files", "--dry-run").exit_code == 0
    monkeypatch.setattr(failures, "is_terminal", lambda: True)
    declined = workspace.call("redrive", "files", answer="n\n")
    assert (declined.exit_code, declined.stdout) == (1, "")
    assert "Redrive 1 file of 1 manifest?" in declined.stderr
    assert workspace.call("redrive", "files", answer="y\n").stdout.startswith("Redrove 1 file of 1 manifest\n")
    monkeypatch.setattr(failures, "is_terminal", lambda: False)
    assert workspace.call("redrive", "files", "--yes").stdout.startswith("Redrove 0 files of 0 manifests\n")


def test_unknown_reason(workspace: Workspace) -> None:
    """A reason that nothing of a kind can have is wrong usage that names those there are."""
    result = workspace.call("redrive", "files", "--reason", "invalid_json")
    assert result.exit_code == 2
    assert "missing" in result.stderr


def test_unknown_manifest(workspace: Workspace) -> None:
    """An unknown manifest is refused in words."""
    document, code = workspace.json("redrive", "manifests", "--manifest", "stranger")
    assert (document["redriven"], [each["manifest_id"] for each in document["refused"]], code) == ([], ["stranger"], 3)


@pytest.mark.parametrize("thing", ["stranger", "/nowhere/x.ndjson"])
def test_trace_of_what_is_unknown(workspace: Workspace, thing: str) -> None:
    """What is not known ends with 1, and one line says what was searched; nothing is written."""
    before = workspace.everything()
    result = workspace.call("trace", thing)
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (1, "", 1)
    assert "searched: " in result.stderr
    assert ("for a manifest" in result.stderr) == (thing == "stranger")
    assert workspace.everything() == before


def test_trace_a_manifest(workspace: Workspace) -> None:
    """A manifest shows its state, its attempts and its files; so does each file that it wrote."""
    manifest_id = quarantined(workspace)
    text = workspace.call("trace", manifest_id).stdout
    for shown in ("1 at ", "1 compacted, 1 missing", f"missing: {workspace.root}/raw/{DAY}-b.ndjson", "redrive files"):
        assert shown in text
    [output] = (workspace.root / "o").rglob("*.parquet")
    document, code = workspace.json("trace", str(output))
    assert (document["kind"], document["manifest_id"], code) == ("output", manifest_id, 0)
    assert [file["uri"] for file in document["files"]] == [f"{workspace.root}/raw/{DAY}-a.ndjson"]


def test_trace_json_is_stable(workspace: Workspace) -> None:
    """The keys of the document are those that other programs count on."""
    document, _ = workspace.json("trace", quarantined(workspace))
    assert list(document) == [
        *("uri", "kind", "state", "exists", "manifest_id", "date", "dated_by", "manifest_uri"),
        *("attempts", "earlier_attempts", "next_attempt_at", "report"),
        *(
            "files",
            "outputs",
            "rejects",
            "rejected",
            "earlier",
            *("lines", "rows", "rejected_lines", "unkept_rejects", "blank_lines", "erased_lines", "rejects_by_reason"),
            "redriven_from",
            "origin",
            "redriven_as",
            "expired",
            "erased",
            "lost",
            "quarantined",
            "settled_by",
            "reason",
            "message",
            "table",
            "fixes",
            "next_moves",
            "is_replaced",
        ),
        *("searched", "meaning", "needs_operator"),
    ]
