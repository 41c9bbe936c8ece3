"""Taking manifests in: what each object of the watched prefix is, and that an id belongs to one manifest for good."""

import pytest

from compactor.core.documents import manifest_parsing
from compactor.core.documents.changes import Commit
from compactor.core.documents.manifest import REASONS
from compactor.core.documents.records import Accepted
from compactor.core.layout import digest
from compactor.job.receiving import HEAVY_BYTES, MAX_INTAKES, Delivery, Intake
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, GOOD, Harness
from tests.support.logged import events_logged


@pytest.fixture
def harness() -> Harness:
    return Harness()


def intake(harness: Harness) -> Intake:
    app = harness.app()
    return Intake(state=app.state, allowed_prefixes=["/w/raw"])


def receive(harness: Harness, uri: str) -> Delivery:
    delivery = intake(harness).receive(uri)
    assert delivery is not None
    return delivery


VALID = b'{"version": 1, "manifest_id": "x", "date": "2026-01-02", "files": [{"uri": "/w/raw/x"}]}'

REFUSED = [
    ("empty.json", b"", "empty", "empty"),
    ("bad.json", b"{", "not_json", "bad"),
    ("list.json", b"[]", "not_an_object", "list"),
    ("new.json", b'{"version": 3}', "unknown_version", "new"),
    ("other.json", b"{}", "unknown_form", "other"),
    ("noid.json", b'{"version": 1}', "bad_id", "noid"),
    ("none.json", b'{"fileLocations": []}', "no_files", "none"),
    ("out.json", b'{"fileLocations": [{"URIPrefixes": ["/etc/passwd"]}]}', "outside_allowed_prefixes", "out"),
    ("twice.json", b'{"fileLocations": [{"URIPrefixes": ["/w/raw/a", "/w/raw/a"]}]}', "duplicate_uri", "twice"),
    ("_x.json", VALID, "hidden_name", "x-"),
    (".x.json", VALID, "hidden_name", "x-"),
    ("sub/x.json", VALID, "nested", "x-nested-"),
]


