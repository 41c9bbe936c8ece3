"""Ranges of topics that are gone: a person may dismiss them, once, with who and why."""

from pathlib import Path

import pytest

from compactor.core.documents.changes import GivenUp, Why
from compactor.core.logs.names import LogName
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.change_log import changes_about
from compactor.ops.redrive.giving_up import Dismissal, find_unsettled, given_up
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.wiring import operating, streaming
from tests.support.extras import NATIVE
from tests.support.memory_kafka import MemoryKafka, kafka_app

TOPIC = LogName("kafka", "main", "events")

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
        streaming.lander(self.app, "kafka").land(TOPIC, max_manifests=9)
        streaming.threaded_job(self.app, 1).run(once=True)

    def dismiss(self, found: Dismissal, why: str = "late", by: str = "ann@host") -> None:
        given_up(self.app.state, found.inputs, "dismissed", why, by=by)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def partition_range(first: int, end: int) -> str:
    return f"{TOPIC}/0?from={first}&to={end}"


def test_a_lost_range_is_settled_once_it_is_dismissed(scene: Scene) -> None:
    """For `verify`, `status` and `redrive`; it says who dismissed it, and why."""
    before = operating.verifier(scene.app).verify_all()
    assert (len(before.open_files), [each.uri for each in before.quarantined_files]) == (
        1,
        [partition_range(3, 6)],
    )
    found = find_unsettled(scene.app.state)
    scene.dismiss(found)
    assert [each.uri for each in found.inputs] == [partition_range(3, 6)]
    after = operating.verifier(scene.app).verify_all()
    assert (after.needs_operator, after.rows) == (False, 5)
    [file] = after.quarantined_files
    assert file.settled_by.startswith("dismissed by ann@host at ")
    assert file.settled_by.endswith(": late")
    assert operating.status_reader(scene.app).read().quarantined_files.open == 0
    assert not any(source.things for source in find_redrivable(scene.app.state, Scope("files")).sources)


def test_a_loss_is_dismissed_once(scene: Scene) -> None:
    """What was said first stays, also if someone else dismisses the same."""
    found = find_unsettled(scene.app.state)
    scene.dismiss(found, "first", "ann@host")
    scene.dismiss(found, "second", "bob@host")
    [loss] = changes_about(scene.app.state, GivenUp, found.inputs[0].manifest_id, Why.GIVEN_UP)
    assert (loss.by, loss.reason) == ("ann@host", "first")
    assert find_unsettled(scene.app.state) == Dismissal()


def test_what_is_asked_for(scene: Scene) -> None:
    """Ranges by their URI, by manifest and by date; what is not quarantined is refused."""
    state, uri = scene.app.state, partition_range(3, 6)
    [lost] = find_unsettled(state).inputs
    assert find_unsettled(state, [uri]).inputs == (lost,)
    assert find_unsettled(state, manifest_ids=[lost.manifest_id]).inputs == (lost,)
    other = partition_range(7, 9)
    refused = find_unsettled(state, [uri, other])
    assert ([each.uri for each in refused.inputs], [each.uri for each in refused.refused]) == ([uri], [other])
    assert find_unsettled(state, date="1999-01-01").inputs == ()


def test_a_damaged_record_of_another_manifest(scene: Scene) -> None:
    """It is refused where all input is meant, but does not concern files that are named."""
    state, uri = scene.app.state, partition_range(3, 6)
    [lost] = find_unsettled(state).inputs
    [other] = [key for key in state.ledger.manifests() if key.id != lost.manifest_id]
    scene.app.store.put(state.layout.outcome(other), b"damaged")
    assert find_unsettled(state, [uri]) == Dismissal((lost,))
    everything = find_unsettled(state)
    assert ([*everything.inputs], [each.manifest_id for each in everything.refused]) == ([lost], [other.id])
