"""What the demo works on: places, settings, and a day of events with known flaws."""

import json
from dataclasses import dataclass
from pathlib import Path

from compactor.adapters.stores import StoreSpec
from compactor.core.ports import ObjectStore
from compactor.demo.events import DAY, FILE_BYTES, DayCounts, Flaws, write_day

SEED = 20251221  # any number; the same one makes every demo the same
RAW_BUCKET = "raw"
SETTINGS_BUCKET = "settings"
BUCKETS = [RAW_BUCKET, "lake", SETTINGS_BUCKET]
QUEUE = "compactor-events"
TABLE = "compactor-claims"
REGION = "us-east-1"

_MIB = 1024 * 1024
_LARGE_BYTES = 1_000_000_000  # from here on sizes are those of production
_SMALL_MANIFESTS = 3
_SMALL_TARGET_BYTES = 8 * _MIB
_FILES_A_COMPRESSED = 8
_FILES_A_BAD_LINE = 50  # of each kind: most files have none, as with real producers


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a demo takes place.

    Attributes:
        raw: The folder of the input; it ends with `/`.
        lake: The folder of everything else; it ends with `/`.
        endpoint_url: The stand-in for AWS; empty on plain folders.
        queue_url: Where S3 announces the input there.
        total_bytes: Of the input, before compression.
    """

    raw: str
    lake: str
    endpoint_url: str
    queue_url: str
    total_bytes: int

    def settings_toml(self) -> str:
        """The settings file. Small demos have small manifests and files, so that there is more than one of each."""
        is_large = self.total_bytes >= _LARGE_BYTES
        manifest_bytes = 512 * _MIB if is_large else max(self.total_bytes // _SMALL_MANIFESTS, FILE_BYTES)
        target_bytes = 128 * _MIB if is_large else _SMALL_TARGET_BYTES
        return f"""[paths]
manifests = {json.dumps(self.lake + "manifests")}
output = {json.dumps(self.lake + "events")}
state = {json.dumps(self.lake + "state")}

[input]
allowed_prefixes = [{json.dumps(self.raw)}]

[schema]
metadata_columns = ["_source_file", "_processed_at", "_manifest_id"]

[output]
target_file_bytes = {target_bytes}

[builder]
claims = {json.dumps(TABLE if self.endpoint_url else "")}
target_manifest_bytes = {manifest_bytes}
max_wait_seconds = 1

[control]
queue_url = {json.dumps(self.queue_url)}
backoff_first_seconds = 2

[aws]
region = {json.dumps(REGION if self.endpoint_url else "")}
endpoint_url = {json.dumps(self.endpoint_url)}

[metrics]
environment = "demo"
sink = {json.dumps("cloudwatch" if self.endpoint_url else "none")}

[spark]
master = "local[*]"
"""

    def write_settings(self, file: Path) -> str:
        """Write the settings to a file, or to where the functions and the job find theirs; returns the place."""
        if not self.endpoint_url:
            file.write_text(self.settings_toml())
            return str(file)
        place = f"s3://{SETTINGS_BUCKET}/{file.name}"
        StoreSpec(region=REGION, endpoint_url=self.endpoint_url).open().put(place, self.settings_toml().encode())
        return place

    def write_events(self, store: ObjectStore) -> DayCounts:
        """Make the input: bad lines of every kind, compressed files, and a key that only the very last line has."""
        files = -(-self.total_bytes // FILE_BYTES)
        flaws = Flaws(
            bad_lines_of_each_kind=max(2, files // _FILES_A_BAD_LINE),
            gzip_files=files // _FILES_A_COMPRESSED,
            late_key=True,
        )
        return write_day(
            lambda name, data: store.put(self.raw + name, data),
            seed=SEED,
            total_bytes=self.total_bytes,
            day=DAY,
            flaws=flaws,
        )


def in_folder(folder: Path, total_bytes: int) -> Scene:
    """A scene on plain folders."""
    return Scene(raw=f"{folder}/raw/", lake=f"{folder}/lake/", endpoint_url="", queue_url="", total_bytes=total_bytes)


def in_buckets(endpoint_url: str, queue_url: str, total_bytes: int) -> Scene:
    """A scene on a stand-in for AWS."""
    raw = f"s3://{RAW_BUCKET}/"
    return Scene(raw, "s3://lake/", endpoint_url=endpoint_url, queue_url=queue_url, total_bytes=total_bytes)
