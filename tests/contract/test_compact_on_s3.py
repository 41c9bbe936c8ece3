"""`compactor compact` from prefix to prefix of S3: without a table, and as exact as on a disk."""

import io
import json
from collections import Counter
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from compactor.adapters.aws.s3 import S3Store
from compactor.cli.entry import compactor as command
from tests.support.extras import NATIVE

pytestmark = NATIVE.needed


def call(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(command, [*arguments, "--json"])
    assert result.exit_code == 0, result.stderr
    return dict(json.loads(result.stdout))


def test_a_prefix_becomes_rows(
    s3: Any, bucket: str, aws_endpoint: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and rejects are on S3, with a journal of claims; a second call takes what is new and finds its settings."""
    monkeypatch.setenv("COMPACTOR_AWS__ENDPOINT_URL", aws_endpoint)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    store = S3Store(s3)
    store.put(f"s3://{bucket}/raw/a ü.ndjson", b'{"id": 1}\nno json\n')
    words = ("compact", f"s3://{bucket}/raw", f"s3://{bucket}/rows")
    assert call(*words)["verified"]["rows"] == 1
    store.put(f"s3://{bucket}/raw/b.ndjson", b'{"id": 2}\n')
    second = call(*words)
    assert (second["new_files"], second["planned_before"], second["verified"]["rejected_lines"]) == (1, 1, 1)
    assert call("--config", second["settings_file"], "status")["backlog"]["manifests"] == 0
    [rejected] = call("rejects", words[2])["rejects"]
    assert (rejected["uri"], rejected["line_number"], rejected["column"]) == (f"{words[1]}/a ü.ndjson", 2, 1)
    outputs = [info.uri for info in store.list(f"s3://{bucket}/rows/")]
    rows = [row["id"] for uri in outputs for row in pq.read_table(io.BytesIO(store.read(uri))).to_pylist()]
    assert Counter(rows) == {"1": 1, "2": 1}
    claims = [info.uri for info in store.list(f"s3://{bucket}/rows.compactor/state/claims/")]
    assert len(claims) == 2
    # From S3 to a disk as well: only what is the compactor's own has to be where the rows are.
    assert call("compact", f"s3://{bucket}/raw", str(tmp_path / "rows"))["verified"]["rows"] == 2
