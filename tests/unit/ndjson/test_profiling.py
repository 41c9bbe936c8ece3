"""Promises of profiling: the lines that inspection accepts, their places, and the end of a sample."""

from compactor.ndjson.lines import Limits
from compactor.ndjson.profiling import profile_file
from compactor.schema.column_profile import Place, TableProfile

LIMITS = Limits(max_line_bytes=100, max_decompressed_bytes=10_000)


def test_places_and_other_lines() -> None:
    """Blank, wrong and over-long lines are no records, and a record keeps the number of its line."""
    data = b'\xef\xbb\xbf{"a": 1}\n\nnot json\n' + b"x" * 350 + b'\n{"a": "late"}\n[1]\n{"b": 1e400}'
    profile = TableProfile(10)
    profile_file([data[:20], data[20:]], LIMITS, profile, file=3)
    assert (profile.records, profile.other_lines) == (3, 3)
    assert profile.columns["a"].examples["text"].place == Place(3, 5)
    assert profile.columns["b"].examples["number"].place == Place(3, 7)


def test_a_sample_ends() -> None:
    """No more is read than was asked for."""
    pieces = iter([b'{"a": 1}\n' * 20, b'{"a": 2}\n' * 20])
    profile = TableProfile(10)
    assert profile_file(pieces, LIMITS, profile, file=0, max_records=5) == 5 * 8
    assert (profile.columns["a"].values, next(pieces)[:8]) == (5, b'{"a": 2}')


def test_a_sample_ends_within_long_lines() -> None:
    """After so many bytes, records or not, no further line is read."""
    for line, records in ((b'{"a": 1}', 4), (b"no JSON!", 0)):
        profile = TableProfile(10)
        pieces = iter([(line + b"\n") * 20, b'{"a": 2}\n'])
        assert profile_file(pieces, LIMITS, profile, file=0, max_records=5, max_bytes=25) == 4 * 8
        assert (profile.records, profile.records + profile.other_lines) == (records, 4)
        assert next(pieces) == b'{"a": 2}\n'


def test_values_of_the_path() -> None:
    """They belong to every record, unless the record has the key itself."""
    profile = TableProfile(10)
    profile_file([b'{"a": 1}\n{"year": 7}\n'], LIMITS, profile, file=0, path_values={"year": "2026"})
    assert list(profile.columns) == ["year", "a"]
    assert profile.columns["year"].shapes == {"text": 1, "long": 1}
