"""What stands in for Spark where the command line is tested: a small engine, and a stream that sees nothing."""

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.engine import Staged, StageRequest
from compactor.input_files import InspectTask, inspect_files
from compactor.inspection import Limits
from compactor.ports import ObjectStore
from compactor.rawjson import texts
from compactor.schema import first_sources

LIMITS = Limits(max_line_bytes=1 << 20, max_decompressed_bytes=1 << 30)


class ArrowEngine:
    """Stages small plain files in this process; without metadata columns."""

    name = "arrow"

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def stage(self, request: StageRequest) -> Staged:
        task = InspectTask(
            manifest_id=request.manifest.manifest_id,
            files=tuple(enumerate(request.manifest.files)),
            staging=request.staging,
            limits=LIMITS,
            on_changed_file="skip",
            refused={},
            task_number=0,
        )
        inspected = inspect_files(self._store, task)
        request.on_inspected()
        schema = request.columns_for(first_sources((file.report.uri, file.keys) for file in inspected.files))
        sources = [file.readable_uri for file in inspected.files if file.readable_uri is not None]
        lines = [line for uri in sources for line in self._store.read(uri).split(b"\n") if line.strip()]
        columns = {
            column.name: pa.array([texts(line).get(column.key) for line in lines], pa.string())
            for column in schema.columns
            if column.key is not None
        }
        outputs = (f"{request.staging}out.parquet",) if lines else ()
        for uri in outputs:
            sink = pa.BufferOutputStream()
            pq.write_table(pa.table(columns), sink)
            self._store.put(uri, sink.getvalue().to_pybytes())
        rejects = (inspected.rejects_uri,) if inspected.rejects_uri is not None else ()
        return Staged(tuple(file.report for file in inspected.files), schema, outputs, rejects)


class BlindSource:
    """A stream that sees nothing, so that all of the work comes from the listing at the end of `--once`."""

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        """Deliver nothing."""

    def wait(self, timeout_seconds: float) -> bool:  # noqa: ARG002
        """It has always ended."""
        return True

    def is_idle(self) -> bool:
        return True

    def stop(self) -> None:
        """Nothing runs."""
