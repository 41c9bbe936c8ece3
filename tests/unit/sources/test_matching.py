"""What became of files, as cases: by their versions, names and bytes, and by what manifests have of them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from compactor.core.documents.manifest import ManifestFile
from compactor.core.versions import AskedBeginnings, Beginning, described_version, local_version
from compactor.sources.file_search import FileState, Naming
from compactor.sources.folders.matching import Matches, Matching

FATES = ("known", "touched", "renamed", "replaced", "undecided")
T0 = datetime(2026, 1, 2, tzinfo=UTC)

There = tuple[str, str, str]
"""A file of now: its name, its version, and its bytes."""

Had = tuple[str, str, str, str]
"""What a manifest has: a name, a version, its bytes, and the state."""

CASES: dict[str, tuple[list[There], list[Had], dict[str, str]]] = {
    "new": ([("a", "1", "x")], [], {"a": "new"}),
    "known": ([("a", "1", "x")], [("a", "1", "x", "compacted")], {"a": "known"}),
    "waiting": ([("a", "1", "x")], [("a", "1", "", "waiting")], {"a": "known"}),
    "touched": ([("a", "2", "x")], [("a", "1", "x", "compacted")], {"a": "touched"}),
    "touched, without a digest": ([("a", "2", "x")], [("a", "1", "", "compacted")], {"a": "replaced"}),
    "replaced": ([("a", "2", "y")], [("a", "1", "x", "compacted")], {"a": "replaced"}),
    "planned before": ([("a", "2", "y")], [("a", "1", "", "in_work")], {"a": "replaced"}),
    "quarantined before": ([("a", "2", "y")], [("a", "1", "", "quarantined")], {"a": "new"}),
    "an earlier version again": (
        [("a", "3", "x")],
        [("a", "1", "x", "compacted"), ("a", "2", "y", "compacted")],
        {"a": "touched"},
    ),
    "renamed": ([("b", "1", "x")], [("a", "1", "x", "compacted")], {"b": "renamed"}),
    "renamed, of other bytes": ([("b", "1", "y")], [("a", "1", "x", "compacted")], {"b": "new"}),
    "renamed while in work": ([("b", "1", "x")], [("a", "1", "", "in_work")], {"b": "undecided"}),
    "copied while it waits": (
        [("a", "1", "x"), ("b", "1", "x")],
        [("a", "1", "", "waiting")],
        {"a": "known", "b": "new"},
    ),
    "copied": (
        [("a", "1", "x"), ("b", "1", "x")],
        [("a", "1", "x", "compacted")],
        {"a": "known", "b": "new"},
    ),
    "renamed and copied": (
        [("b", "1", "x"), ("c", "1", "x")],
        [("a", "1", "x", "compacted")],
        {"b": "renamed", "c": "new"},
    ),
    "copied and touched": (
        [("a", "2", "x"), ("b", "1", "x")],
        [("a", "1", "x", "compacted")],
        {"a": "touched", "b": "new"},
    ),
    "rotated": (
        [("log", "3", "z"), ("log.1", "2", "y"), ("log.2", "1", "x")],
        [("log", "1", "x", "compacted"), ("log", "2", "y", "compacted")],
        {"log": "new", "log.1": "renamed", "log.2": "renamed"},
    ),
}


class Now:
    """Files that are there, without what they begin with."""

    def __init__(self, digests: Mapping[str, str], versions: Mapping[str, str]) -> None:
        self._digests, self._versions = digests, versions

    def digest_of(self, file: ManifestFile) -> str:
        return self._digests[file.uri]

    def version_at(self, uri: str) -> str | None:
        return self._versions.get(uri)

    def names_of(self, _: Naming) -> dict[str, str]:
        return {}

    def content_of(self, _file: ManifestFile, _most_bytes: int) -> Beginning | None:
        return None

    def ranges_after(self, _: object) -> tuple[()]:
        return ()

    def beginnings_of(self, uris: Sequence[str], _: AskedBeginnings) -> list[set[Beginning]]:
        return [set() for _ in uris]

    def range_behind(self, *_: object) -> str:
        return ""


def matched(files: list[There], had: list[Naming], *suspects: str) -> Matches:
    now = Now(
        {f"/w/{name}": digest for name, _, digest in files},
        {f"/w/{name}": f"{version}-9" for name, version, _ in files},
    )
    named = {f"/w/{name}": file(name, version) for name, version, _ in files}
    return Matching(named, had, now, suspects=frozenset(suspects)).matches()


def file(name: str, version: str) -> ManifestFile:
    return ManifestFile(uri=f"/w/{name}", size_bytes=9, etag=f"{version}-9")


def naming(number: int, name: str, version: str, digest: str, state: FileState) -> Naming:
    made_at = T0 + timedelta(seconds=number)
    return Naming(f"m{number}", f"/w/{name}", f"{version}-9", state, "2026-01-02", 9, digest, made_at)


@pytest.mark.parametrize(("files", "had", "expected"), CASES.values(), ids=CASES)
def test_fates(files: list[There], had: list[tuple[str, str, str, FileState]], expected: dict[str, str]) -> None:
    """Each version counts once; where the time or the name moved, the bytes decide."""
    found = matched(files, [naming(number, *each) for number, each in enumerate(had)])
    by_name = {
        name: next((fate for fate in FATES if uri in getattr(found, fate)), "new")
        for name, _, _ in files
        if (uri := f"/w/{name}")
    }
    assert by_name == expected


def test_bytes_that_changed_behind_the_time() -> None:
    """A file of the same length and time is replaced if its bytes are known to be others."""
    had = [naming(1, "a", "1", "x", "compacted")]
    for digest, replaced in (("x", 0), ("y", 1), ("", 0)):
        found = matched([("a", "1", digest)], had, "/w/a")
        assert (len(found.replaced), len(found.known)) == (replaced, 1 - replaced)


def test_a_new_file_with_length_and_time_of_a_renamed_one() -> None:
    """The renamed one keeps its rows, and the new one is named; its rows cannot take the place of those."""
    had = [naming(1, "a", "1", "x", "compacted")]
    found = matched([("a", "1", "y"), ("b", "1", "x")], had, "/w/a")
    assert found.renamed == {"/w/b": "/w/a"}
    assert "a different name" in found.replaced["/w/a"].hindrance


def test_versions_in_words() -> None:
    """A person reads the length and the time of a local file, and the ETag of an object."""
    etag = local_version(1_767_225_600 * 10**9, 1234)
    assert described_version("/w/a", etag) == "1,234 bytes written 2026-01-01 00:00:00 UTC"
    assert described_version("s3://b/a", "e-1") == "version e-1"
