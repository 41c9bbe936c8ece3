"""The places, settings and input of the demo: one day of events with known flaws."""

from dataclasses import dataclass
from pathlib import Path

from compactor.adapters.stores import StoreSpec
from compactor.core.ports import ObjectStore
from compactor.demo.events import FILE_BYTES, DayCounts, Flaws, write_day
from compactor.settings.toml import toml_of
from compactor.settings.types import MIB

RAW_BUCKET = "raw"
SETTINGS_BUCKET = "settings"
BUCKETS = [RAW_BUCKET, "lake", SETTINGS_BUCKET]
QUEUE = "compactor-events"
TABLE = "compactor-claims"
REGION = "us-east-1"

SEED = 20251221  # the same in every demo, so all demos make the same events
_LARGE_BYTES = 1_000_000_000  # from this size on, manifests and files have production sizes
_SMALL_MANIFESTS = 3
_FILES_PER_COMPRESSED = 8
_FILES_PER_BAD_LINE = 50  # of each kind: most files have none, as with real producers


@dataclass(frozen=True, slots=True)
class Scene:
    """The places of a demo. Local folders have neither an AWS emulator nor a queue of S3 events."""

    raw: str  # the folder of the input; it ends with `/`
    lake: str  # the folder of everything else; it ends with `/`
    total_bytes: int  # size of the input before compression
    endpoint_url: str = ""
    queue_url: str = ""
    with_spark: bool = True  # whether the job runs on Spark; else it lists manifests and uses the native engine

    def settings_toml(self) -> str:
        """The settings file. A small demo has small manifests and files, so there are several of each."""
        is_large, is_on_aws = self.total_bytes >= _LARGE_BYTES, bool(self.endpoint_url)
        manifest_bytes = 512 * MIB if is_large else max(self.total_bytes // _SMALL_MANIFESTS, FILE_BYTES)
        claims, region, sink = (TABLE, REGION, "cloudwatch") if is_on_aws else ("", "", "none")
        names = {"manifests": "manifests", "output": "events", "state": "state"}
        return toml_of(
            {
                "paths": {key: f"{self.lake}{name}" for key, name in names.items()},
                "input": {"allowed_prefixes": [self.raw]},
                "schema": {"metadata_columns": ["_source_file", "_processed_at", "_manifest_id"]},
                "output": {"target_file_bytes": 128 * MIB if is_large else 8 * MIB},
                "builder": {"claims": claims, "target_manifest_bytes": manifest_bytes, "max_wait_seconds": 1},
                "control": {"queue_url": self.queue_url},
                "aws": {"region": region, "endpoint_url": self.endpoint_url},
                "metrics": {"environment": "demo", "sink": sink},
                "stream": {"source": "spark" if self.with_spark else "listing"},
                "spark": {"conf": {"spark.master": "local[*]"}},
            }
        )

    def write_settings(self, file: Path) -> str:
        """Write the settings to a file, or to S3 for functions and job; returns their place."""
        if not self.endpoint_url:
            file.write_text(self.settings_toml())
            return str(file)
        place = f"s3://{SETTINGS_BUCKET}/{file.name}"
        StoreSpec(region=REGION, endpoint_url=self.endpoint_url).open().put(place, self.settings_toml().encode())
        return place

    def write_events(self, store: ObjectStore) -> DayCounts:
        """Write the input: bad lines of every kind, compressed files, and a key that only the last line has."""
        files = -(-self.total_bytes // FILE_BYTES)
        flaws = Flaws(max(2, files // _FILES_PER_BAD_LINE), gzip_files=files // _FILES_PER_COMPRESSED, late_key=True)
        return write_day(
            lambda name, data: store.put(self.raw + name, data), seed=SEED, total_bytes=self.total_bytes, flaws=flaws
        )
