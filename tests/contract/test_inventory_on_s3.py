"""`compactor plan --inventory` on S3 with claims in DynamoDB: what it prints, and each object in one manifest."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compactor.adapters.aws.s3.store import S3Store
from compactor.cli.entry import compactor as command
from compactor.core.documents.manifest import Manifest
from tests.support.aws_stand_in import REGION
from tests.support.inventories import FORMATS, put_inventory, row
from tests.support.settings_files import write_settings

KEYS = ("2025-12-20-a b.ndjson", "2025-12-20-a+b.ndjson", "2025-12-21-ü%.ndjson", "no day ✓.ndjson")


class Lake:
    """A bucket with some objects, its inventories, and settings for it."""

    def __init__(self, s3: Any, bucket: str, table: str, folder: Path) -> None:
        self.store, self.root = S3Store(s3), f"s3://{bucket}"
        for key in KEYS:
            self.store.put(f"{self.root}/raw/{key}", b'{"id": 1}\n')
        self.config = write_settings(folder, builder={"claims": table})
        text = self.config.read_text()
        self.config.write_text(text.replace(str(folder), self.root))
        self.bucket = bucket

    def inventory(self, file_format: str, *more: dict[str, Any]) -> str:
        listed = [
            row(info.uri.removeprefix(f"{self.root}/"), info.size_bytes, info.etag, modified_at=info.modified_at)
            for info in self.store.list(f"{self.root}/")
            if "/raw/" in info.uri
        ]
        rows = [each | {"Bucket": self.bucket} for each in (*listed, *more)]
        manifest = f"{self.root}/inventories/{file_format}/2026-01-02T01-00Z/manifest.json"
        return put_inventory(
            self.store, rows, file_format=file_format, manifest=manifest, sourceBucket=self.bucket, data_files=2
        )

    def plan(self, *words: str) -> Result:
        return CliRunner().invoke(command, ["--config", str(self.config), "plan", *words])

    def planned(self) -> Counter[str]:
        waiting = [info.uri for info in self.store.list(f"{self.root}/m/") if info.uri.endswith(".json")]
        manifests = [Manifest.model_validate_json(self.store.read(uri)) for uri in waiting]
        return Counter(file.uri for each in manifests for file in each.files)


@pytest.fixture
def lake(s3: Any, bucket: str, table: str, aws_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("COMPACTOR_AWS__ENDPOINT_URL", aws_endpoint)
    monkeypatch.setenv("COMPACTOR_AWS__REGION", REGION)
    return Lake(s3, bucket, table, tmp_path)


def test_each_format_and_a_listing_agree(lake: Lake) -> None:
    """A dry run of each format shows days, rules and dollars; then all is planned once, by inventories and listing."""
    for file_format in FORMATS:
        shown = lake.plan("--inventory", lake.inventory(file_format, row("raw/empty/", 0)), "--dry-run")
        assert shown.exit_code == 0, shown.stderr
        lines = shown.stdout.splitlines()
        assert lines[0] == f"Inventory of {lake.root} at 2026-01-02 01:00 UTC, 2 data files"
        assert lines[1].startswith("Would write 3 manifests of 4 files (40 bytes) to ")
        assert [line.split("  ")[0] for line in lines if line.startswith("Dated by")] == [
            "Dated by yyyy-mm-dd in its name", "Dated by the day of its event or last write, in UTC"
        ]  # fmt: skip
        assert "Skipped: 1 object, its name ends in /" in lines
        assert lines[-1].startswith("Planning would cost about $0.00 at list prices: $0.00 for claims, $0.00 for req")
    uri = lake.inventory("ORC")
    done = json.loads(lake.plan(f"{lake.root}/raw", "--inventory", uri, "--max-manifests", "1", "--json").stdout)
    assert (len(done["manifests"]), done["left_manifests"], done["stalled"]) == (1, 2, False)
    inventory = {each: done["inventory"][each] for each in ("uri", "bucket", "created_at", "data_files")}
    created = "2026-01-02T01:00:00Z"
    assert inventory == {"uri": uri, "bucket": lake.bucket, "created_at": created, "data_files": 2}
    assert (
        "Wrote 2 manifests of 2 files" in lake.plan("--inventory", lake.inventory("CSV"), "--rate", "unlimited").stdout
    )
    assert lake.planned() == Counter(f"{lake.root}/raw/{key}" for key in KEYS)
    assert "Already in a manifest: 4 files" in lake.plan(f"{lake.root}/raw").stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--inventory", "{root}/inventories/symlink.txt"], 1, "expected the manifest.json of an S3 Inventory"),
        (["--inventory", "{root}/nowhere/manifest.json"], 1, "no such object; expected the manifest.json"),
        (["{root}/output", "--inventory", "{inventory}"], 2, "expected a folder within input.allowed_prefixes"),
        (["--inventory", "{inventory}", "--rate", "0"], 2, "expected live, unlimited, or manifests an hour"),
        pytest.param(
            ["--inventory", "{inventory}", "--rate", "nan"],
            2,
            "expected live, unlimited, or manifests an hour",
            marks=pytest.mark.full,
        ),
        (["{root}/raw", "--rate", "live"], 2, "--rate needs --inventory"),
        pytest.param([], 2, "Missing argument", marks=pytest.mark.full),
    ],
)
def test_wrong_use(lake: Lake, words: list[str], code: int, message: str) -> None:
    """Each fault is named, with what was expected; nothing is written."""
    inventory = lake.inventory("CSV")
    result = lake.plan(*(each.format(root=lake.root, inventory=inventory) for each in words))
    assert (result.exit_code, lake.planned()) == (code, Counter())
    assert message in " ".join(result.stderr.split())
