"""Files whose names mean something to Spark, Hadoop or a URI: to the compactor they are names."""
# ruff: noqa: E501 - tables read best in full lines

import pytest

from compactor.core.documents.manifest import ManifestFile

NAMES = (
    "plain.ndjson", "a b.ndjson", "a%20b.ndjson", "a+b", "a#b", "a,b", "a:b", "12:30/x", "a\\b", "a*b", "a?b",
    "a[1].json", "[a]", "a{x,y}.json", "a1.json", "ax.json", "данные/日本.json", "\u00e9", "e\u0301", "😀😁.json",
    "_hidden", ".hidden", "x._COPYING_", "trailing ", " leading", "odd ∂ #%25 +[1] folder/x.json", "_folder/x",
    ".folder/x", "_temporary/0/x", "day=1/hour=05/x", "day=2/x", "day=1/hour=__HIVE_DEFAULT_PARTITION__/x", "a=b",
    "_a=b", "no-break\u00a0space", "ideographic\u3000space", "line\u2028separator", "zero\u200bwidth", "soft\u00adhyphen",
    "'\"`", "a;b&c=d@e!f$g", "(x)", "~x", "^x|y<z>", "%", "%zz", "%2F", "..x", "x..", "-x", "x" * 200, "tab\tx",
    "_SUCCESS", "_metadata", "_spark_metadata/0", ".x.crc", "x.parquet", "x.csv", "x.GZ", "x.json.gz", "del\x7fete",
)  # fmt: skip


def line(number: int) -> bytes:
    # `day` and `hour` are also parts of names, as partitions are.
    return b'{"n":"%d","day":"d%d","hour":"h"}\n' % (number, number)


FEW = NAMES[::5]
"""Names of each kind: plain, of patterns, escaped, of other scripts, hidden, of partitions, too odd for a URI."""


def expected_values() -> list[tuple[str, str, str]]:
    return sorted((str(number), f"d{number}", "h") for number in range(len(NAMES)))


def values(compacted) -> list[tuple[str, str, str]]:
    return sorted((record["n"], record["day"], record["hour"]) for record in compacted.records)


@pytest.mark.parametrize(
    ("engine", "with_source"),
    [("spark", True), ("native", True), ("native", False), pytest.param("spark", False, marks=pytest.mark.full)],
    indirect=["engine"],
)
def test_any_local_name_is_taken_literally(new_workspace, with_source):
    """Each file gives its own row once, whatever it is called, and the row names the file as the manifest does."""
    workspace = new_workspace(schema={"metadata_columns": ["_source_file"] if with_source else []})
    uris = [workspace.write(name, line(number)) for number, name in enumerate(NAMES)]
    uris[0] = f"file://{uris[0]}"
    uris[1] = uris[1].replace("/raw/", "//raw///")
    compacted = workspace.compact(uris)
    assert values(compacted) == expected_values()
    if with_source:
        assert {row["_source_file"]: row["n"] for row in compacted.rows} == {
            uri: str(number) for number, uri in enumerate(uris)
        }


@pytest.mark.parametrize("some", [FEW, pytest.param(NAMES, marks=pytest.mark.full)], ids=["few", "all"])
def test_any_name_in_s3_is_taken_literally(new_s3_workspace, some):
    """The same over S3, where a key may also hold doubled slashes, and `s3a` means the same as `s3`."""
    workspace = new_s3_workspace(schema={"metadata_columns": ["_source_file"]})
    names = [*some, "doubled//slash", "doubled/slash", "/first"]
    uris = [workspace.write(name, line(number)) for number, name in enumerate(names)]
    uris[0] = uris[0].replace("s3://", "s3a://")
    stats = [workspace.app.store.stat(uri) for uri in uris]
    files = [ManifestFile(uri=info.uri, size_bytes=info.size_bytes, etag=info.etag) for info in stats]
    rows = workspace.compact(files).rows
    assert sorted(row["n"] for row in rows) == sorted(str(number) for number in range(len(names)))
    assert {row["_source_file"]: row["n"] for row in rows} == {uri: str(number) for number, uri in enumerate(uris)}


def test_own_places_may_have_odd_names(new_workspace, tmp_path):
    """Manifests, output and state are found under names with spaces, percent signs and characters of any script."""
    odd = f"{tmp_path}/odd é %20 #+,;&=😀"
    paths = {place: f"{odd}/{place} %" for place in ("manifests", "output", "state")}
    workspace = new_workspace(paths=paths, schema={"metadata_columns": ["_source_file"]})
    assert {row["v"] for row in workspace.compact({"_x": b'{"v":1}', "y": b'{"v":2}'}).rows} == {"1", "2"}


@pytest.mark.parametrize("engine", ["spark"], indirect=True)
def test_a_row_of_a_file_that_spark_names_otherwise_fails_the_attempt(new_workspace, monkeypatch):
    """No row gets in without its input file; with the right names, the next attempt commits."""
    monkeypatch.setattr("compactor.adapters.spark.conversion._shown", lambda _: {"file:///elsewhere"})
    workspace = new_workspace(schema={"metadata_columns": ["_source_file"]})
    file = workspace.write("a b", line(1))
    uri = workspace.deliver("m", [file])
    failures = workspace.run(uri).failures
    assert list(failures) == ["m"]
    assert str(failures["m"]).endswith(f"a row of an unexpected file: file://{file.replace(' ', '%20')}")
    monkeypatch.undo()
    assert workspace.run(uri).failures == {}
    assert [row["_source_file"] for row in workspace.compacted().rows] == [file]
