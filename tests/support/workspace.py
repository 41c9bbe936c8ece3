"""Settings on plain folders, with input: for tests that run commands."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from compactor.adapters.listed_manifests import ListedManifests
from compactor.cli.entry import compactor as command
from compactor.engines.engine import Engine
from compactor.ndjson.lines import Limits
from compactor.settings.settings import load_settings
from compactor.wiring import streaming
from compactor.wiring.app import App
from tests.support.fakes import PlainEngine
from tests.support.settings_files import write_settings

DAY = "2025-12-21"
GOOD = b'{"id": 1, "price": 1.10}\n{"id": 2}\n\n'
FLAWED = b'{"id": 3}\nnot json\n'


@dataclass(frozen=True)
class Workspace:
    """Settings on plain folders, with input."""

    root: Path
    config: Path

    def call(self, *arguments: str) -> Result:
        return CliRunner().invoke(command, ["--config", str(self.config), *arguments])

    def json(self, *arguments: str) -> tuple[Any, int]:
        """The one document that a command prints, and its exit code."""
        result = self.call(*arguments, "--json")
        return json.loads(result.stdout), result.exit_code

    def raw(self, name: str) -> str:
        return str(self.root / "raw" / name)

    def plan(self) -> str:
        """Plan everything, into the one manifest whose id is given back."""
        document, code = self.json("plan", str(self.root / "raw"))
        assert code == 0
        [manifest] = document["manifests"]
        return str(manifest["manifest_id"])

    @property
    def app(self) -> App:
        """The parts of a fresh process."""
        return App(load_settings(self.config, {}))

    def compact(self, engine: Engine | None = None) -> None:
        """Do all there is to do."""
        app = self.app
        source = ListedManifests(app.store, app.layout.manifests_folder)
        streaming.service_on(
            app,
            engine
            or PlainEngine(
                app.store,
                metadata_columns=app.settings.metadata_columns,
                reject_limits=Limits.of(app.settings).rejects,
            ),
            source,
        ).run(once=True)


def make_workspace(root: Path) -> Workspace:
    """Two input files, one of them with a bad line, and nothing planned."""
    config = write_settings(root)
    (root / "raw").mkdir()
    (root / "raw" / f"{DAY}-good.ndjson").write_bytes(GOOD)
    (root / "raw" / f"{DAY}-flawed.ndjson").write_bytes(FLAWED)
    return Workspace(root, config)
