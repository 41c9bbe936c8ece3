"""Ranges of topics that are gone: a person may accept that, once, with who and why."""

from pathlib import Path

import pytest

from compactor.core.documents.records import FileStatus
from compactor.core.kafka.ranges import Topic
from compactor.ledger.history.accepted_losses import AcceptedLosses
from compactor.ops.accept.acceptor import Acceptor, Losses
from compactor.ops.redrive.scan import find_redrivable
from compactor.ops.redrive.selection import Scope
from tests.support.extras import NATIVE
from tests.support.memory_kafka import MemoryKafka, kafka_app

TOPIC = Topic("main", "events")

NATIVE.need()


class Scene:
    """A topic of which retention removed some records before they were planned."""

    def __init__(self, root: Path) -> None:
        self.log = MemoryKafka()
        [self.partition] = self.log.create(TOPIC, "one")
        self.app = kafka_app(root, self.log)
        self.partition.append(*[b'{"id": 1}'] * 3)
        self.plan_and_run()
        self.partition.append(*[b'{"id": 2}'] * 5)
        self.partition.remove_before(6)
        self.plan_and_run()

    def plan_and_run(self) -> None:
        self.app.kafka_planner.plan(TOPIC, max_manifests=9)
        self.app.threaded_job(1).run(once=True)

    def acceptor(self, by: str = "ann@host") -> Acceptor:
        return Acceptor(state=self.app.state, kafka=self.log, by=by)

    def accept(self, why: str = "late", by: str = "ann@host") -> Losses:
        found = self.acceptor(by).find()
        self.acceptor(by).accept(found, why)
        return found


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def partition_range(first: int, end: int) -> str:
    return f"{TOPIC}/0?from={first}&to={end}"


def test_a_lost_range_is_settled_once_it_is_accepted(scene: Scene) -> None:
    """For `verify`, `status` and `redrive`; it says who accepted it, and why."""
    before = scene.app.verifier().verify_all()
    assert (before.has_quarantined_files, [each.uri for each in before.quarantined_files]) == (
        True,
        [partition_range(3, 6)],
    )
    [lost] = scene.accept().lost
    assert (lost.uri, lost.offsets) == (partition_range(3, 6), 3)
    after = scene.app.verifier().verify_all()
    assert (after.needs_operator, after.rows) == (False, 5)
    [file] = after.quarantined_files
    assert file.settled_by.startswith("loss accepted by ann@host at ")
    assert file.settled_by.endswith(": late")
    assert scene.app.status_reader.read().quarantined_files.open == 0
    assert not any(source.things for source in find_redrivable(scene.app.state, Scope("files")).sources)


def test_a_loss_is_accepted_once(scene: Scene) -> None:
    """What was said first stays, also if someone else accepts the same."""
    found = scene.acceptor().find()
    scene.acceptor("ann@host").accept(found, "first")
    scene.acceptor("bob@host").accept(found, "second")
    [loss] = AcceptedLosses(scene.app.state).of(found.lost[0].manifest_id).values()
    assert (loss.by, loss.why) == ("ann@host", "first")
    assert scene.acceptor().find() == Losses()


def test_of_what_is_left_nothing_is_accepted(scene: Scene) -> None:
    """Redrive reads that first; then what is gone can be accepted, and no more."""
    scene.accept()
    scene.partition.append(*[b'{"id": 3}'] * 4)
    scene.app.kafka_planner.plan(TOPIC, max_manifests=9)
    scene.partition.remove_before(10)
    scene.app.threaded_job(1).run(once=True)
    found = scene.accept()
    assert (found.lost, [each.uri for each in found.refused]) == ([], [partition_range(8, 12)])
    assert scene.app.verifier().verify_all().needs_operator


def test_a_topic_that_is_gone_can_be_accepted(scene: Scene) -> None:
    """Nothing of it comes back."""
    scene.partition.append(b'{"id": 3}')
    scene.app.kafka_planner.plan(TOPIC, max_manifests=9)
    scene.log.create(TOPIC, "two")
    scene.app.threaded_job(1).run(once=True)
    assert {each.uri for each in scene.accept().lost} == {partition_range(3, 6), partition_range(8, 9)}
    assert not scene.app.verifier().verify_all().needs_operator


def test_an_unreadable_acceptance_settles_nothing(scene: Scene) -> None:
    """A person has to look at it."""
    [lost] = scene.accept().lost
    [record] = [info.uri for info in scene.app.store.list(scene.app.layout.accepted_losses(lost.manifest_id))]
    scene.app.store.put(record, b"damaged")
    found = scene.app.verifier().verify_all()
    assert [each.status for each in found.quarantined_files if not each.is_settled] == [FileStatus.MISSING]
