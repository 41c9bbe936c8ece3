"""Plans a made-up S3 Inventory or listing in a process of its own, which prints what it took.

For tests of memory, and of kills. The objects are nowhere: the store says of each what the inventory says.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.adapters.local.store import LocalStore
from compactor.core.documents.manifest import Manifest
from compactor.core.ports import ObjectInfo
from compactor.settings.settings import parse_settings
from compactor.sources.input_files import EVERYTHING
from compactor.sources.inventory.planning import Rate
from compactor.sources.inventory.reading import InventoryReader
from compactor.sources.inventory.rows import files_in_scope
from compactor.sources.plan import Plan
from compactor.wiring import finding
from compactor.wiring.app import App
from tests.support.inventories import BUCKET, NEEDED, file_schema, put_document

PREFIX = f"s3://{BUCKET}/raw/"
FILE_BYTES = 3_500_000
DAYS = 365
_BATCH = 100_000
_START = datetime(2025, 1, 1, tzinfo=UTC)


class InventedStore(LocalStore):
    """A local store that says that every object on S3 is there, and lists so many.

    Args:
        objects: How many objects a listing of S3 has.
    """

    def __init__(self, objects: int) -> None:
        super().__init__()
        self._invented = objects

    def list(self, prefix: str, *, start_after: str | None = None, **options: Any) -> Iterator[ObjectInfo]:
        if not prefix.startswith("s3://"):
            return super().list(prefix, start_after=start_after, **options)
        days = ((number, _START + timedelta(days=number % DAYS)) for number in range(self._invented))
        return (
            ObjectInfo(f"s3://{BUCKET}/{_key(number, day)}", FILE_BYTES, _etag(number), day) for number, day in days
        )

    def stat(self, uri: str) -> ObjectInfo | None:
        if uri.startswith("s3://"):
            return ObjectInfo(uri, FILE_BYTES, _etag(_number(uri)), _START)
        return super().stat(uri)


def _etag(number: int) -> str:
    return f"{number * 0x9E3779B97F4A7C15 & (1 << 128) - 1:032x}"


def _key(number: int, day: datetime) -> str:
    return f"raw/events/{day:%Y-%m-%d}/producer-{number % 97:02d}-part-{number:09d}.ndjson"


def _batches(objects: int) -> Iterator[pa.Table]:
    """Rows in no order of days: each object is of another day than the one before."""
    for start in range(0, objects, _BATCH):
        numbers = range(start, min(start + _BATCH, objects))
        days = [_START + timedelta(days=number % DAYS) for number in numbers]
        yield pa.table(
            {
                "bucket": [BUCKET] * len(numbers),
                "key": [_key(number, day) for number, day in zip(numbers, days, strict=True)],
                "size": [FILE_BYTES] * len(numbers),
                "last_modified_date": pa.array([day.replace(tzinfo=None) for day in days], pa.timestamp("ms")),
                "e_tag": [_etag(number) for number in numbers],
            }
        )


def make_inventory(folder: Path, objects: int, data_files: int) -> str:
    """Write an inventory of so many objects, in bounded memory; the place of its manifest.json."""
    manifest, named = folder / "all" / "2026-01-02T01-00Z" / "manifest.json", []
    (folder / "all" / "data").mkdir(parents=True)
    batches, of_each = _batches(objects), -(-objects // _BATCH // data_files) or 1
    for number in range(data_files):
        path = folder / "all" / "data" / f"{number}.parquet"
        tables = [*islice(batches, of_each)]
        if not tables:
            break
        pq.write_table(pa.concat_tables(tables), path, row_group_size=_BATCH)
        md5 = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        named.append({"key": f"all/data/{path.name}", "size": path.stat().st_size, "MD5checksum": md5})
    document = {
        "sourceBucket": BUCKET,
        "creationTimestamp": "1767315600000",
        "fileFormat": "Parquet",
        "fileSchema": file_schema("Parquet", NEEDED),
        "files": named,
    }
    put_document(LocalStore(), json.dumps(document).encode(), str(manifest))
    return str(manifest)


def planned_in(folder: Path, source: str, *, die_after: int = 0) -> dict[str, int]:
    """Plan in a process of its own; what it took, nothing if it was killed as it was meant to be.

    Args:
        folder: Everything that is written.
        source: The manifest.json of an inventory, or the number of objects that a listing has.
        die_after: The crash point at which it dies; 0 to live.
    """
    words = [sys.executable, "-m", __name__, str(folder), source, str(die_after)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    expected = -signal.SIGKILL if die_after else 0
    assert done.returncode == expected, done.stderr
    return {} if die_after else dict(json.loads(done.stdout))


def planned_numbers(folder: Path) -> "array[int]":
    """The numbers of all objects that waiting manifests name, in order and as often as they are named."""
    numbers = array("Q")
    for path in (folder / "m").glob("*.json"):
        manifest = Manifest.model_validate_json(path.read_bytes())
        numbers.extend(_number(each.uri) for each in manifest.files)
    return array("Q", sorted(numbers))


def _number(uri: str) -> int:
    return int(uri.rpartition("-")[2].partition(".")[0])


def app_of(folder: Path, die_after: int, objects: int = 0) -> App:
    """The parts of a process that kills itself at the nth crash point; 0 to live."""
    reached = 0

    def on_crash_point(_point: StrEnum, _manifest_id: str) -> None:
        nonlocal reached
        reached += 1
        if reached == die_after:
            os.kill(os.getpid(), signal.SIGKILL)

    settings = parse_settings(
        {
            "paths": {"manifests": f"{folder}/m", "output": f"{folder}/o", "state": f"{folder}/s"},
            "input": {"allowed_prefixes": [f"s3://{BUCKET}/raw"]},
        }
    )
    settings = replace(settings, claim_lease_seconds=5)
    return App(settings, store=InventedStore(objects), on_crash_point=on_crash_point)


def main(folder: Path, source: str, die_after: int) -> None:
    """Plan, and print figures as JSON."""
    began = time.monotonic()
    if source.isdecimal():
        totals = _planned_listing(app_of(folder, die_after, int(source)))
    else:
        totals = _planned_inventory(app_of(folder, die_after), source)
    figures = {
        "files": totals.files,
        "manifests": len(totals.manifests),
        "planned_before": totals.planned_before,
        "held": totals.held,
        "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(time.process_time(), 1),
        "peak_mb": _peak_mb(),
    }
    sys.stdout.write(json.dumps(figures))


def _peak_mb() -> int:
    """The peak of this program alone; `getrusage` would give that of its parent, if it was larger."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024


def _planned_listing(app: App) -> Plan:
    while (plan := finding.plan(app, PREFIX)).held_until is not None:  # a person plans again, as the command says
        time.sleep(max(0.0, (plan.held_until - app.clock.now()).total_seconds()) + 0.1)
    return plan


def _planned_inventory(app: App, manifest: str) -> Plan:
    reader = InventoryReader(app.store)
    inventory = reader.open(manifest)
    found = partial(files_in_scope, inventory, reader.rows(inventory), (PREFIX,), EVERYTHING, app.state.rules)
    return finding.plan_inventory(app, found, Rate(is_paced=False), on_wait=print)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
