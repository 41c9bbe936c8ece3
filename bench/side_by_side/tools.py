"""How each tool is called, as its documents recommend, and what a user tries next when that fails."""

import sys
from dataclasses import dataclass
from pathlib import Path

from bench.side_by_side.environment import bin_folder


@dataclass(frozen=True, slots=True)
class Step:
    """Something that a user runs.

    Attributes:
        said: What the table shows.
        command: Program and arguments.
        stdin: What the program reads.
    """

    said: str
    command: tuple[str, ...]
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A way to Parquet.

    Attributes:
        name: In the table; `{}` stands for its version.
        package: Whose version that is.
        days: The steps of each day.
        rows: Where the rows are, as a pattern below the folder of the tool.
    """

    name: str
    package: str
    days: tuple[tuple[Step, ...], ...]
    rows: str


PLAIN_COPY = "COPY (FROM read_json('raw/*')) TO 'rows.parquet' (FORMAT parquet)"
COPY = (
    "COPY (FROM read_json('{}', format = 'newline_delimited', ignore_errors = true, union_by_name = true)) "
    "TO 'rows.parquet' (FORMAT parquet)"
)
NOT_CUT = "raw/*.ndjson"

_DLT_HEAD = """
import dlt
from dlt.sources.filesystem import filesystem, read_jsonl
"""
_DLT_TAIL = """
files = filesystem(bucket_url="raw", file_glob="*.ndjson*")
files.apply_hints(incremental=dlt.sources.incremental("modification_date"))
pipeline = dlt.pipeline(
    "events", destination=dlt.destinations.filesystem("out"), dataset_name="rows", pipelines_dir="state"
)
print(pipeline.run((files | {}).with_name("events"), loader_file_format="parquet"))
"""
_OWN_READER = """

@dlt.transformer
def read_lines(items):
    for item in items:
        try:
            with item.open() as file:
                for number, line in enumerate(file, start=1):
                    try:
                        yield dlt.common.json.loadb(line)
                    except ValueError:
                        print(f"{item['file_url']}:{number}: no JSON")
        except EOFError as exc:
            print(f"{item['file_url']}: {exc}")

"""
DLT_PIPELINE = _DLT_HEAD + _DLT_TAIL.format("read_jsonl()")
DLT_OWN_READER = _DLT_HEAD.replace(", read_jsonl", "") + _OWN_READER + _DLT_TAIL.format("read_lines")


def tools(environment: Path) -> tuple[Tool, ...]:
    """All of them; the programs of the others are in the environment."""
    programs = bin_folder(environment)
    return (_compactor(), _duckdb_cli(programs), _duckdb_package(programs), _dlt(programs))


def _compactor() -> Tool:
    def call(*arguments: str) -> Step:
        said = f"`compactor {' '.join(arguments)}`"
        return Step(said, (sys.executable, "-m", "compactor", *arguments))

    compact = call("compact", "raw", "rows")
    days = (
        (compact, call("verify", "rows"), call("rejects", "rows")),
        (compact, call("compact", "--on-replaced", "rebuild", "raw", "rows")),
        (compact,),
    )
    return Tool("compactor {}", "", days, "rows/**/*.parquet")


def _duckdb_cli(programs: Path) -> Tool:
    def copy(said: str, sql: str) -> Step:
        return Step(said, (str(programs / "duckdb"), "-c", sql))

    again = copy("the same over all files", COPY.format("raw/*.ndjson*"))
    with_options = copy("with `ignore_errors`, `union_by_name`", COPY.format("raw/*.ndjson*"))
    days = ((copy("`COPY (FROM read_json('raw/*')) ...`", PLAIN_COPY), with_options), (again,), (again,))
    return Tool("DuckDB's CLI {}", "duckdb-cli", days, "rows.parquet")


def _duckdb_package(programs: Path) -> Tool:
    def copy(said: str, sql: str) -> Step:
        return Step(said, (str(programs / "python"), "-c", "import sys, duckdb; duckdb.sql(sys.stdin.read())"), sql)

    again = copy("the same over all files", COPY.format("raw/*.ndjson*"))
    first = (
        copy("`COPY (FROM read_json('raw/*')) ...`", PLAIN_COPY),
        copy("with `ignore_errors`, `union_by_name`", COPY.format("raw/*.ndjson*")),
        copy("without the truncated file", COPY.format(NOT_CUT)),
    )
    return Tool("DuckDB {} in Python", "duckdb", (first, (again,), (again,)), "rows.parquet")


def _dlt(programs: Path) -> Tool:
    def load(said: str, script: str) -> Step:
        return Step(said, (str(programs / "python"), "-"), script)

    own = load("the same pipeline", DLT_OWN_READER)
    first = (
        load("a pipeline of 8 lines with `read_jsonl`", DLT_PIPELINE),
        load("with a reader of one's own, 12 lines more", DLT_OWN_READER),
    )
    return Tool("dlt {}", "dlt", (first, (own,), (own,)), "out/rows/events/*.parquet")
