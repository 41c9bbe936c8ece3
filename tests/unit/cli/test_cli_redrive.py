"""Promises of `redrive`, and of `trace` beside it, on plain folders: what they do, what they print, how they end."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from compactor.adapters.listed_manifests import ListedManifests
from compactor.cli.commands import redrive as redrive_module
from compactor.cli.entry import compactor as command
from compactor.settings.settings import load_settings
from compactor.wiring.app import App
from tests.support.fakes import PlainEngine

DAY = "2025-12-21"


@dataclass(frozen=True)
class Site:
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
        app.service_on(PlainEngine(app.store), ListedManifests(app.store, app.layout.manifests_folder)).run(once=True)

    def ids(self) -> list[str]:
        """What readers see in the column `id`."""
        tables = [pq.read_table(path) for path in (self.root / "o").rglob("*.parquet")]
        return sorted(value for table in tables for value in table["id"].to_pylist())

    def everything(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Nothing but settings and an empty folder of input."""
    config = tmp_path / "settings.toml"
    config.write_text(
        f'[paths]\nmanifests = "{tmp_path}/m"\noutput = "{tmp_path}/o"\nstate = "{tmp_path}/s"\n'
        f'[input]\nallowed_prefixes = ["{tmp_path}/raw"]\n[metrics]\nsink = "none"\n'
    )
    (tmp_path / "raw").mkdir()
    return Site(tmp_path, config)


def quarantined(site: Site) -> str:
    """A manifest one of whose two files was missing, and is back; its id."""
    site.write(f"{DAY}-a.ndjson", b'{"id": 1}\n')
    late = site.write(f"{DAY}-b.ndjson", b'{"id": 2}\n')
    manifest_id = site.plan()
    late.unlink()
    site.compact()
    site.write(late.name, b'{"id": 2}\n')
    return manifest_id


def test_files(site: Site) -> None:
    """A file that was missing is redriven, found by trace under its new manifest, and never taken twice."""
    manifest_id = quarantined(site)
    late = str(site.root / "raw" / f"{DAY}-b.ndjson")
    traced, code = site.json("trace", late)
    assert (traced["state"], traced["next_moves"], code) == (
        "quarantined",
        [f"compactor redrive files {manifest_id}"],
        3,
    )
    document, code = site.json("redrive", "files")
    assert code == 0
    assert document == {
        "dry_run": False,
        "kind": "files",
        "redriven": [
            {
                "source": manifest_id,
                "manifest_id": f"{manifest_id}-r1",
                "kind": "files",
                "counts": {"missing": 1},
                "files": 1,
            }
        ],
        "refused": [],
        "healed": [],
    }
    assert site.json("plan", str(site.root / "raw"))[0]["manifests"] == []
    site.compact()
    assert site.ids() == ["1", "2"]
    traced, code = site.json("trace", late)
    assert (traced["manifest_id"], traced["redriven_from"], code) == (f"{manifest_id}-r1", manifest_id, 0)
    assert site.json("redrive", "files")[0]["redriven"] == []
    assert site.json("verify", "--deep")[0]["discrepancies"] == []


def test_manifests(site: Site) -> None:
    """A dead letter is redriven once the settings allow its files; until then it is refused with the reason."""
    elsewhere = site.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"{DAY}.ndjson").write_bytes(b'{"id": 7}\n')
    (site.root / "m").mkdir()
    letter = {"fileLocations": [{"URIPrefixes": [str(elsewhere / f"{DAY}.ndjson")]}]}
    (site.root / "m" / "letter.json").write_text(json.dumps(letter))
    site.compact()
    result = site.call("redrive", "manifests")
    assert result.exit_code == 3
    assert "outside_allowed_prefixes: " in result.stdout
    traced = site.call("trace", "letter")
    assert traced.exit_code == 3
    assert "compactor redrive manifests letter" in traced.stdout
    site.config.write_text(site.config.read_text().replace('/raw"]', f'/raw", "{elsewhere}"]'))
    result = site.call("redrive", "manifests", "letter")
    assert result.exit_code == 0
    assert "letter as letter-r1  1 outside_allowed_prefixes" in result.stdout
    site.compact()
    assert site.ids() == ["7"]
    traced = site.call("trace", "letter")
    assert traced.exit_code == 0
    assert "letter-r1 (accepted): 1 outside_allowed_prefixes" in traced.stdout
    assert site.json("verify")[0]["discrepancies"] == []


