"""`compactor data erase` on S3: rows, rejects and input are erased, and it says what a bucket with versions keeps."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compactor.adapters.aws.s3.store import S3Store
from compactor.cli.entry import compactor as command
from tests.support.erasing import ALICE, BROKEN, ESCAPED, LISTED, PLAIN, REJECTS, ROWS, holding_in
from tests.support.extras import NATIVE

pytestmark = NATIVE.needed


@pytest.fixture(autouse=True)
def aws(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables by which a call finds the stand-in for S3."""
    monkeypatch.setenv("COMPACTOR_AWS__ENDPOINT_URL", aws_endpoint)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


def test_a_person_goes_from_a_bucket(s3: Any, bucket: str, tmp_path: Path) -> None:
    """No object of it holds the value afterwards, and every line is accounted for."""
    store, root = S3Store(s3), f"s3://{bucket}"
    store.put(f"{root}/raw/a.ndjson", PLAIN + BROKEN)
    store.put(f"{root}/raw/b.ndjson.gz", gzip.compress(ESCAPED + LISTED))
    assert CliRunner().invoke(command, ["compact", f"{root}/raw", f"{root}/rows"]).exit_code == 0
    assert holding_in(store, f"{root}/")
    values = tmp_path / "values.txt"
    values.write_text(f"{ALICE}\n")
    words = [
        "data",
        "erase",
        f"{root}/rows",
        "--key",
        "user_id",
        "--value-file",
        str(values),
        "--inputs",
        "delete",
        "--yes",
    ]
    erased = CliRunner().invoke(command, [*words, "--json"])
    assert erased.exit_code == 0, erased.stderr
    document = json.loads(erased.stdout)
    assert [(each["rows"], each["rejected_lines"]) for each in document["erased"]] == [(ROWS, REJECTS)]
    assert holding_in(store, f"{root}/") == []
    verified = CliRunner().invoke(command, ["verify", f"{root}/rows", "--deep", "--json"])
    assert (verified.exit_code, json.loads(verified.stdout)["erased_lines"]) == (0, ROWS + REJECTS)
    again = CliRunner().invoke(command, words)
    assert (again.exit_code, "buckets with versioning" in again.stderr) == (0, True)
