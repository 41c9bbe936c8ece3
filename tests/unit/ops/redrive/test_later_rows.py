"""Which rows settle a quarantined version of a file: those of a later version, in the order in which they were read."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from compactor.core.documents.records import FileStatus
from compactor.core.layout import ManifestKey
from compactor.ledger.accounts.account import quarantined_files
from compactor.ledger.accounts.later_rows import KnownRows, Version, later_rows, may_settle
from compactor.ledger.accounts.settling import Settling
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, GOOD, Harness

URI = "/w/raw/a.ndjson"


def deliver(harness: Harness, manifest_id: str, content: bytes | None) -> None:
    """A manifest that names the file, which is there with this content or gone, an hour after the last one."""
    harness.clock.advance(3_600)
    files = [harness.file("a.ndjson", content or GOOD)]
    uri = harness.put_manifest(f"{manifest_id}.json", harness.manifest(manifest_id, files).to_json())
    if content is None:
        harness.store.delete([URI])
    harness.runner().run([uri])


def rebuild(harness: Harness, manifest_id: str, replaced: Sequence[str] = ()) -> None:
    """A rebuild of a manifest, now."""
    harness.clock.advance(3_600)
    commit = harness.commit(manifest_id)
    made = {"generation": 2, "reason": "lost", "replaced": list(replaced), "decided_at": harness.clock.now()}
    harness.ledger.decide(commit.model_copy(update=made))
    harness.ledger.finish(commit.key, 2)


def settled_by(harness: Harness, manifest_id: str) -> str:
    [file] = Settling(harness.app().state).files(quarantined_files(harness.commit(manifest_id)))
    return file.settled_by


def test_the_first_later_rows_settle() -> None:
    """Not rows of an earlier version, nor a later version that was quarantined itself."""
    harness = Harness()
    for manifest_id, content in [("m1", GOOD), ("m2", None), ("m3", None), ("m4", GOOD + GOOD), ("m5", GOOD)]:
        deliver(harness, manifest_id, content)
        if manifest_id == "m3":
            assert [settled_by(harness, each) for each in ("m2", "m3")] == ["", ""]
    assert harness.commit("m2").files[0].status is FileStatus.MISSING
    assert [settled_by(harness, each) for each in ("m2", "m3")] == ["m4", "m4"]


@pytest.mark.parametrize(("replaced", "expected"), [((), ""), ((URI,), "m1")])
def test_rebuilds(replaced: tuple[str, ...], expected: str) -> None:
    """A rebuild is of the rows of its first generation, except those of files that it has another version of."""
    harness = Harness()
    deliver(harness, "m1", GOOD)
    deliver(harness, "m2", None)
    rebuild(harness, "m1", replaced)
    assert settled_by(harness, "m2") == expected


def test_a_rebuild_of_the_manifest_that_quarantined() -> None:
    """What was settled stays so."""
    harness = Harness()
    deliver(harness, "m1", None)
    deliver(harness, "m2", GOOD)
    rebuild(harness, "m1")
    assert settled_by(harness, "m1") == "m2"


def test_a_commit_that_cannot_be_read_settles_nothing() -> None:
    """And hides no other."""
    harness = Harness()
    for manifest_id, content in [("m1", None), ("m2", GOOD), ("m3", GOOD + GOOD)]:
        deliver(harness, manifest_id, content)
    harness.store.put(harness.layout.outcome(ManifestKey(DAY, "m2")), b"{")
    assert settled_by(harness, "m1") == "m3"


def test_only_what_was_written_since_is_read_and_once() -> None:
    """However many manifests there were before; a repeated reading with the same memory reads nothing more."""
    harness = Harness()
    for number in range(4):
        deliver(harness, f"old{number}", GOOD * (number + 1))
    harness.clock.advance(86_400)
    for manifest_id, content in [("m1", None), ("m2", GOOD)]:
        deliver(harness, manifest_id, content)
    version = Version("m1", URI, harness.commit("m1").started_at)
    store, known = FaultyStore(harness.store), KnownRows()
    state = harness.app(store=store).state
    for reads in (2, 0, 2):
        before = store.calls["read"]
        assert later_rows(state, [version], may_settle(state, None, [version]), known) == {version: "m2"}
        assert store.calls["read"] - before == reads
        if not reads:
            known.keep_only(())
    other = Version("m1", "/w/raw/b.ndjson", version.started_at - timedelta(seconds=1))
    assert later_rows(state, [version, other], may_settle(state, None, [version]), known) == {version: "m2"}
