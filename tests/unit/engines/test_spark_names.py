import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.inputs.record_place import DOCUMENTS, RecordPlace
from compactor.engines.spark.names import hadoop_encoded, spark_path, spark_reads_as_is, spark_reads_name
from compactor.ndjson.inspection import Inspected


def inspected(
    *, rejected_lines: int = 0, has_bom: bool = False, hole_bytes: int = 0, place: RecordPlace | None = None
) -> Inspected:
    return Inspected(
        decoded_bytes=100,
        lines=10,
        blank_lines=1,
        rejects={"invalid_json": rejected_lines},
        keys=("a",),
        has_further_keys=False,
        present_keys=frozenset(),
        has_bom=has_bom,
        hole_bytes=hole_bytes,
        place=place,
    )


@pytest.mark.parametrize(
    "uri",
    [
        "s3://raw/2025-12-21-part-0001.ndjson",
        "s3a://raw/a/b.json",
        "s3://raw/no-extension",
        "s3://raw/a b%20c+d,e#f.json",
        "s3://raw/b[1]{2}*?.json",
        "s3://raw/_folder/.hidden/file.json",
        "s3://raw/данные/日本.json",
        "s3://raw/gz",
        "/data/in/part.ndjson",
        "file:///data/in/part.ndjson",
        "s3://raw/a/x...json",
    ],
)
def test_ordinary_names_are_read_as_they_are(uri):
    """Spark gets the original of every file that it reads identically."""
    assert spark_reads_as_is(uri, "none", inspected())


@pytest.mark.parametrize(
    "uri",
    [
        "s3://raw/_hidden.json",
        "s3://raw/.hidden.json",
        "s3://raw/file.json._COPYING_",
        "s3://raw/_spark_metadata/a.json",
        "s3://raw/a:b.json",
        "s3://raw/12:00/b.json",
        "s3://raw/a//b.json",
        "s3://raw//b.json",
        "s3://raw/a/./b.json",
        "s3://raw/a/../b.json",
        "s3://raw/a\nb.json",
        "s3://raw/a\x7fb.json",
        "s3://raw/a\x85b.json",
        "s3://raw/b.json ",
        "s3://raw/ a/b.json",
        "s3://raw/a\u00a0/b.json",
        "file:///data/a:b.json",
        *(
            f"s3://raw/plain{extension}"
            for extension in (".gz", ".bz2", ".zst", ".zstd", ".snappy", ".lz4", ".deflate")
        ),
        "s3://raw/plain.gzip",
        "s3://raw/plain.GZ",
    ],
)
def test_names_that_spark_skips_refuses_or_misreads_need_a_copy(uri):
    """Spark never gets a name that it would not read literally."""
    assert not spark_reads_as_is(uri, "none", inspected())


@pytest.mark.parametrize(
    ("uri", "codec", "expected"),
    [
        ("s3://raw/a.gz", "gzip", True),
        ("s3://raw/a.json.gz", "gzip", True),
        ("s3://raw/_a.gz", "gzip", False),
        ("s3://raw/a.GZ", "gzip", False),
        ("s3://raw/a.gzip", "gzip", False),
        ("s3://raw/a.json", "gzip", False),
        ("s3://raw/a.bz2", "bzip2", False),
        ("s3://raw/a.zst", "zstd", False),
        ("s3://raw/a.json", "zlib", False),
        ("s3://raw/a.snappy", "snappy", False),
        ("s3://raw/a.xz", "xz", False),
    ],
)
def test_only_gzip_under_its_own_name_is_decoded_by_spark(uri, codec, expected):
    """Any other encoding needs a plain copy, whatever the name says."""
    assert spark_reads_name(uri, codec) is expected


@pytest.mark.parametrize(
    "found",
    [
        inspected(rejected_lines=1),
        inspected(has_bom=True),
        inspected(hole_bytes=8),
        inspected(place=DOCUMENTS),
    ],
)
@pytest.mark.parametrize(("uri", "codec"), [("s3://raw/a.json", "none"), ("s3://raw/a.gz", "gzip")])
def test_rejects_and_byte_order_marks_need_a_copy(uri, codec, found):
    """Spark is never shown a line that inspection rejected."""
    assert not spark_reads_as_is(uri, codec, found)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("s3://raw/a.json", "s3://raw/a.json"),
        ("s3a://raw/a.json", "s3://raw/a.json"),
        ("/data/a.json", "file:///data/a.json"),
        ("file:///data/a.json", "file:///data/a.json"),
        ("file:/data/a b.json", "file:/data/a b.json"),
        ("s3://raw/b[1].json", "s3://raw/b\\[1\\].json"),
        ("s3://raw/a*b?c{d}e\\f", "s3://raw/a\\*b\\?c\\{d\\}e\\\\f"),
        ("s3://raw/a b%20c+d,é.json", "s3://raw/a b%20c+d,é.json"),
    ],
)
def test_a_path_for_spark_is_literal(uri, path):
    """Glob characters are escaped, nothing else is."""
    assert spark_path(uri) == path


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("s3://raw/a.json", "s3://raw/a.json"),
        ("s3a://raw/a b.json", "s3://raw/a%20b.json"),
        ("/data/a b.json", "file:///data/a%20b.json"),
        ("file:///data/100%.json", "file:///data/100%25.json"),
        ("s3://raw/a%20b.json", "s3://raw/a%2520b.json"),
        ("s3://raw/_-!.~'()*;:@&=+$,/x", "s3://raw/_-!.~'()*;:@&=+$,/x"),
        ('s3://raw/"#<>?[\\]^`{|}', "s3://raw/%22%23%3C%3E%3F%5B%5C%5D%5E%60%7B%7C%7D"),
        ("s3://raw/é日😀", "s3://raw/é日😀"),
        ("s3://raw/a\u00a0\u2003\u3000\u0085b", "s3://raw/a%C2%A0%E2%80%83%E3%80%80%C2%85b"),
        ("s3://raw/a\tb\x7f", "s3://raw/a%09b%7F"),
        ("s3://raw/\u200b\ufeff", "s3://raw/\u200b\ufeff"),
    ],
)
def test_the_path_that_spark_shows_is_known(uri, shown):
    """The name that Spark gives a file follows from its URI: these were observed with `java.net.URI`."""
    assert hadoop_encoded(uri) == shown


@given(st.sets(st.text(min_size=1), min_size=2, max_size=6))
def test_different_files_are_shown_differently(names):
    """No two names have the same encoding, so a row can be traced to its file."""
    assert len({hadoop_encoded(f"s3://raw/{name}") for name in names}) == len(names)
