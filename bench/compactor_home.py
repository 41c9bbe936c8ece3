"""The places of the compactor in a benchmark: on a local disk, or on an S3 server that keeps them there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.ports import ObjectStore
from compactor.schema import schema_of_settings
from compactor.settings.settings import Settings, parse_settings

schema_of_settings.MAX_NEW_COLUMNS_PER_DAY = 10_000  # the widest shape is a new table with as many columns as may be

DAY = "2025-12-21"
SAMPLE_ID = "sample"
REGION = "eu-west-1"


@dataclass(frozen=True, slots=True)
class S3Folder:
    """An S3 server that keeps its objects as files, one folder for each bucket.

    Attributes:
        folder: The folder of the buckets.
        endpoint_url: The URL of the server. Credentials are in the environment.
    """

    folder: Path
    endpoint_url: str


@dataclass(frozen=True, slots=True)
class CompactorHome:
    """The places of one job.

    Attributes:
        output: The local folder for Parquet files; all other files are in a folder beside it.
        inputs: The local folders of the input.
        s3: The server through which the job reaches these folders; None if it reads them directly.
    """

    output: Path
    inputs: tuple[Path, ...]
    s3: S3Folder | None = None

    @property
    def folder(self) -> Path:
        """The folder of everything but the output."""
        return self.output.with_name(self.output.name + "-compactor")

    def uri(self, path: Path) -> str:
        """The URI by which the job knows a local path."""
        return str(path) if self.s3 is None else f"s3://{path.relative_to(self.s3.folder)}"

    def settings(
        self, *, engine: Literal["native", "spark"], discovery: str = "full", schema_file: Path | None = None
    ) -> Settings:
        """The settings of the job: engine, `input.discovery` and `schema.file` as given."""
        return parse_settings(
            {
                "paths": {
                    "manifests": self.uri(self.folder / "manifests"),
                    "output": self.uri(self.output),
                    "state": self.uri(self.folder / "state"),
                },
                "input": {"allowed_prefixes": list(map(self.uri, self.inputs)), "discovery": discovery},
                "schema": {"file": str(schema_file)} if schema_file else {},
                "convert": {"engine": engine},
                "aws": {"region": REGION, "endpoint_url": self.s3.endpoint_url} if self.s3 else {},
            }
        )

    def versions(self, store: ObjectStore) -> dict[str, str]:
        """The ETags of the input, by URI, as a notification tells them to the manifest builder."""
        return {each.uri: each.etag for folder in self.inputs for each in store.list(f"{self.uri(folder)}/")}

    def manifest(self, manifest_id: str, files: Sequence[Path], versions: Mapping[str, str] | None = None) -> Manifest:
        """Make a manifest of some input files; `versions` has their ETags."""
        known = versions or {}
        return Manifest(
            manifest_id=manifest_id,
            date=DAY,
            created_at=datetime.now(UTC),
            files=tuple(
                ManifestFile(uri=uri, size_bytes=file.stat().st_size, etag=known.get(uri))
                for uri, file in zip(map(self.uri, files), files, strict=True)
            ),
        )
