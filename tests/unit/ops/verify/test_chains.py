"""Chains of planned ranges: what `verify` finds in them."""

from typing import Any

from compactor.core.documents.chains.kafka_records import KafkaLink
from compactor.core.documents.records import Accepted
from compactor.core.layout import digest
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
