"""Which manifests take turns with each other."""

from datetime import UTC, datetime

import pytest

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.rules.shares import Share, in_turns, share_of

NOW = datetime(2026, 1, 2, tzinfo=UTC)
RAW = ["s3://raw", "s3://raw/shared"]


def share(*files: tuple[str, int | None]) -> Share:
    named = tuple(ManifestFile(uri=uri, size_bytes=size) for uri, size in files)
    return share_of(Manifest(manifest_id="m", date="2026-01-02", created_at=NOW, files=named), RAW)


@pytest.mark.parametrize(
    ("uri", "source"),
    [
        ("s3://raw/a/2026/01/x", "s3://raw/a/"),
        ("s3a://raw/a/2027/y", "s3://raw/a/"),
        ("s3://raw/x", "s3://raw/"),
        ("s3://raw/shared/b/x", "s3://raw/shared/b/"),
        ("s3://elsewhere/b/x", ""),
    ],
)
def test_source(uri: str, source: str) -> None:
    """The first folder below the longest allowed prefix, whatever is below it."""
    assert share((uri, 1)).source == source


@pytest.mark.parametrize(
    ("sizes", "size_class"), [((0,), 0), ((1,), 1), ((15,), 1), ((16,), 2), ((200, 55), 2), ((256,), 3), ((None,), 6)]
)
def test_size_class(sizes: tuple[int | None, ...], size_class: int) -> None:
    """One class for each factor of 16 in all the bytes; a file of unknown length has an assumed one."""
    assert share(*((f"s3://raw/{number}", size) for number, size in enumerate(sizes))).size_class == size_class


def test_refused() -> None:
    """Refused manifests share their turns."""
    assert share_of(None, RAW) == Share(0, "")


def test_names_of_different_kinds_take_turns() -> None:
    """A flood of numbered names lets others in; names that differ in a date or a digest are of one kind."""
    flood = [f"/m/attack-{number:04}.json" for number in range(100)]
    built = ["/m/2026-01-02-00f3a9c2.json", "/m/2026-01-03-12ab34cd.json"]
    honest = ["/m/honest-1.json", "/m/honest-2.json"]
    ordered = in_turns([*built, *flood, *honest])
    assert ordered[:6] == [built[0], flood[0], honest[0], built[1], flood[1], honest[1]]
    assert ordered[6:] == flood[2:]
