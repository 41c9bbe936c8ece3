"""Claims of redriven files: taken along within the family, left to anybody else."""

from datetime import UTC, datetime

from compactor.adapters.memory.store import ManualClock, MemoryClaims
from compactor.core.manifest import ManifestFile
from compactor.manifests.claiming import claim_key
from compactor.ops.redrive.claims import RedriveClaims

NOW = datetime(2026, 1, 2, tzinfo=UTC)
FILES = [ManifestFile(uri=f"/w/raw/{name}", etag="1") for name in ("free", "own", "others")]
UNKNOWN = ManifestFile(uri="/w/raw/unknown")


def claimed() -> MemoryClaims:
    """One file is free, one is claimed for the family, and one for somebody else."""
    claims = MemoryClaims()
    for file, holder in zip(FILES[1:], ("m1", "m2"), strict=True):
        claims.claim([claim_key(file)], holder, now=NOW, lease_seconds=1)
    return claims


def test_holders() -> None:
    """Who holds a file is told by its URI; of a file whose version is not known nothing is told."""
    claims = RedriveClaims(claimed(), ManualClock(NOW), 1)
    assert claims.holders([*FILES, UNKNOWN]) == {"/w/raw/own": "m1", "/w/raw/others": "m2"}


def test_take() -> None:
    """What is free or of the family is claimed for the new manifest; what another manifest holds stays with it."""
    table = claimed()
    lost = RedriveClaims(table, ManualClock(NOW), 1).take([*FILES, UNKNOWN], "m1-r1", lambda holder: holder == "m1")
    assert lost == {"/w/raw/others": "m2"}
    held = table.get_many([*map(claim_key, [*FILES, UNKNOWN])])
    assert [claim.holder for claim in held.values()] == ["m1-r1", "m1-r1", "m2"]


def test_without_a_table() -> None:
    """Where nobody plans, nothing is held and nothing is lost."""
    claims = RedriveClaims(None, ManualClock(NOW), 1)
    assert (claims.holders(FILES), claims.take(FILES, "m1-r1", lambda _: False)) == ({}, {})
