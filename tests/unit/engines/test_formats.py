"""Both engines take a file for the same kind, and read the same rows and rejects from it."""

import io

import pyarrow.parquet as pq
import pytest

from compactor.adapters.local.native.kernel import NativeKernel
from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileReport, FileStatus
from compactor.engines.native.bin_task import BinTask, write_bin
from compactor.engines.spark.input_files import InspectTask, inspect_files
from compactor.ndjson.kinds.formats import Formats
from compactor.ndjson.lines import Limits
from tests.support import extras
from tests.support.memory_store import MemoryStore
from tests.support.native_rows import plan_of, rules_of, schema_of
from tests.unit.cli.zoo import CASES

extras.NATIVE.need()

STAGING = "/w/staging/m-1/1/0/"
LIMITS = Limits(max_line_bytes=1 << 20, max_decompressed_bytes=1 << 28)
SCHEMA = schema_of({"id": "string", "more": "string", "Records": "string"})


def files_in(store: MemoryStore, contents: dict[str, bytes]) -> tuple[tuple[int, ManifestFile], ...]:
    for name, content in contents.items():
        store.put(f"/raw/{name}", content)
    infos = [store.stat(f"/raw/{name}") for name in contents]
    return tuple((at, ManifestFile(uri=info.uri, etag=info.etag)) for at, info in enumerate(infos) if info)


def native(store: MemoryStore, files: tuple[tuple[int, ManifestFile], ...], formats: Formats) -> tuple[FileReport, ...]:
    plan = plan_of(SCHEMA, metadata=("_source_file",))
    task = BinTask(files, 0, f"{STAGING}native/", 0, plan, rules_of(LIMITS, formats=formats))
    return tuple(file.report for file in write_bin(store, task, NativeKernel).files)


def inspected(store: MemoryStore, task: InspectTask) -> tuple[FileReport, ...]:
    return tuple(file.report for file in inspect_files(store, task).files)


def inspection(files: tuple[tuple[int, ManifestFile], ...], formats: Formats) -> InspectTask:
    return InspectTask("m-1", files, f"{STAGING}spark/", rules_of(LIMITS, formats=formats), {}, 0)


def rejects_in(store: MemoryStore, place: str) -> list[dict[str, object]]:
    (info,) = store.list(f"{STAGING}{place}/rejects/")
    return pq.read_table(io.BytesIO(store.read(info.uri))).drop_columns("manifest_id").to_pylist()


@pytest.mark.parametrize("accepted", ["ndjson", "json"])
def test_the_engines_agree(accepted):
    """About kind, counts and rejects of every file of the zoo."""
    store, formats = MemoryStore(), Formats(accepted)
    files = files_in(store, {case.name: case.content for case in CASES})
    reports = native(store, files, formats)
    assert inspected(store, inspection(files, formats)) == reports
    assert rejects_in(store, "native") == rejects_in(store, "spark")
    for case, report in zip(CASES, reports, strict=True):
        reads_json = accepted == "json" and case.json_ids is not None
        assert report.status == (FileStatus.COMPACTED if reads_json else case.status)
        assert report.records == len(case.json_ids if reads_json else case.ids)
        assert report.format == ("json" if reads_json else "ndjson")


def test_spark_reads_a_copy_of_json():
    """With an element a line; the original has none of them."""
    store, formats = MemoryStore(), Formats("json")
    files = files_in(store, {"array": b'[{"id":\n1}, {"id": 2}]', "lines": b'{"id":3}\n'})
    array, lines = inspect_files(store, inspection(files, formats)).files
    assert (array.readable_uri, lines.readable_uri) == (f"{STAGING}spark/repaired/000000.ndjson", "/raw/lines")
    assert store.read(array.readable_uri) == b'{"id": 1}\n{"id": 2}\n'


@pytest.mark.parametrize("accepted", ["ndjson", "json"])
def test_redriven_lines_are_lines(accepted):
    """Whatever they look like, and whatever the file is that they are from."""
    store, formats = MemoryStore(), Formats(accepted, lines_folder="/state/redriven/")
    store.put("/state/redriven/m-r1/0.ndjson", b"a,b\n1,2\n" + b"3,4\n" * 10)
    info = store.stat("/state/redriven/m-r1/0.ndjson")
    files = ((0, ManifestFile(uri=info.uri, etag=info.etag, source_uri="/raw/a.csv", rejected_as="invalid_json")),)
    for (report,) in (native(store, files, formats), inspected(store, inspection(files, formats))):
        assert (report.status, report.rejects) == ("compacted", {"invalid_json": 12})


def test_a_long_file_of_another_kind_leaves_nothing_behind():
    """Nothing of it is staged, and its neighbours are complete."""
    store = MemoryStore()
    files = files_in(store, {"1": b'{"id":1}\n', "2": b"a,b\n" + b"1,2\n" * 500_000, "3": b'{"id":2}\n'})
    result = write_bin(
        store,
        BinTask(files, 0, STAGING, 0, plan_of(SCHEMA, metadata=("_source_file",)), rules_of(LIMITS)),
        NativeKernel,
    )
    assert [file.report.status for file in result.files] == ["compacted", "not_ndjson", "compacted"]
    assert result.files[1].report.size_bytes == len(b"a,b\n" + b"1,2\n" * 500_000)
    assert (result.records, result.rejects_uri) == (2, None)
