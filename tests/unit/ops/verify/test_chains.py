"""Chains of planned ranges: what `verify` finds in them."""

from collections import Counter
from typing import Any

import pytest

from compactor.core.documents.chains.kafka_records import KafkaLink
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Accepted
from compactor.core.kafka.ranges import KafkaRange
from compactor.core.layout import digest
from compactor.ledger.chains import by_manifest
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ops.verify.chains import faults_of_chains
from tests.unit.manifests.test_kafka_planning import LAYOUT, TOPIC, Scene, scene

PLACE = ChainPlace(TOPIC, "one", 0)


def found(made: Scene) -> list[tuple[str, str]]:
    return [(each.expected, each.found) for each in faults_of_chains(made.planner().state)]


def taken_in(made: Scene) -> None:
    """Accept all manifests, as a job does, and remove them from their prefix."""
    for manifest in list(made.manifests()):
        made.planner().state.ledger.accept(
            Accepted(
                manifest_id=manifest.manifest_id,
                kind="manifest",
                date=manifest.date,
                digest=digest(manifest.to_json()),
                source_uri="",
                accepted_at=made.clock.now(),
                manifest=manifest,
            )
        )
        made.store.delete([LAYOUT.manifest(manifest.manifest_id)])


def test_what_was_planned_adds_up() -> None:
    """While manifests wait, and once they were taken in."""
    made, _ = scene(45, 3)
    made.plan()
    assert found(made) == []
    taken_in(made)
    assert found(made) == []


class TakingIn:
    """A store in which a job takes all manifests in right before someone asks whether one waits."""

    def __init__(self, made: Scene) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made.store, name)

    def stat(self, uri: str) -> Any:
        taken_in(self._made)
        return self._made.store.stat(uri)


def test_a_manifest_that_is_taken_in_meanwhile() -> None:
    """It is in neither place for a moment: not on record when that is read, and not in its prefix a little later."""
    made, _ = scene(3)
    made.plan()
    assert list(faults_of_chains(made.planner(TakingIn(made)).state)) == []


def test_a_manifest_that_is_gone() -> None:
    """No one would read its offsets."""
    made, _ = scene(3)
    made.plan()
    [manifest] = made.manifests()
    made.store.delete([LAYOUT.manifest(manifest.manifest_id), LAYOUT.accepted(manifest.manifest_id)])
    made.store.delete([info.uri for info in made.store.list("s3://lake/s/") if "/drafts/" in info.uri])
    assert found(made) == [(f"manifest {manifest.manifest_id} with offsets 0 to 2", "no such manifest")]


def test_a_manifest_with_other_offsets() -> None:
    """The link says what it should have."""
    made, _ = scene(3)
    made.plan()
    [manifest] = made.manifests()
    Chains(made.planner().state).link(PLACE, KafkaLink(first=3, end=9, manifest_id=manifest.manifest_id))
    taken_in(made)
    assert found(made) == [("offsets 3 to 8 in its manifest", "other ones")]


def test_a_gap_between_links() -> None:
    """And a chain without a beginning."""
    made, _ = scene(3)
    made.plan()
    chains = Chains(made.planner().state)
    [manifest] = made.manifests()
    chains.link(PLACE, KafkaLink(first=5, end=9, manifest_id=manifest.manifest_id))
    assert found(made)[0] == ("a range from 3", "one from 5")
    made.store.delete([f"{LAYOUT.kafka_folder}main/events/one/0/origin.json"])
    assert found(made) == [("a record of where its chain begins", "none")]


class CountingReads:
    """A store that counts how often each object is read."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.reads: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, uri: str) -> bytes:
        self.reads[uri] += 1
        data: bytes = self._store.read(uri)
        return data


def many(partitions: int, manifests: int) -> tuple[Scene, list[str]]:
    """Manifests of all partitions, all taken in, as plans of months make them."""
    made, _ = scene()
    state, chains = made.planner().state, Chains(made.planner().state)
    ids = [f"2026-11-26-{number:016x}" for number in range(manifests)]
    places = [ChainPlace(TOPIC, "one", number) for number in range(partitions)]
    for place in places:
        chains.begin(place, 0, 1)
        for number, manifest_id in enumerate(ids):
            chains.link(place, KafkaLink(first=number, end=number + 1, manifest_id=manifest_id))
    for number, manifest_id in enumerate(ids):
        files = tuple(
            ManifestFile(uri=str(KafkaRange(TOPIC, each, number, number + 1)), size_bytes=1, etag="one")
            for each in range(partitions)
        )
        now = made.clock.now()
        manifest = Manifest(manifest_id=manifest_id, date="2026-11-26", created_at=now, files=files)
        record = Accepted(
            manifest_id=manifest_id,
            kind="manifest",
            date=manifest.date,
            digest=digest(manifest.to_json()),
            source_uri="",
            accepted_at=now,
            manifest=manifest,
        )
        state.ledger.accept(record)
    return made, ids


@pytest.mark.parametrize("lines_at_once", [7, 1000])
def test_each_record_is_read_once(lines_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many partitions and manifests there are, and however few links fit into memory."""
    monkeypatch.setattr(by_manifest, "LINES_AT_ONCE", lines_at_once)
    made, ids = many(3, 200)
    store = CountingReads(made.store)
    Chains(made.planner().state).link(PLACE, KafkaLink(first=200, end=201, manifest_id=ids[7]))
    faults = [each.expected for each in faults_of_chains(made.planner(store).state)]
    assert faults == ["offsets 200 to 200 in its manifest"]
    read_again = {uri: times for uri, times in store.reads.items() if times > 1}
    assert (read_again, len(store.reads)) == ({}, 3 + 3 * 200 + 1 + 200)


def test_a_manifest_that_is_gone_is_asked_for_once() -> None:
    """And once more, as a job may have taken it in meanwhile, not for each of its links; each has its own line."""
    made, ids = many(3, 2)
    made.store.delete([LAYOUT.accepted(ids[1])])
    store = CountingReads(made.store)
    found = list(faults_of_chains(made.planner(store).state))
    assert [each.found for each in found] == ["no such manifest"] * 3
    assert store.reads[LAYOUT.accepted(ids[1])] == 2