def test_rejects(site: Site) -> None:
    """Rejected lines become input files of a manifest of their own; those that still are no records stay rejects."""
    source = site.write(f"{DAY}-a.ndjson", b'{"id": 1}\nno json\n\xef\xbb\xbf{"id": 2}\n')
    manifest_id = site.plan()
    site.compact()
    result = site.call("redrive", "rejects", "--date", DAY)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "Redrove 2 lines in 1 file of 1 manifest")
    [lines] = (site.root / "s" / "redriven").rglob("*.ndjson")
    assert lines.read_bytes() == b'\nno json\n\xef\xbb\xbf{"id": 2}\n'
    site.compact()
    assert site.ids() == ["1"]
    traced, _ = site.json("trace", str(lines))
    assert (traced["manifest_id"], traced["origin"]) == (f"{manifest_id}-r1", str(source))
    assert [each["manifest_id"] for each in site.json("trace", str(source))[0]["redriven_as"]] == [f"{manifest_id}-r1"]
    assert site.json("verify", "--deep")[0]["discrepancies"] == []


def test_dry_run(site: Site) -> None:
    """A dry run shows what would be done and changes nothing on the disk."""
    manifest_id = quarantined(site)
    before = site.everything()
    result = site.call("redrive", "files", "--dry-run")
    assert (result.exit_code, result.stdout) == (
        0,
        f"Would redrive 1 file of 1 manifest\n  {manifest_id}  1 missing\n",
    )
    assert site.everything() == before


def test_what_is_asked_before_much_is_done(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above a limit it asks at a terminal; without one it needs --yes, and says so; a dry run needs neither."""
    quarantined(site)
    monkeypatch.setattr(redrive_module, "ASKED_ABOVE", 0)
    result = site.call("redrive", "files")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "redrive: 1 file of 1 manifest -> expected --yes" in result.stderr
    assert site.call("redrive", "files", "--dry-run").exit_code == 0
    monkeypatch.setattr(redrive_module, "_is_terminal", lambda: True)
    declined = site.call("redrive", "files", answer="n\n")
    assert (declined.exit_code, declined.stdout) == (1, "")
    assert "Redrive 1 file of 1 manifest?" in declined.stderr
    assert site.call("redrive", "files", answer="y\n").stdout.startswith("Redrove 1 file of 1 manifest\n")
    monkeypatch.setattr(redrive_module, "_is_terminal", lambda: False)
    assert site.call("redrive", "files", "--yes").stdout.startswith("Redrove 0 files of 0 manifests\n")


def test_unknown_reason(site: Site) -> None:
    """A reason that nothing of a kind can have is wrong usage that names those there are."""
    result = site.call("redrive", "files", "--reason", "invalid_json")
    assert result.exit_code == 2
    assert "missing" in result.stderr


def test_unknown_manifest(site: Site) -> None:
    """A manifest that nobody knows is refused in words."""
    document, code = site.json("redrive", "manifests", "stranger")
    assert (document["redriven"], [each["manifest_id"] for each in document["refused"]], code) == ([], ["stranger"], 3)


@pytest.mark.parametrize("thing", ["stranger", "/nowhere/x.ndjson"])
def test_trace_of_what_nobody_knows(site: Site, thing: str) -> None:
    """What is not known ends with 1, and one line says what was searched; nothing is written."""
    before = site.everything()
    result = site.call("trace", thing)
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (1, "", 1)
    assert "searched: " in result.stderr
    assert ("for a manifest" in result.stderr) == (thing == "stranger")
    assert site.everything() == before


def test_trace_a_manifest(site: Site) -> None:
    """A manifest shows its state, its attempts and its files; so does each file that it wrote."""
    manifest_id = quarantined(site)
    text = site.call("trace", manifest_id).stdout
    for shown in ("1 at ", "1 compacted, 1 missing", f"missing: {site.root}/raw/{DAY}-b.ndjson", "redrive files"):
        assert shown in text
    [output] = (site.root / "o").rglob("*.parquet")
    document, code = site.json("trace", str(output))
    assert (document["kind"], document["manifest_id"], code) == ("output", manifest_id, 0)
    assert [file["uri"] for file in document["files"]] == [f"{site.root}/raw/{DAY}-a.ndjson"]


def test_trace_json_is_stable(site: Site) -> None:
    """The keys of the document are those that other programs count on."""
    document, _ = site.json("trace", quarantined(site))
    assert list(document) == [
        *("uri", "kind", "state", "exists", "manifest_id", "date", "manifest_uri", "attempts", "report"),
        *("files", "outputs", "rejects", "redriven_from", "origin", "redriven_as", "message", "next_moves"),
        *("searched", "meaning", "needs_operator"),
    ]
