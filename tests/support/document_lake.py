"""A small local lake that the examples of the documents are about; made without Spark, with `config/local.toml`.

Two manifests, the second of which brings a key that the first did not have; rejects of both; a file that went missing;
and a dead letter.
"""

import os
import sys
from pathlib import Path
from unittest.mock import patch

from compactor.adapters.listed_manifests import ListedManifests
from compactor.settings.settings import load_settings
from compactor.wiring import finding, streaming
from compactor.wiring.app import App
from tests.support.engines import DEFAULT, engine_without_spark

ROOT = Path(__file__).resolve().parents[2]
DAY = "2025-12-21"

ENVIRONMENT = {"COMPACTOR_CONFIG": "config/local.toml", "COLUMNS": "80"}
"""What the examples find set."""

SCHEMA_FILE = """\
[[columns]]
name = "amount"
type = "decimal(18,2)"
"""

BENCH_RESULT = """\
{"megabytes_per_second": {"native": 1016, "spark": 117}, "cores": 2, "machine": "Linux x86_64",
 "measured_at": "2026-11-28T11:49:02Z"}
"""
"""What `make bench` left when the table of the README was made."""

MORNING = b"""\
{"order": "A-1", "amount": 17.50, "quantity": 2, "sentAt": "2025-12-21T08:00:00Z", "user": {"id": 7}}
{"order": "A-2", "amount": "n/a", "quantity": 1, "sentAt": "2025-12-21T08:00:02Z", "user": {"id": 8}}

{"order": "A-3", "amount": 1e2, "quantity": 3, "sentAt": "2025-12-21T08:00:05Z"
{"order": "A-4", "amount": 4.20, "quantity": 1, "sentAt": "2025-12-21T08:01:00Z", "user": null}
"""

EVENING = b"""\
{"order": "B-1", "amount": 3.99, "quantity": 5, "sentAt": "2025-12-21T20:00:00Z", "coupon": "XMAS"}
[1, 2, 3]
{"order": "B-2", "amount": 12.00, "quantity": 1, "sentAt": "2025-12-21T20:10:00Z"}
"""


def make_lake(folder: Path) -> None:
    """Fill an empty folder, in which the examples are to run."""
    (folder / "config").mkdir()
    for shipped in (ROOT / "config").glob("*.toml"):
        (folder / "config" / shipped.name).write_text(
            shipped.read_text().replace("[schema]\n", '[schema]\nfile = "columns.toml"\n')
        )
    (folder / "columns.toml").write_text(SCHEMA_FILE)
    (folder / "bench.json").write_text(BENCH_RESULT)
    (folder / "streams.toml").write_text(
        (ROOT / "docs" / "streams.md").read_text().split("```toml\n")[1].split("```")[0]
    )
    streams = folder / "data" / "streams" / "raw"
    (streams / "orders" / "returns").mkdir(parents=True)
    (streams / "orders" / f"{DAY}.ndjson").write_bytes(MORNING)
    (streams / "orders" / "returns" / f"{DAY}.ndjson").write_bytes(EVENING)
    raw = folder / "data" / "local" / "raw"
    raw.mkdir(parents=True)
    before = Path.cwd()
    os.chdir(folder)
    try:
        with patch("compactor.engines.native.engine.SAMPLE_BYTES", 1000):
            (raw / f"{DAY}-morning.ndjson").write_bytes(MORNING)
            _compact()
            (raw / f"{DAY}-evening.ndjson").write_bytes(EVENING)
            (raw / f"{DAY}-lost.ndjson").write_bytes(EVENING)
            app = _app()
            finding.plan(app, app.settings.input.allowed_prefixes[0])
            (raw / f"{DAY}-lost.ndjson").unlink()
            app.store.put(f"{app.layout.manifests_folder}broken.json", b"{")
            _run(app)
    finally:
        os.chdir(before)


def _app() -> App:
    return App(load_settings(Path(ENVIRONMENT["COMPACTOR_CONFIG"]), ENVIRONMENT))


def _compact() -> None:
    app = _app()
    finding.plan(app, app.settings.input.allowed_prefixes[0])
    _run(app)


def _run(app: App) -> None:
    engine = engine_without_spark(DEFAULT, app, rows_per_file=1000, target_file_bytes=1 << 20)
    streaming.service_on(app, engine, ListedManifests(app.store, app.layout.manifests_folder)).run(once=True)


if __name__ == "__main__":
    make_lake(Path(sys.argv[1]))
