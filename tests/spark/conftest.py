"""One Spark session for all tests of the engines, and the workspaces that they make."""

import os
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from compactor.adapters.aws.local_setup import make_buckets
from compactor.adapters.spark.session import close_session, open_session
from compactor.core.crash_points import OnCrashPoint, ignore_crash_point
from compactor.ops.doctor.java import java_fault
from compactor.settings.spark_conf import spark_properties
from tests.support.aws_stand_in import REGION
from tests.support.engine_workspace import MASTER, EngineWorkspace, NewWorkspace, engine_workspace, schema_file
from tests.support.extras import NATIVE


@pytest.fixture(scope="session")
def spark(aws_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session that every app of these tests joins."""
    assert java_fault(os.environ) is None, java_fault(os.environ)
    conf = {
        "spark.master": MASTER,
        "spark.driver.memory": "1g",
        # Each query is new and runs once: compiling it further costs more than it saves.
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:TieredStopAtLevel=1 -Dlog4j2.level=ERROR",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.shuffle.partitions": "2",
    }
    properties = spark_properties(conf=conf, region=REGION, endpoint_url=aws_endpoint, uses_s3=True)
    session = open_session(properties, uses_s3=True)
    yield session
    close_session()


@pytest.fixture(params=["spark", "native"])
def engine(request: pytest.FixtureRequest) -> str:
    """The engine that workspaces use; a module about one of them has a fixture of its own in its place."""
    if request.param == "native":
        NATIVE.need()
    return str(request.param)


@pytest.fixture
def new_workspace(spark: Any, tmp_path: Any, engine: str) -> NewWorkspace:  # noqa: ARG001 - Spark is up first
    """Makes workspaces on the local disk: `on_crash_point`, the ratio learned before, and `columns`.

    The last are those of a schema file: keys, which are names as well, with their types.
    """

    def make(
        *,
        on_crash_point: OnCrashPoint = ignore_crash_point,
        ratio: float | None = 1.0,
        columns: Mapping[str, str] | None = None,
        **sections: dict[str, Any],
    ) -> EngineWorkspace:
        root = tmp_path / uuid.uuid4().hex[:8]
        if columns is not None:
            root.mkdir()
            (root / "columns.toml").write_text(schema_file(columns))
            sections["schema"] = {**sections.get("schema", {}), "file": f"{root}/columns.toml"}
        return engine_workspace(str(root), engine, on_crash_point, ratio, sections)

    return make


@pytest.fixture
def new_s3_workspace(spark: Any, aws_endpoint: str, engine: str) -> NewWorkspace:  # noqa: ARG001 - Spark is up first
    """Makes workspaces in a bucket of their own."""

    def make(
        *, on_crash_point: OnCrashPoint = ignore_crash_point, ratio: float | None = 1.0, **sections: dict[str, Any]
    ) -> EngineWorkspace:
        bucket = f"bucket-{uuid.uuid4().hex}"
        make_buckets([bucket], region=REGION, endpoint_url=aws_endpoint)
        aws = {"region": REGION, "endpoint_url": aws_endpoint}
        return engine_workspace(f"s3://{bucket}", engine, on_crash_point, ratio, {"aws": aws, **sections})

    return make


@pytest.fixture
def workspace(new_workspace: NewWorkspace) -> EngineWorkspace:
    """A workspace with the default settings."""
    return new_workspace()
