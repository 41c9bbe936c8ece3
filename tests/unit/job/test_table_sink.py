"""A job with a table sink: what it did is done once the table has it, whether it dies or the catalog goes silent."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle
from typing import Self

import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.crash_points import CrashPoint, OnCrashPoint
from compactor.core.documents.changes import Commit
from compactor.core.errors import CompactorError
from compactor.job import scheduler, table_commits
from compactor.job import service as service_module
from compactor.job.report import ManifestsUnfinished
from compactor.job.service import Service
from compactor.wiring import streaming, table_sink
from tests.support.harness import FLAWED, GOOD, DiedError, Harness, dying_at, sink_of
from tests.support.interleaving import interleave
from tests.support.memory_table import Answer

pytestmark = pytest.mark.usefixtures("short_commit_pauses")


def check_table(harness: Harness, *manifest_ids: str) -> None:
    """The live files are those of these manifests, once each, with the figures of their commits."""
    commits = [harness.commit(each) for each in manifest_ids]
    expected = sorted((file.final, file.size_bytes, file.rows, each.date) for each in commits for file in each.outputs)
    found = sink_of(harness).live_files()
    assert sorted((each.uri, each.size_bytes, each.records, each.date) for each in found) == expected
    ledger = harness.ledger
    assert all(ledger.is_done(each.key, each.generation) for each in commits)


def test_a_run_commits_what_it_places() -> None:
    """Several manifests in one commit; dead letters and manifests without rows need none."""
    harness = Harness(table={})
    for name in ("m1", "m2", "m3"):
        harness.deliver(name, GOOD, FLAWED)
    harness.deliver("m4", b"no json\n")
    harness.put_manifest("bad.json", b"{")
    report = harness.run_once()
    assert (report.committed, report.dead_lettered, report.records) == (4, 1, 12)
    check_table(harness, "m1", "m2", "m3")
    assert sink_of(harness).commits == 1
    harness.check_exact()
    assert harness.verification().discrepancies == []
    assert harness.waiting() == []


def test_new_columns_come_with_their_files() -> None:
    """In the same commit; a commit without new keys leaves the columns alone."""
    harness = Harness(table={})
    for name, line in (("m1", b'{"a": 1}\n'), ("m2", b'{"b": 1}\n'), ("m3", b'{"a": 2}\n')):
        harness.deliver(name, line)
        harness.run_once()
    head = sink_of(harness).head()
    assert head is not None
    assert (head.fence, head.schema_version) == (3, 2)
    check_table(harness, "m1", "m2", "m3")


@pytest.mark.parametrize(
    "answers", [(Answer.LOST,), (Answer.UNAVAILABLE, Answer.LOST), (Answer.LATE, Answer.WELL)], ids=str
)
def test_answers_that_do_not_tell(answers: tuple[Answer, ...]) -> None:
    """Cost further tries, and nothing else."""
    harness = Harness(table={})
    sink_of(harness).answers = cycle(answers).__next__
    for name in ("m1", "m2"):
        harness.deliver(name, GOOD)
        assert harness.run_once().committed == 1
        sink_of(harness).land()
    check_table(harness, "m1", "m2")


def test_a_catalog_that_is_down() -> None:
    """A run that is to end says what is not done, and leaves it placed; the next one commits it."""
    harness = Harness(table={})
    sink_of(harness).is_down = True
    for name in ("m1", "m2"):
        harness.deliver(name, GOOD)
    with pytest.raises(ManifestsUnfinished, match=r"its files wait until the table takes them: .*does not respond"):
        harness.run_once()
    assert len(harness.waiting()) == 2
    failed = [each for each in harness.metrics.emitted if "TableCommitsFailed" in each]
    assert [each["ManifestsPlaced"] for each in failed] == [2] * len(failed) != []
    sink_of(harness).is_down = False
    published = list(harness.store.list(harness.layout.output + "/"))
    assert harness.run_once().committed == 2
    check_table(harness, "m1", "m2")
    harness.check_exact()
    assert list(harness.store.list(harness.layout.output + "/")) == published, "written again"


def test_no_more_than_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the catalog is down, the job places up to a bound; once it is back, it goes on beyond it."""
    monkeypatch.setattr(table_sink, "MOST_WAITING_MANIFESTS", 2)
    harness = Harness(table={}, stream={"manifests_in_flight": 1})
    names = [f"m{number}" for number in range(5)]
    for name in names:
        harness.deliver(name, GOOD)
    sink_of(harness).is_down = True
    monkeypatch.setattr(table_commits, "GIVES_UP_AFTER", 2)
    with pytest.raises(ManifestsUnfinished):
        harness.run_once()
    decided = [key for key in harness.ledger.manifests() if harness.ledger.state(key).outcome is not None]
    assert len(decided) == 2
    sink_of(harness).is_down = False
    assert harness.run_once().committed == 5
    check_table(harness, *names)


