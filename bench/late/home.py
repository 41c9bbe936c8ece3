"""A job on a local disk with a table in SQLite, whose commands run in processes of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from pyiceberg.table import Table

from bench.late.events import Lateness, lines
from compactor.adapters.iceberg.opening import CatalogPlace, open_catalog
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.settings.toml import toml_of

NAME = "lake.events"
_FILES = 8  # of a manifest
_COLUMNS = {"ts": "timestamp", "user": "string", "amount": "long", "session": "string", "page": "string"}


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that is done.

    Attributes:
        document: What it printed as JSON; nothing if it prints none.
        seconds: How long it took.
        peak_bytes: The most memory that its process had.
    """

    document: dict[str, Any]
    seconds: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Home:
    """The places and settings of the job.

    Attributes:
        folder: The folder of everything.
        target_file_bytes: How large an output file should be.
        partition_by: As in the settings.
    """

    folder: Path
    target_file_bytes: int
    partition_by: Sequence[str]

    @property
    def place(self) -> CatalogPlace:
        """The catalog."""
        warehouse = (self.folder / "warehouse").as_uri()
        return CatalogPlace(kind="sql", uri=f"sqlite:///{self.folder / 'catalog.db'}", warehouse=warehouse)

    def begin(self) -> None:
        """Write the settings."""
        schema = "".join(f'[[columns]]\nname = "{name}"\ntype = "{kind}"\n' for name, kind in _COLUMNS.items())
        (self.folder / "schema.toml").write_text(schema)
        settings: dict[str, Mapping[str, Any]] = {
            "paths": {place: str(self.folder / place) for place in ("manifests", "output", "state")},
            "input": {"allowed_prefixes": [str(self.folder / "raw")]},
            "schema": {"file": str(self.folder / "schema.toml")},
            "output": {
                "target_file_bytes": self.target_file_bytes,
                "partition_by": list(self.partition_by),
            },
            "table": {"catalog": "sql", "uri": self.place.uri, "warehouse": self.place.warehouse, "name": NAME},
            "stream": {"source": "listing"},
            "convert": {"engine": "native"},
            "metrics": {"sink": "none"},
        }
        (self.folder / "settings.toml").write_text(toml_of(settings))

    def deliver(self, day: date, number: int, rows: int, lateness: Lateness) -> None:
        """Write the input of one manifest of a day, and the manifest."""
        manifest_id, files = f"{day}-{number:03d}", list[ManifestFile]()
        raw, manifests = self.folder / "raw" / manifest_id, self.folder / "manifests"
        raw.mkdir(parents=True)
        made = lines(day, rows, lateness, manifest_id)
        for part in range(_FILES):
            path = raw / f"{part}.ndjson"
            path.write_bytes(b"".join(islice(made, -(-rows // _FILES))))
            files.append(ManifestFile(uri=str(path), size_bytes=path.stat().st_size, event_time=datetime.now(UTC)))
        manifest = Manifest(
            manifest_id=manifest_id, date=day.isoformat(), created_at=datetime.now(UTC), files=tuple(files)
        )
        manifests.mkdir(parents=True, exist_ok=True)
        (manifests / f"{manifest_id}.json").write_bytes(manifest.to_json())

    def call(self, *words: str) -> Ended:
        """Run a command of the compactor to its end.

        Raises:
            SystemExit: It failed.
        """
        arguments = [sys.executable, "-m", "compactor", "--config", str(self.folder / "settings.toml"), *words]
        began = datetime.now(UTC)
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=(self.folder / "log").open("ab"))
        printed = process.communicate()[0] if process.stdout is None else process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said = (self.folder / "log").read_text()[-2000:]
            raise SystemExit(f"compactor {' '.join(words)}: exit code {process.returncode}: {said}")
        seconds = (datetime.now(UTC) - began).total_seconds()
        document = json.loads(printed) if "--json" in words else {}
        return Ended(document, seconds, usage.ru_maxrss * 1024)

    def table(self) -> Table:
        """The table, as pyiceberg reads it."""
        return open_catalog(self.place).load_table(NAME)
