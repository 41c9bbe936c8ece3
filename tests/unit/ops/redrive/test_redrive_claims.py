"""Claims of redriven files: taken over within the lineage, left to every other holder."""

from datetime import UTC, datetime

from compactor.adapters.memory.store import ManualClock, MemoryClaims
from compactor.core.documents.manifest import ManifestFile
from compactor.ops.redrive.planner import RedriveClaims
from compactor.sources.claiming import claim_key

NOW = datetime(2026, 1, 2, tzinfo=UTC)
FILES = [ManifestFile(uri=f"/w/raw/{name}", etag="1") for name in ("free", "own", "others")]
UNKNOWN = ManifestFile(uri="/w/raw/unknown")


def claimed() -> MemoryClaims:
    """One file is free, one is claimed for the lineage, and one for another manifest."""
    claims = MemoryClaims()
    for file, holder in zip(FILES[1:], ("m1", "m2"), strict=True):
        claims.claim([claim_key(file)], holder, now=NOW, lease_seconds=1)
    return claims


def claims_of(table: MemoryClaims | None) -> RedriveClaims:
    return RedriveClaims(claims=table, clock=ManualClock(NOW), lease_seconds=1)


def test_holders() -> None:
    """The holder of each file is given by URI; a file of unknown version has none."""
    claims = claims_of(claimed())
    assert claims.holders([*FILES, UNKNOWN]) == {"/w/raw/own": "m1", "/w/raw/others": "m2"}


def test_take() -> None:
    """Files that are free or of the lineage are claimed for the new manifest; other manifests keep theirs."""
    table = claimed()
    lost = claims_of(table).take([*FILES, UNKNOWN], "m1-r1", lambda holder: holder == "m1")
    assert lost == {"/w/raw/others": "m2"}
    held = table.get_many([*map(claim_key, [*FILES, UNKNOWN])])
    assert [claim.holder for claim in held.values()] == ["m1-r1", "m1-r1", "m2"]


def test_without_a_table() -> None:
    """Without a table no file is held, and none is lost."""
    claims = claims_of(None)
    assert (claims.holders(FILES), claims.take(FILES, "m1-r1", lambda _: False)) == ({}, {})