def test_a_run_that_is_to_end_gives_up_with_more_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the table nor the queue has room: the stream waits for the queue, and must not wait for ever."""
    monkeypatch.setattr(scheduler, "WAITING_MANIFESTS", 3)
    monkeypatch.setattr(table_sink, "MOST_WAITING_MANIFESTS", 2)
    harness = Harness(table={}, stream={"manifests_in_flight": 1})
    for number in range(12):
        harness.deliver(f"m{number}", GOOD)
    sink_of(harness).is_down = True
    source = ListedManifests(harness.store, harness.layout.manifests_folder, 1, 0.01)
    service = streaming.service_on(harness.app(), harness.engine(), source)
    service.poll_seconds = 0.01
    with Running(service, once=True) as running:
        assert running.ends(), "it gives up on the table"
    assert isinstance(running.error, ManifestsUnfinished)
    assert len(harness.waiting()) == 12
    sink_of(harness).is_down = False
    assert harness.run_once().committed == 12


def test_a_run_that_has_given_up_still_takes_what_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits for others failed before its stream delivered anything: it does not end as if it had nothing to do."""
    harness = Harness(table={})
    harness.deliver("m1", GOOD)
    monkeypatch.setattr(table_commits.TableCommits, "has_given_up", lambda _: True)

    class LateSource(ListedManifests):
        def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
            def late(uris: Sequence[str]) -> None:
                time.sleep(0.2)
                on_batch(uris)

            super().start(late, once=once)

    service = streaming.service_on(
        harness.app(), harness.engine(), LateSource(harness.store, harness.layout.manifests_folder)
    )
    service.poll_seconds = 0.01
    service.run(once=True)
    check_table(harness, "m1")


