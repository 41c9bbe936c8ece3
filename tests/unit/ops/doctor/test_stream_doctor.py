"""The doctor of several streams checks the places of each, and what they have together once."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from compactor.cli.entry import compactor as command
from tests.support.streams import write_stream_settings


def findings(config: Path, *more: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(command, ["--config", str(config), "doctor", "--elsewhere", "--json", *more])
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def of(found: list[dict[str, Any]], stream: str) -> list[str]:
    return [each["name"] for each in found if each["stream"] == stream]


def test_the_places_of_every_stream_are_checked(tmp_path: Path) -> None:
    """Without --stream, each stream has the checks that it has with its name, and no other is left out."""
    config = write_stream_settings(tmp_path, "orders", "clicks")
    found = findings(config)
    assert [each["state"] for each in found if each["state"] == "fault"] == []
    for name in ("orders", "clicks"):
        alone = [each["name"] for each in findings(config, "--stream", name)]
        assert of(found, name) == [each for each in alone if each not in {"settings", "aws"}]
        assert {"input", "manifests", "output", "state"} <= {*of(found, name)}
    assert of(found, "") == ["settings", "state", "aws"]


def test_a_fault_of_one_stream_is_told_with_its_name(tmp_path: Path) -> None:
    """The other stream is checked none the less, and the exit code is 2."""
    config = write_stream_settings(tmp_path, "orders", "clicks")
    (tmp_path / "lake" / "raw" / "orders").rmdir()
    (tmp_path / "lake" / "output").mkdir()
    (tmp_path / "lake" / "output" / "clicks").write_text("no folder")
    done = CliRunner().invoke(command, ["--config", str(config), "doctor", "--elsewhere"])
    assert done.exit_code == 2
    assert "clicks: output " in done.stdout
    faults = [(each["stream"], each["name"]) for each in findings(config) if each["state"] == "fault"]
    assert ("clicks", "output") in faults
    assert ("orders", "output") not in faults
