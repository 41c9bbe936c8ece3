"""Lines that inspection accepts and Spark's JSON reader does not; and the fallback from declared keys."""

import gzip
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from compactor.adapters.spark.conversion import ConvertTask, convert
from tests.support.sampling import few

TOO_LONG = b"k" * 60_000
"""A key of such a length is JSON, but not to Spark, whose limit is 50,000 characters."""


@pytest.mark.parametrize("engine", ["spark"])
def test_lines_that_spark_cannot_read_are_rejected(new_workspace):
    """Such a line is a reject with its exact bytes, white space included; all others are rows."""
    workspace = new_workspace(schema={"metadata_columns": ["_source_file"]})
    nested = b'{"a":{"%s":1}}' % TOO_LONG
    lines = [
        b'{"id":"1"}',
        b'{"id":"2"}',
        nested,
        b' \t{"b":[{"%s":2}]} \r' % TOO_LONG,
        b"no json",
        b'{"id":"3"}\r',
    ]
    data = b"\n".join(lines)
    compacted = workspace.compact(
        {"plain": data, "packed.gz": gzip.compress(data), "_copied": data, "clean": b'{"id":"4"}', "empty": b""}
    )
    assert sorted(row["id"] or "-" for row in compacted.rows) == sorted("123" * 3 + "4")
    for name in ("plain", "packed.gz", "_copied"):
        found = [
            (row["line_number"], row["reason"], row["raw"])
            for row in compacted.rejects
            if row["source_uri"] == workspace.raw + name
        ]
        reason = {5: "invalid_json"}
        assert found == [(at, reason.get(at, "parsers_disagree"), lines[at - 1]) for at in (3, 4, 5)]
        assert compacted.report(name).rejects == {"parsers_disagree": 2, "invalid_json": 1}
    assert workspace.compact({"later": b'{"id":"5"}'}, "later").rows[0]["id"] == "5"


@pytest.mark.parametrize("engine", ["spark"])
def test_trusted_keys_are_read_without_parsing(new_workspace):
    """Clean lines with declared keys become rows; blank lines are counted, and other keys are not looked for."""
    workspace = new_workspace(columns={"id": "string", "v": "string"}, input={"discovery": "declared"})
    data = b'{"id":1,"v":1.10}\n\n \t\r\n{"v":"x","other":1}\r\n\n{"id":2}'
    uris = [workspace.write("a", data), workspace.write("b.gz", gzip.compress(data)), workspace.write("_c", data)]
    batch = workspace.run(workspace.deliver("m", uris))
    assert batch.failures == {}
    compacted = workspace.compacted()
    assert sorted((row["id"] or "", row["v"] or "") for row in compacted.rows) == sorted(
        [("1", "1.10"), ("", "x"), ("2", "")] * 3
    )
    assert {(report.lines, report.blank_lines, report.records) for report in compacted.commit.files} == {(6, 3, 3)}


@pytest.mark.parametrize("engine", ["spark"])
@pytest.mark.parametrize("bad", few([b'[{"id":1},{"id":2}]', b'{"id":'], 1))
def test_one_corrupt_line_ends_the_trust(new_workspace, bad):
    """With one line that is no JSON, or more than one row, every line is looked at: exact rejects, and no key lost."""
    workspace = new_workspace(columns={"id": "string"}, input={"discovery": "declared"})
    lines = [b'{"id":1}', bad, b"", b'{"id":3,"other":"x"}', b'{"v":{"%s":1}}' % TOO_LONG]
    compacted = workspace.compact({"a": b"\n".join(lines), "b": b'{"id":4}'})
    assert sorted(row["id"] for row in compacted.rows) == ["1", "3", "4"]
    assert [row["other"] for row in compacted.rows if row["id"] == "3"] == ["x"]
    assert [(row["line_number"], row["raw"]) for row in compacted.rejects] == [(2, bad), (5, lines[4])]


@pytest.mark.parametrize("engine", ["spark"])
@pytest.mark.parametrize("discovery", ["full", "declared"])
def test_rows_that_spark_leaves_out_are_missed(new_workspace, monkeypatch, discovery):
    """The rows in the files are counted: where a source is not among them, the work is done once more."""
    sources: list[int] = []

    def forgetful(session: SparkSession, task: ConvertTask) -> int | None:
        sources.append(len(task.sources))
        kept = dict(list(task.sources.items())[1:]) if len(sources) == 1 else task.sources
        return convert(session, replace(task, sources=kept))

    monkeypatch.setattr("compactor.adapters.spark.engine.convert", forgetful)
    workspace = new_workspace(columns={"id": "string"}, input={"discovery": discovery})
    compacted = workspace.compact({"a": b'{"id":"1"}', "b": b'{"id":"2"}'})
    assert sorted(row["id"] for row in compacted.rows) == ["1", "2"]
    assert sources == [2, 2]
