"""Partitions on S3: a value of any characters is part of a key, and all that is done with output finds it."""

import json
from typing import Any

import pytest

from compactor.adapters.aws.s3.store import S3Store
from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.wiring import engines
from tests.support.extras import NATIVE
from tests.support.harness import DAY, Harness
from tests.support.rebuilding import rebuild

pytestmark = [pytest.mark.full, NATIVE.needed]

HOSTILE = [
    "../a",
    "a b+c&d",
    "é€😀",
    "%2F%",
    "\n\t\x00",
    "a=b;c",
    "'\"",
    ".",
    "__HIVE_DEFAULT_PARTITION__",
    "",
    "x" * 230,
]


def test_values_in_keys(s3: Any, bucket: str) -> None:
    """They are staged, copied, verified and rebuilt."""
    harness = Harness(root=f"s3://{bucket}", store=S3Store(s3), output={"partition_by": ["w = identity(who)"]})
    lines = [json.dumps({"who": who, "n": at}).encode() + b"\n" for at, who in enumerate(HOSTILE)]
    harness.deliver("m1", b"".join(lines))
    app = harness.app()
    engine = engines.native_engine(app, ThreadBinWorkers(app.store))
    assert harness.run_once(engine=engine).committed == 1
    commit = harness.commit("m1")
    assert sorted(str(file.partition[0]) for file in commit.outputs) == sorted(HOSTILE)
    assert {info.uri for info in harness.store.list(harness.layout.output_folder_of(DAY))} == {
        file.final for file in commit.outputs
    }
    assert harness.verification().discrepancies == []
    harness.store.delete([commit.outputs[0].final])
    assert [each.manifest_id for each in rebuild(harness, "m1", engine=engine).rebuilt] == ["m1"]
    assert harness.verification().discrepancies == []
