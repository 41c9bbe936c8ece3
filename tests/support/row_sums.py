"""What readers of lines say of the rows that they should be."""

from functools import lru_cache

from compactor.adapters.local.native.kernel import digest_kernel
from compactor.ndjson.line_splitting import split_lines
from compactor.ndjson.lines import LineCounts, Reject
from compactor.ops.verify.native_sums import NativeSums
from compactor.ops.verify.row_sums import LineSums, RowShape, Sum
from compactor.schema.schema import SchemaVersion
from tests.support.native_rows import WIDE, schema_of


def read(lines: LineSums, data: bytes) -> tuple[dict[str, object], list[Reject], Sum]:
    """Have a file read; returns its counts, its rejects and the sum of its rows."""
    rejects: list[Reject] = []
    counts = lines.read([data], WIDE, split=split_lines, refused=frozenset(), on_reject=rejects.append)
    return {name: getattr(counts, name) for name in LineCounts.__slots__}, rejects, lines.sum


def check_sums(data: bytes, schema: SchemaVersion, path_columns: dict[str, str] | None = None) -> None:
    """Whether the kernel's reader sees the same rows and rejects as Python's, which reads nothing with it."""
    sums = NativeSums(RowShape(schema), digest_kernel)
    assert read(sums.lines(path_columns or {}), data) == read(sums.slow_lines(path_columns or {}), data)


@lru_cache(maxsize=256)
def sums_of_type(kind: str, epoch: str | None) -> NativeSums:
    """What adds up rows with one column of a type, whose key is `v`."""
    schema = schema_of({"v": kind}, rescued=True)
    columns = [each.model_copy(update={"epoch": epoch}) if each.key == "v" else each for each in schema.columns]
    return NativeSums(RowShape(schema.model_copy(update={"columns": tuple(columns)})), digest_kernel)