def test_an_object_that_only_a_listing_finds_waits_for_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """While table and queue are full, a sweep finds one: once the catalog is back, everything is committed."""
    monkeypatch.setattr(scheduler, "WAITING_MANIFESTS", 3)
    monkeypatch.setattr(service_module, "SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(table_sink, "MOST_WAITING_MANIFESTS", 2)
    harness = Harness(table={"commit_seconds": 0.01}, stream={"manifests_in_flight": 1})
    names = [f"m{number}" for number in range(8)]
    for name in names:
        harness.deliver(name, GOOD)
    sink_of(harness).is_down = True
    source = ListedManifests(harness.store, harness.layout.manifests_folder, 8, 0.01)
    service = streaming.service_on(harness.app(), harness.engine(), source)
    service.poll_seconds = 0.01
    assert service.runner.table is not None
    with Running(service, once=False):
        assert eventually(lambda: service.runner.table.is_full() and not service.runner.has_room())
        hidden = harness.put_manifest("_hidden.json", b"{")  # only now: while there is room, it is taken in at once
        assert eventually(lambda: hidden in service._listed)
        sink_of(harness).is_down = False
        assert eventually(lambda: not harness.waiting()), "it goes on"
    check_table(harness, *names)


def test_after_a_death_the_first_manifests_wait_for_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is taken first after a death may be more than table and queue take: the job commits it all the same."""
    monkeypatch.setattr(scheduler, "WAITING_MANIFESTS", 2)
    monkeypatch.setattr(table_sink, "MOST_WAITING_MANIFESTS", 2)
    harness = Harness(table={"commit_seconds": 0.01}, stream={"manifests_in_flight": 1})
    names = [f"m{number}" for number in range(8)]
    harness.deliver(names[0], GOOD)
    source = ListedManifests(harness.store, harness.layout.manifests_folder, 8, 0.01)
    with suppress(DiedError):
        streaming.service_on(harness.app(on_crash_point=dying_at(CrashPoint.ATTEMPTED)), harness.engine(), source).run(
            once=True
        )
    harness.clock.advance(3600)
    for name in names[1:]:
        harness.deliver(name, GOOD)
    service = streaming.service_on(harness.app(), harness.engine(), source)
    service.poll_seconds = 0.01
    with Running(service, once=False):
        assert eventually(lambda: not harness.waiting()), "it goes on"
    check_table(harness, *names)


class Running:
    """Runs a job in a thread of its own as long as the block lasts, whatever comes of that.

    Attributes:
        error: What ended it.
    """

    def __init__(self, service: Service, *, once: bool) -> None:
        self.error: BaseException | None = None
        self._service, self._once = service, once
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._service.run(once=self._once)
        except BaseException as exc:  # noqa: BLE001 - the test looks at it
            self.error = exc

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._service.stop()
        self._thread.join(30)
        assert not self._thread.is_alive(), "it ends when it is asked to"

    def ends(self, seconds: float = 30.0) -> bool:
        """Whether it ends by itself in time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


def eventually(is_reached: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Whether something comes true in time."""
    until = time.monotonic() + seconds
    while not is_reached() and time.monotonic() < until:
        time.sleep(0.01)
    return is_reached()


STEPS = list(CrashPoint)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("step", STEPS)
def test_death_and_delay_at_every_step(step: CrashPoint) -> None:
    """Whatever was placed or committed by then, other runs have each file in the table once."""

    def world() -> Harness:
        made = Harness(table={})
        made.deliver("m1", GOOD, FLAWED)
        made.deliver("m2", GOOD)
        return made

    def process(made: Harness, on_crash_point: OnCrashPoint) -> None:
        source = ListedManifests(made.store, made.layout.manifests_folder)
        streaming.service_on(made.app(on_crash_point=on_crash_point), made.engine(), source).run(once=True)

    def others(made: Harness) -> None:
        for _ in range(2):
            made.clock.advance(3600)
            with suppress(CompactorError):
                made.run_once()

    def check(made: Harness) -> None:
        check_table(made, "m1", "m2")
        made.check_exact()

    interleave(step, world, process, others, check)


def test_an_idle_stream_commits_when_it_is_time() -> None:
    """Nothing more has to come: the first manifest waits for `table.commit_seconds`, and no longer."""
    harness = Harness(table={"commit_seconds": 0.05})
    service = watched_service(harness, lambda: sink_of(harness).commits > 0)
    service.run(once=False)
    check_table(harness, "m1")


def test_a_stop_commits_what_is_placed() -> None:
    """The last of a run does not wait for the next one."""
    harness = Harness(table={"commit_seconds": 3600.0})
    service = watched_service(harness, lambda: "m1" in published)
    assert service.runner.table is not None
    published = service.runner.table
    report = service.run(once=False)
    assert report.committed == 1
    check_table(harness, "m1")


def watched_service(harness: Harness, is_reached: Callable[[], bool]) -> Service:
    """A job that is stopped once something is reached."""
    harness.deliver("m1", GOOD)

    class Source(ListedManifests):
        def wait(self, timeout_seconds: float) -> bool:
            if is_reached():
                service.stop()
            return super().wait(min(timeout_seconds, 0.01))

    source = Source(harness.store, harness.layout.manifests_folder, 10, 0.01)
    service: Service = streaming.service_on(harness.app(), harness.engine(), source)
    return service


def test_a_failure_after_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest that the table has and that cannot be brought to done is tried again, without another commit."""
    harness = Harness(table={})
    harness.deliver("m1", GOOD)
    harness.deliver("m2", GOOD)
    failures = iter([True, True])
    finish = table_commits.Publisher.finish

    def flaky(self: table_commits.Publisher, accepted: object, outcome: Commit) -> object:
        if next(failures, False):
            raise OSError("the disk is gone")
        return finish(self, accepted, outcome)  # type: ignore[arg-type]

    monkeypatch.setattr(table_commits.Publisher, "finish", flaky)
    assert harness.run_once().committed == 2
    assert sink_of(harness).commits == 1
    check_table(harness, "m1", "m2")
