"""`compactor restore`: a damaged or deleted record gets its earlier version back, from a bucket that keeps versions."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compactor.adapters.aws.clients import aws_client
from compactor.cli.entry import compactor
from compactor.core.errors import ExitCode
from tests.support.aws_stand_in import REGION

BUCKET = "restored-records"
RECORD = f"s3://{BUCKET}/state/accepted/date=2026-01-02/m.json"
KEY = RECORD.partition(f"{BUCKET}/")[2]


@pytest.fixture
def s3(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of a stand-in whose bucket keeps versions."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    client = aws_client("s3", REGION, aws_endpoint)
    with suppress(client.exceptions.BucketAlreadyOwnedByYou):
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    for each in client.list_object_versions(Bucket=BUCKET).get("Versions", ()):
        client.delete_object(Bucket=BUCKET, Key=each["Key"], VersionId=each["VersionId"])
    client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    return client


@pytest.fixture
def config(aws_endpoint: str, tmp_path: Path) -> Path:
    path = tmp_path / "job.toml"
    path.write_text(
        f"""
        paths = {{manifests = "s3://{BUCKET}/manifests", output = "s3://lake/events", state = "s3://{BUCKET}/state"}}
        input = {{allowed_prefixes = ["s3://raw"]}}
        aws = {{region = "{REGION}", endpoint_url = "{aws_endpoint}"}}
        """
    )
    return path


def call(config: Path, *words: str) -> Result:
    return CliRunner().invoke(compactor, ["--config", str(config), "restore", *words])


def put(s3: Any, *bodies: bytes, key: str = KEY) -> None:
    for body in bodies:
        s3.put_object(Bucket=BUCKET, Key=key, Body=body)


def body(s3: Any) -> bytes:
    return bytes(s3.get_object(Bucket=BUCKET, Key=KEY)["Body"].read())


def test_a_damaged_record_gets_its_earlier_version_back(s3: Any, config: Path) -> None:
    """The newest version before the damage, after a check; the damaged one stays among the versions."""
    put(s3, b"first", b"second", b"damaged")
    put(s3, b"other", b"others", key=f"{KEY}.other")  # a key that begins alike
    shown = call(config, RECORD, "--dry-run")
    assert (shown.exit_code, body(s3)) == (ExitCode.DONE, b"damaged")
    assert "Would restore the version of " in shown.output
    refused = call(config, RECORD)
    assert (refused.exit_code, body(s3)) == (ExitCode.WRONG_USAGE, b"damaged")
    done = call(config, RECORD, "--yes")
    assert (done.exit_code, body(s3)) == (ExitCode.DONE, b"second")
    assert len(s3.list_object_versions(Bucket=BUCKET, Prefix=KEY)["Versions"]) == 6


def test_a_repeated_call_does_not_bring_the_damage_back(s3: Any, config: Path) -> None:
    """The version before a restored one is the damaged one; any version can be chosen by its id."""
    put(s3, b"first", b"second", b"damaged")
    assert call(config, RECORD, "--yes").exit_code == ExitCode.DONE
    again = call(config, RECORD, "--yes")
    assert (again.exit_code, body(s3)) == (ExitCode.FAILED, b"second")
    assert "it was restored from version" in again.stderr
    listed = s3.list_object_versions(Bucket=BUCKET, Prefix=KEY)["Versions"]
    first = listed[-1]["VersionId"]
    assert call(config, RECORD, "--yes", "--version", first).exit_code == ExitCode.DONE
    assert body(s3) == b"first"
    missing = call(config, RECORD, "--yes", "--version", "none")
    assert missing.exit_code == ExitCode.FAILED
    put(s3, b"damaged again")
    assert call(config, RECORD, "--yes").exit_code == ExitCode.DONE
    assert body(s3) == b"first"


def test_a_deleted_record_comes_back(s3: Any, config: Path) -> None:
    """The marker of the deletion is no version."""
    put(s3, b"first", b"second")
    s3.delete_object(Bucket=BUCKET, Key=KEY)
    assert call(config, RECORD, "--yes").exit_code == ExitCode.DONE
    assert body(s3) == b"second"


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        (RECORD, f"the bucket {BUCKET} keeps no earlier version of this object"),
        ("s3://raw/a.ndjson", "expected an object within"),
        (f"s3://{BUCKET}/state/../other", "expected an object within"),
    ],
)
def test_what_cannot_be_restored(s3: Any, config: Path, uri: str, words: str) -> None:
    """An object with one version, and any object that is not the job's own."""
    put(s3, b"only")
    refused = call(config, uri, "--yes")
    assert refused.exit_code in {ExitCode.FAILED, ExitCode.WRONG_USAGE}
    assert words in refused.output + refused.stderr
    assert body(s3) == b"only"


def test_a_folder_keeps_no_versions(tmp_path: Path) -> None:
    """The message says why."""
    config = tmp_path / "job.toml"
    config.write_text(
        f'paths = {{manifests = "{tmp_path}/m", output = "{tmp_path}/o", state = "{tmp_path}/s"}}\n'
        f'input = {{allowed_prefixes = ["{tmp_path}/i"]}}\n'
    )
    refused = call(config, f"{tmp_path}/s/accepted/m.json", "--yes")
    assert refused.exit_code == ExitCode.FAILED
    assert "a local folder keeps no earlier versions" in refused.stderr
