"""Ranges of topics that are gone: a person may accept that, once, with who and why."""

from pathlib import Path

import pytest

from compactor.core.documents.changes import Why
from compactor.core.documents.records import FileStatus
from compactor.core.errors import AccessError, CompactorError, SettingsError, StoreUnavailable
from compactor.core.kafka.ports import LiveTopic, OpenKafka
from compactor.core.kafka.ranges import Topic
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.change_log import ChangeLog
from compactor.ops.accept.acceptor import Acceptor, Losses
from compactor.ops.redrive.scan import find_redrivable
from compactor.wiring.job.app import App
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
    assert (len(before.open_files), [each.uri for each in before.quarantined_files]) == (
        1,
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
    [loss] = ChangeLog(scene.app.state).of(Why.GIVEN_UP, found.lost[0].manifest_id)
    assert (loss.by, loss.reason) == ("ann@host", "first")
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
    [record] = [info.uri for info in ChangeLog(scene.app.state).listed(Why.GIVEN_UP, lost.manifest_id)]
    scene.app.store.put(record, b"damaged")
    found = scene.app.verifier().verify_all()
    assert [each.status for each in found.quarantined_files if not each.is_settled] == [FileStatus.MISSING]


OLD = Topic("old", "former")


class Silent(MemoryKafka):
    """The same clusters, of which `old` cannot be asked. Counts how often it was."""

    def __init__(self, log: MemoryKafka, error: CompactorError) -> None:
        super().__init__(log.topics)
        self.error = error
        self.asked = 0

    def topic(self, topic: Topic) -> LiveTopic | None:
        if topic.cluster == OLD.cluster:
            self.asked += 1
            raise self.error
        return super().topic(topic)


class TwoClusters:
    """A topic on each of two clusters: retention removed all offsets of both partitions of `old`, and two of `main`."""

    def __init__(self, root: Path) -> None:
        self.root, self.log = root, MemoryKafka()
        [kept] = self.log.create(TOPIC, "one")
        old = self.log.create(OLD, "two", 2)
        app = self.app()
        for partition, records in zip((kept, *old), (2, 3, 3), strict=True):
            partition.append(*[b'{"id": 1}'] * records)
        for topic in (TOPIC, OLD):
            app.kafka_planner.plan(topic, max_manifests=9)
        for partition in (kept, *old):
            partition.remove_before(partition.end)
        app.threaded_job(1).run(once=True)

    def app(self, log: MemoryKafka | None = None) -> App:
        servers = {"bootstrap.servers": "none:1"}
        tables = {
            "kafka": {"clusters": {"main": servers, "old": servers}},
            "input": {"allowed_prefixes": ["kafka://main", "kafka://old"]},
        }
        return kafka_app(self.root, log or self.log, **tables)

    def acceptor(self, log: OpenKafka) -> Acceptor:
        return Acceptor(state=self.app().state, kafka=log, by="ann@host")


ERRORS: list[CompactorError] = [
    StoreUnavailable("old: no broker answers"),
    SettingsError(['kafka.clusters: no "old" -> expected it beside main']),
    AccessError("old: brokers refuse the user"),
]
OLD_RANGES = {f"{OLD}/0?from=0&to=3", f"{OLD}/1?from=0&to=3"}


@pytest.mark.parametrize("error", ERRORS, ids=["down", "not in the settings", "refused"])
def test_a_cluster_that_cannot_be_asked_refuses_its_own_ranges_alone(error: CompactorError, tmp_path: Path) -> None:
    """Those of others are accepted and redriven; each refused range has its line."""
    scene = TwoClusters(tmp_path)
    found = scene.acceptor(Silent(scene.log, error)).find()
    assert [each.uri for each in found.lost] == [f"{TOPIC}/0?from=0&to=2"]
    assert {each.uri for each in found.refused} == OLD_RANGES
    assert all(f"cannot ask its brokers: {error}" in each.why for each in found.refused)
    app = scene.app(Silent(scene.log, error))
    report = app.redriver().redrive(find_redrivable(app.state, Scope("files")), dry_run=True)
    why = {each.uri: each.why for each in report.refused}
    assert why.keys() > OLD_RANGES
    assert all(f"cannot ask its brokers: {error}" in why[uri] for uri in OLD_RANGES)
    assert "compactor accept" in why[f"{TOPIC}/0?from=0&to=2"]


def test_a_cluster_that_is_down_is_waited_for_once(tmp_path: Path) -> None:
    """Not once for each of its ranges: a request that no broker answers takes half a minute."""
    scene = TwoClusters(tmp_path)
    silent = Silent(scene.log, ERRORS[0])
    scene.acceptor(silent).find()
    assert silent.asked == 1
    app = scene.app(silent)
    app.redriver().redrive(find_redrivable(app.state, Scope("files")))
    assert silent.asked == 2


def test_ranges_of_a_cluster_that_is_gone_for_good(tmp_path: Path) -> None:
    """They are accepted without asking, and the record says so, as do commands that show it."""
    scene = TwoClusters(tmp_path)
    silent = Silent(scene.log, ERRORS[1])
    acceptor = scene.acceptor(silent)
    found = acceptor.find(gone_clusters={"old"})
    assert ({each.uri for each in found.lost if each.unasked}, found.refused) == (OLD_RANGES, [])
    assert silent.asked == 0
    acceptor.accept(found, "switched off in May")
    state = scene.app().state
    ids = {lost.manifest_id for lost in found.lost}
    losses = [loss for each in ids for loss in ChangeLog(state).of(Why.GIVEN_UP, each)]
    assert {loss.input for loss in losses if loss.unasked} == OLD_RANGES
    report = scene.app().verifier().verify_all()
    assert not report.needs_operator
    assert sum("without asking brokers" in each.settled_by for each in report.quarantined_files) == 2
    assert acceptor.find() == Losses()


def test_only_what_is_named_is_accepted_without_asking(tmp_path: Path) -> None:
    """Of other dates and manifests nothing is."""
    scene = TwoClusters(tmp_path)
    acceptor = scene.acceptor(Silent(scene.log, ERRORS[1]))
    assert acceptor.find(date="2001-01-01", gone_clusters={"old"}) == Losses()
    [kept] = {each.manifest_id for each in acceptor.find().lost}
    assert [each.uri for each in acceptor.find([kept], gone_clusters={"old"}).lost] == [f"{TOPIC}/0?from=0&to=2"]


def test_a_range_that_was_quarantined_for_another_reason_and_removed_since(tmp_path: Path) -> None:
    """Redrive sends a person to accept, accept takes it, and all commands agree."""
    log = MemoryKafka()
    [partition] = log.create(TOPIC, "one")
    partition.append(*[b"\x00\x00\x00\x00\x01\x02abc"] * 5)  # of a schema registry
    app = kafka_app(tmp_path, log)
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    [quarantined] = app.verifier().verify_all().quarantined_files
    assert quarantined.status is not FileStatus.MISSING
    acceptor = Acceptor(state=app.state, kafka=log, by="ann@host")
    found = acceptor.find()
    assert (found.lost, [each.uri for each in found.refused]) == ([], [partition_range(0, 5)])
    partition.remove_before(5)
    report = app.redriver().redrive(find_redrivable(app.state, Scope("files")))
    assert (report.redriven, ["compactor accept" in each.why for each in report.refused]) == ([], [True])
    found = acceptor.find()
    assert ([(each.uri, each.offsets) for each in found.lost], found.refused) == ([(partition_range(0, 5), 5)], [])
    acceptor.accept(found, "no one needs them")
    assert not app.verifier().verify_all().needs_operator
    assert app.status_reader.read().quarantined_files.open == 0
    assert not any(source.things for source in find_redrivable(app.state, Scope("files")).sources)
    assert acceptor.find() == Losses()
