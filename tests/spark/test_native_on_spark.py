"""The native engine inside Spark's tasks: plans, results and errors arrive unchanged."""

import pytest

from compactor.adapters.spark.executor_tasks import SparkBinWorkers, runs_tasks
from compactor.adapters.stores import StoreSpec
from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import AccessError
from compactor.engines.native.bin_task import BinTask
from compactor.ndjson.lines import Limits
from compactor.wiring import engines, streaming
from compactor.wiring.opening import spark_session
from tests.support.engine_workspace import EngineWorkspace
from tests.support.extras import NATIVE
from tests.support.native_rows import plan_of, rules_of, schema_of

pytestmark = NATIVE.needed


@pytest.fixture
def engine() -> str:
    return "native"


def on_spark(workspace: EngineWorkspace, manifest_id: str, *uris: str):
    """Compact files by the engine that a job would have."""
    return streaming.scheduler(workspace.app, engines.engine(workspace.app)).run([workspace.deliver(manifest_id, uris)])


def test_a_manifest_is_compacted_by_tasks_of_spark(new_s3_workspace):
    """Late key, reject, typed column and all; from S3 to S3."""
    workspace = new_s3_workspace(schema={"metadata_columns": ["_source_file"]})
    assert on_spark(workspace, "first", workspace.write("a", b'{"id":1}\n')).failures == {}
    uris = [workspace.write("b", b'{"id":2,"late":[1]}\nbad\n'), workspace.write("c", b'{"id":3}\n')]
    assert on_spark(workspace, "second", *uris).failures == {}
    workspace.check()
    compacted = workspace.compacted("second")
    assert compacted.by("id").keys() == {"2", "3"}
    assert compacted.commit.engine == "native"
    assert compacted.commit.redone_bins == 1
    assert [row["raw"] for row in compacted.rejects] == [b"bad"]


def test_an_error_of_a_task_keeps_its_kind(new_s3_workspace):
    """What only a person can fix is told as that, and not as the text of a stack trace."""
    workspace = new_s3_workspace()
    task = BinTask(
        files=((0, ManifestFile(uri=workspace.write("a", b'{"id":1}\n'))),),
        stored_bytes=9,
        staging="s3://no-such-bucket-anywhere/staging/",
        number=0,
        plan=plan_of(schema_of({"id": "string"})),
        rules=rules_of(Limits.of(workspace.app.settings)),
    )
    app = workspace.app
    workers = SparkBinWorkers(session=spark_session(app), store_spec=app.store_spec)
    with pytest.raises(AccessError, match="no-such-bucket-anywhere"):
        workers.write_bins("m", [task])


def test_executors_without_the_wheel_are_not_healthy(spark):
    """So that no manifest is blamed for them."""
    assert SparkBinWorkers(session=spark, store_spec=StoreSpec()).are_healthy()
    assert not runs_tasks(spark, _is_missing)


def _is_missing() -> bool:
    return False
