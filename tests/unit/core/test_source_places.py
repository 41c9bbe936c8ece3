"""Sources: which files a pattern matches, and which names are hidden."""

import pytest

from compactor.core.inputs.source_places import SourcePlace, merged, split_pattern


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("logs/*.gz", ("logs", "*.gz")),
        ("*.gz", (".", "*.gz")),
        ("/*", ("/", "*")),
        ("/a/b?/c", ("/a", "b?/c")),
        ("s3://lake/raw/2026-*", ("s3://lake/raw", "2026-*")),
        ("logs/a.gz", None),
    ],
)
def test_the_folder_before_a_pattern(text: str, expected: tuple[str, str] | None) -> None:
    """The pattern begins at the first name with a sign of it."""
    assert split_pattern(text) == expected


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        ("*.gz", ["a.gz", "d.gz/x"], ["a.gz.x", "d/a.gz", "agz"]),
        ("2026-??", ["2026-01", "2026-01/a"], ["2026-1", "x/2026-01"]),
        ("[ab]*", ["a", "bx"], ["c", "xa"]),
        ("[!a]*", ["b"], ["a", "ab"]),
        ("**/*.gz", ["a.gz", "d/e/a.gz"], ["d/e/a"]),
        ("d/**", ["d/a", "d/e/f"], ["d", "e/d/a"]),
        ("a[.x", ["a[.x"], ["ax"]),
        ("*a*b*", ["ab", "xaxbx", "aab"], ["ba", "a/b", "b"]),
        ("a*a", ["aa", "aba", "abaa"], ["a", "ab"]),
        ("**/a/**/b", ["a/b", "x/a/y/b", "a/a/b", "a/b/c"], ["b", "a", "ab/b", "a/cb"]),
        ("**", ["a", "a/b"], []),
    ],
)
def test_patterns(pattern: str, taken: list[str], left: list[str]) -> None:
    """As in a shell; a folder that matches stands for all below it."""
    place = SourcePlace("/w", pattern)
    assert [name for name in taken + left if place.takes(f"/w/{name}")] == taken


@pytest.mark.parametrize(
    ("pattern", "name"), [("*-" * 8 + "*.x", "-" * 255), ("**/a/" * 6 + "b", "a/" * 400 + "c")], ids=["name", "folders"]
)
def test_many_wildcards(pattern: str, name: str) -> None:
    """A name that almost matches is refused at once: with backtracking, this would not end in years."""
    assert not SourcePlace("/w", pattern).takes(f"/w/{name}")


def test_folders_that_may_hold_what_is_meant() -> None:
    """A folder that cannot be read is of concern if the pattern leads into it."""
    place = SourcePlace("/w", "2026*/*.gz")
    assert place.reaches("/w/2026-01/")
    assert not place.reaches("/w/2025-01/")
    assert SourcePlace("/w", "**/*.gz").reaches("/w/x/")


def test_hidden_names() -> None:
    """Names with a dot or an underscore in front, of files and folders, unless they are asked for."""
    assert [name for name in ("a", ".a", "_t/a", "d/.git/a", "d/a") if SourcePlace("/w").is_hidden(f"/w/{name}")] == [
        ".a",
        "_t/a",
        "d/.git/a",
    ]
    assert not SourcePlace("/w", "_t*").is_hidden("/w/_t1/a")
    assert SourcePlace("/w", "_t*").is_hidden("/w/_t1/_a")
    assert not SourcePlace("/w", names=(".a",)).is_hidden("/w/.a")


def test_files_of_one_folder_are_one_place() -> None:
    """A shell may expand a pattern to thousands of files."""
    files = [SourcePlace("/w", names=(name,)) for name in ("a", "b", "a")]
    assert merged([*files, SourcePlace("/v")]) == (SourcePlace("/v"), SourcePlace("/w", names=("a", "b")))
