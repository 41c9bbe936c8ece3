"""The job of a soak as its operator has it: settings, commands and environment."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compactor.settings.toml import toml_of
from tests.faults.s3_server import ROOT
from tests.soak.files import MAX_LINE_BYTES
from tests.soak.place import Place

LEASE_SECONDS = 3
TIMEOUT_SECONDS = 3


@dataclass(frozen=True, slots=True)
class Job:
    """One job.

    Attributes:
        engine: `spark` or `native` on Spark, or `plain` without it.
        folder: Takes the settings files and the log.
        where: The places of the data.
    """

    engine: str
    folder: Path
    where: Place

    @property
    def config(self) -> Path:
        """The settings of the job, whose calls may go wrong."""
        return self._written("compactor.toml", self.where.url)

    @property
    def direct(self) -> Path:
        """The same, past all faults."""
        return self._written("direct.toml", self.where.direct_url)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.where.environment, "PYTHONPATH": str(ROOT)}

    def command(self, *, once: bool) -> list[str]:
        """Starts the job; with `once`, it ends when everything is done."""
        if self.engine == "plain":
            return [sys.executable, "-m", "tests.faults.plain_job", str(self.config)]
        return [sys.executable, "-m", "compactor", "--config", str(self.config), "run", *(["--once"] if once else [])]

    def verified(self) -> dict[str, Any]:
        """What `compactor verify --deep --json` prints."""
        command = [sys.executable, "-m", "compactor", "--config", str(self.direct), "verify", "--deep", "--json"]
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, text=True, check=False)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _written(self, name: str, url: str) -> Path:
        path = self.folder / name
        if not path.exists():
            path.write_text(toml_of(self._settings(url)))
        return path

    def _settings(self, url: str) -> dict[str, dict[str, object]]:
        root = self.where.root
        return {
            "paths": {name: f"{root}/{name}" for name in ("manifests", "output", "state")},
            "input": {"allowed_prefixes": [f"{root}/input"], "max_line_bytes": MAX_LINE_BYTES},
            "schema": {"metadata_columns": []},
            "stream": {"trigger_interval_seconds": 1},
            "builder": {"target_manifest_bytes": 50_000},
            "aws": {"region": self.where.region, "endpoint_url": url, "timeout_seconds": TIMEOUT_SECONDS},
            "metrics": {"sink": "none"},
            "convert": {"engine": "auto" if self.engine == "plain" else self.engine},
            "spark": {"conf": {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.ui.enabled": False}},
        }