@pytest.mark.parametrize(("name", "data", "reason", "starts_with"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refusals(harness: Harness, name: str, data: bytes, reason: str, starts_with: str) -> None:
    """A wrong manifest is refused with its reason, becomes a dead letter named after it, and leaves the prefix."""
    uri = harness.put_manifest(name, data)
    delivery = receive(harness, uri)
    assert delivery.refusal is not None
    assert (delivery.refusal.reason, delivery.accepted.kind) == (reason, "refused")
    assert reason in REASONS
    assert uri in delivery.refusal.message
    manifest_id = delivery.accepted.manifest_id
    assert manifest_id.startswith(starts_with)
    report = harness.run_once()
    assert (report.dead_lettered, harness.waiting()) == (1, [])
    assert harness.store.read(harness.layout.failed_manifest(manifest_id)) == data


def test_too_big(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that is larger than any manifest is refused unread, and kept whole."""
    monkeypatch.setattr(manifest_parsing, "MAX_MANIFEST_BYTES", 10)
    uri = harness.put_manifest("big.json", b"x" * 11)
    delivery = receive(harness, uri)
    assert delivery.refusal is not None
    assert delivery.refusal.reason == "too_big"
    assert receive(harness, uri).digest == delivery.digest
    harness.run_once()
    assert harness.store.read(harness.layout.failed_manifest("big")) == b"x" * 11
    assert harness.waiting() == []


def test_as_big_as_can_be(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest of exactly the largest size is read and accepted."""
    uri = harness.deliver("m1", GOOD)
    monkeypatch.setattr(manifest_parsing, "MAX_MANIFEST_BYTES", len(harness.store.read(uri)))
    delivery = receive(harness, uri)
    assert (delivery.refusal, delivery.accepted.kind) == (None, "manifest")


def test_accepted(harness: Harness) -> None:
    """A manifest is bound to its own id and date, whatever its object is called."""
    data = harness.manifest("m1", [harness.file("a", GOOD)]).to_json()
    delivery = receive(harness, harness.put_manifest("anything.json", data))
    assert delivery.refusal is None
    assert (delivery.accepted.manifest_id, delivery.accepted.date) == ("m1", DAY)


def test_gone(harness: Harness) -> None:
    """An object that another driver took away is no error."""
    assert intake(harness).receive(harness.layout.manifest("gone")) is None


@pytest.mark.parametrize("together", [True, False])
def test_same_manifest_under_two_names(harness: Harness, together: bool) -> None:
    """The same bytes under two names are one manifest: compacted once, and both objects are cleared away."""
    data = harness.manifest("m1", [harness.file("a", GOOD)]).to_json()
    uris = [harness.put_manifest("one.json", data), harness.put_manifest("two.json", data)]
    for batch in [uris] if together else [[uri] for uri in uris]:
        assert harness.runner().run(batch).failures == {}
    harness.check_exact()
    assert len([*harness.ledger.manifests()]) == 1


def test_id_of_another_manifest(harness: Harness) -> None:
    """Another manifest under a used id becomes a dead letter under an id of its own; the first one stays as it is."""
    harness.deliver("m1", GOOD)
    harness.run_once()
    other = harness.manifest("m1", [harness.file("b", GOOD)]).to_json()
    uri = harness.put_manifest("other.json", other)
    delivery = receive(harness, uri)
    assert delivery.refusal is not None
    assert delivery.refusal.reason == "id_already_used"
    assert "used by /w/manifests/m1.json" in delivery.refusal.message
    harness.run_once()
    assert isinstance(harness.outcome("m1"), Commit)
    assert harness.dead_letter(delivery.accepted.manifest_id).reason == "id_already_used"
    assert harness.store.read(harness.layout.failed_manifest(delivery.accepted.manifest_id)) == other
    harness.check_exact(["/w/raw/m1-0.ndjson"])


def test_revoked_id(harness: Harness) -> None:
    """A manifest of another origin under an id that was revoked is refused, for ever."""
    harness.ledger.accept(Accepted(manifest_id="m1", kind="revoked", date=DAY, accepted_at=harness.clock.now()))
    uri = harness.deliver("m1", GOOD)
    harness.store.put(uri, harness.store.read(uri) + b"\n")
    for _ in range(2):
        delivery = receive(harness, uri)
        assert delivery.refusal is not None
        assert "revoked, because it was not written in time" in delivery.refusal.message
    harness.run_once()
    assert harness.output_rows() == {}


def test_a_manifest_that_was_written_too_late(harness: Harness) -> None:
    """What a sealer wrote and could not remove, because it was held up between the two, is no dead letter."""
    harness.ledger.accept(Accepted(manifest_id="m1", kind="revoked", date=DAY, accepted_at=harness.clock.now()))
    uri = harness.deliver("m1", GOOD)
    with events_logged("manifest.revoked") as events:
        report = harness.run_once()
    assert (report.committed, report.dead_lettered) == (0, 0)
    assert harness.store.stat(uri) is None
    assert [each["manifest_id"] for each in events] == ["m1"]
    assert not harness.verification().needs_operator


def test_a_revoked_id_beside_a_copy_under_another_name(harness: Harness) -> None:
    """A copy of a revoked manifest under another name was put there by a person, who is told."""
    harness.ledger.accept(Accepted(manifest_id="m1", kind="revoked", date=DAY, accepted_at=harness.clock.now()))
    uri = harness.deliver("m1", GOOD)
    harness.store.copy(uri, harness.layout.manifests_folder + "copy.json")
    assert harness.run_once().dead_lettered == 1


def test_same_bad_object_again(harness: Harness) -> None:
    """The same bad bytes under the same name are the same dead letter; other bad bytes are another one."""
    for data in (b"bad", b"bad", b"worse", b"bad", b"worse"):
        harness.put_manifest("bad.json", data)
        harness.run_once()
    failed = [
        harness.store.read(info.uri) for info in harness.store.list("/w/state/failed/") if "reason" not in info.uri
    ]
    assert sorted(failed) == [b"bad", b"worse"]
    assert harness.waiting() == []


def test_nested_object_does_not_take_an_id(harness: Harness) -> None:
    """An object in the wrong folder never keeps the manifest of that name in the right place from its work."""
    nested = harness.put_manifest("sub/m1.json", b"{}")
    uri = harness.deliver("m1", GOOD)
    assert harness.runner().run([nested, uri]).failures == {}
    assert isinstance(harness.outcome("m1"), Commit)
    harness.check_exact()


def heavy(harness: Harness) -> str:
    """A valid manifest that is large."""
    data = harness.manifest("heavy", [harness.file("a", GOOD)]).to_json()
    return harness.put_manifest("heavy.json", data + b" " * HEAVY_BYTES)


def test_an_object_that_kills_its_reader_is_refused_unread() -> None:
    """Each intake of a large object is on record before the object is read; after some deaths it is read no more."""

    class Killing(FaultyStore):
        def read(self, uri: str, *, etag: str | None = None) -> bytes:
            if uri.endswith("heavy.json"):
                reads.append(uri)
            return super().read(uri, etag=etag)

    harness = Harness()
    reads: list[str] = []
    uri = heavy(harness)
    store = Killing(harness.store)
    for _ in range(MAX_INTAKES):
        harness.deliver(f"good{len(reads)}", GOOD)
        # A process that dies has no `finally`.
        harness.store.put(f"{intake_folder(harness, uri)}run-{len(reads)}.json", b"{}")
        reads.append("died")
    reads.clear()
    report = harness.run_once(store=store)
    assert (report.committed, report.dead_lettered, reads) == (MAX_INTAKES, 1, [])
    assert harness.dead_letter("heavy").message.endswith(f"{MAX_INTAKES} runs died while reading it")
    assert harness.store.read(harness.layout.failed_manifest("heavy"))


def test_a_large_manifest_that_kills_none_leaves_no_record() -> None:
    """The record of an intake is gone once the object was read, or turned out to be unreadable for now."""
    harness = Harness()
    uri = heavy(harness)
    store = FaultyStore(harness.store)
    store.unavailable_at(1, "read")
    seen: list[str] = []

    class Watching(FaultyStore):
        def read(self, uri: str, *, etag: str | None = None) -> bytes:
            if uri.endswith("heavy.json"):
                seen.extend(info.uri for info in harness.store.list(intake_folder(harness, uri)))
            return super().read(uri, etag=etag)

    harness.runner(store=store).run([uri])
    assert list(harness.store.list(f"{harness.root}/state/intake/")) == []
    harness.run_once(store=Watching(harness.store))
    assert len(set(seen)) == 1
    assert list(harness.store.list(f"{harness.root}/state/intake/")) == []
    harness.check_exact()


def intake_folder(harness: Harness, uri: str) -> str:
    info = harness.store.stat(uri)
    assert info is not None
    return harness.layout.intake_folder(digest(f"{uri}#{info.etag}".encode()))
