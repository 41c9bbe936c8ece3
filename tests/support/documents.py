"""The examples of the documents: found by their fences, each run or checked by what its tag says.

| tag | what happens to it |
|---|---|
| `sh` | each line runs in the lake of `tests/support/document_lake.py`, those of one document in order |
| `sh clone` | runs in a folder like a fresh clone after `make install` |
| `sh aws` | needs an account: each line has to name a command, and options, that exist |
| `python` | runs in the lake, the blocks of one document in one namespace |
| `python spark` | the same, with the session of `tests/spark` as `spark` |
| `sql` | runs in DuckDB, and has to find rows |
| `sql athena` | runs in DuckDB on views and macros that stand in for Athena's tables and functions |
| `toml`, `json` | can be read as such |
| `text`, nothing | a picture, or what the block before it prints, `...` standing for anything |
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from click.testing import CliRunner

from compactor.cli.entry import compactor as command
from compactor.cli.ui.failures import ExitCode
from tests.support.document_lake import ENVIRONMENT, make_lake

ROOT = Path(__file__).resolve().parents[2]
TAGS = frozenset(
    {"sh", "sh clone", "sh aws", "python", "python spark", "sql", "sql athena", "toml", "json", "text", ""}
)
EXAMPLES = ("sh", "python", "sql", "sql athena")
"""What runs in the lake."""

_FENCE = re.compile(r"^(?P<indent> *)```(?P<tag>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE)
_NEEDS_SHELL = frozenset("|;&$<>*`\\")

ATHENA = """
CREATE VIEW events AS SELECT *, regexp_extract(filename, 'merged-parquet-([-0-9]+)', 1) AS file_date
    FROM read_parquet('data/local/output/*/*.parquet', union_by_name = true, filename = true);
CREATE VIEW rejects AS SELECT * EXCLUDE (date), date::varchar AS file_date
    FROM read_parquet('data/local/state/rejects/*/*.parquet', hive_partitioning = true);
CREATE MACRO from_utf8(bytes) AS decode(bytes);
CREATE MACRO json_extract_scalar(document, path) AS json_extract_string(document, path);
CREATE MACRO from_iso8601_timestamp(written) AS written::timestamptz;
CREATE MACRO element_at(pairs, name) AS pairs[name];
"""
"""What stands in for the tables of the stack, and for functions that DuckDB calls by other names."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block.

    Attributes:
        where: Document and line, for messages.
        tag: What stands behind the fence.
        printed: What the document says that it prints, if it says so.
    """

    where: str
    tag: str
    text: str
    printed: str | None = None

    @property
    def lines(self) -> list[str]:
        """Its commands: lines that end in a backslash go on."""
        joined = self.text.replace("\\\n", " ")
        return [line.strip() for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def documents() -> list[Path]:
    """All that people read."""
    return sorted(path for folder in (".", "docs", "deploy", "bench", "spec") for path in (ROOT / folder).glob("*.md"))


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a document, in its order."""
    document = path.read_text()
    found: list[Block] = []
    end = 0
    for fence in _FENCE.finditer(document):
        follows = found and not document[end : fence.start()].strip()
        indent = len(fence["indent"])
        text = "".join(line[indent:] if line.strip() else line for line in fence["text"].splitlines(keepends=True))
        if follows and fence["tag"] == "text":
            last = found.pop()
            found.append(Block(last.where, last.tag, last.text, printed=text))
        else:
            line = document.count("\n", 0, fence.start()) + 1
            found.append(Block(f"{path.relative_to(ROOT)}:{line}", fence["tag"], text))
        end = fence.end()
    return found


def blocks_of(path: Path, *tags: str) -> list[Block]:
    """Those of a document that have one of these tags."""
    return [block for block in blocks(path) if block.tag in tags]


def links(path: Path) -> list[str]:
    """Where the links of a document lead, as far as that is within the repository."""
    prose = _FENCE.sub("", path.read_text())
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in link]


def anchors(path: Path) -> set[str]:
    """What a link may name in a document: its headings, as GitHub makes anchors of them."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def run(block: Block, namespace: dict[str, Any], database: duckdb.DuckDBPyConnection) -> str:
    """Run a block in the current folder; returns what it prints.

    Args:
        block: Anything that needs neither an account nor Spark.
        namespace: Of the document's Python.
        database: Of the document's SQL.
    """
    if block.tag == "sh":
        return "".join(_run_line(line, block.where) for line in block.lines)
    if block.tag.startswith("python"):
        return _run_python(block, namespace)
    found = database.sql(block.text).to_arrow_table()
    assert found.num_rows > 0, f"{block.where}: finds no rows"
    return ""


def check_printed(block: Block, printed: str) -> None:
    """Compare what a block has printed with what the document says, if it says so.

    Raises:
        AssertionError: They differ.
    """
    if block.printed is not None:
        checker = doctest.OutputChecker()
        same = checker.check_output(block.printed, printed, doctest.ELLIPSIS)
        assert same, (
            f"{block.where} prints the following; python -m tests.support.documents DOCUMENT puts it there\n{printed}"
        )


def _run_python(block: Block, namespace: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.text, block.where, "exec"), namespace)  # noqa: S102 - it is our own
    return printed.getvalue()


def open_database() -> duckdb.DuckDBPyConnection:
    """An empty database with what stands in for Athena, on the lake in the current folder."""
    database = duckdb.connect()
    database.execute(ATHENA)
    return database


def _run_line(line: str, where: str) -> str:
    """Run one command: ours in this process, which is quicker, all others in a shell."""
    if forgotten := re.fullmatch(r"unset (\w+)", line):
        os.environ.pop(forgotten[1], None)
        return ""
    if line.startswith("compactor ") and _NEEDS_SHELL.isdisjoint(line):
        result = CliRunner().invoke(command, shlex.split(line)[1:])
        code, stdout, stderr = result.exit_code, result.stdout, result.stderr
    else:
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60)
        code, stdout, stderr = done.returncode, done.stdout, done.stderr
    assert code in {ExitCode.DONE, ExitCode.NEEDS_OPERATOR}, f"{where}: {line}: exit code {code}\n{stdout}{stderr}"
    return stdout


def put_outputs(path: Path) -> None:
    """Write into a document what its examples print today, where it shows all of that."""
    document = path.read_text()
    namespace: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        make_lake(Path(folder))
        os.chdir(folder)
        os.environ.update(ENVIRONMENT)
        with open_database() as database:
            for block in blocks_of(path, *EXAMPLES):
                printed = run(block, namespace, database)
                if block.printed is not None and "..." not in block.printed:
                    document = document.replace(block.printed, printed)
        os.chdir(ROOT)
    path.write_text(document)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        put_outputs(Path(name).resolve())
