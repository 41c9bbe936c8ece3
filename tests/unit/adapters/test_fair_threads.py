"""Threads that streams share: none waits behind a flood of tasks of another, and one that is alone uses all."""

import threading
from concurrent.futures import wait

import pytest

from compactor.adapters.local.native.threads import FairThreads
from compactor.wiring import streaming
from compactor.wiring.app import App
from tests.support.streams import StreamsInMemory, stream_settings


def order_of(*tasks: tuple[str, str]) -> list[str]:
    """The manifests in the order in which one thread took their tasks, all of which waited for it."""
    threads, begin, taken = FairThreads(1), threading.Event(), []
    first = threads.submit("", "", "", lambda: begin.wait(30))
    calls = [threads.submit(each[0], "", each[1], lambda name=each[1]: taken.append(name)) for each in tasks]
    begin.set()
    wait([first, *calls], 30)
    return taken


def test_a_stream_waits_for_one_task_of_a_flood() -> None:
    """Ten manifests of one stream wait; one of another stream is taken second, and from then on they take turns."""
    flood = [("flooding", f"f{number}") for number in range(4)]
    assert order_of(*flood, ("calm", "c"), ("calm", "c")) == ["f0", "c", "f1", "c", "f2", "f3"]


def test_a_stream_that_has_a_thread_leaves_the_next_one_to_others() -> None:
    """Of two threads one stream has one; the other thread does all of another stream before it comes back."""
    threads, end, begin, taken = FairThreads(2), threading.Event(), threading.Event(), []
    busy = threads.submit("flooding", "", "f", lambda: end.wait(30))
    blocked = threads.submit("", "", "", lambda: begin.wait(30))
    waiting = [("flooding", "f"), ("flooding", "f"), ("calm", "c"), ("calm", "c")]
    calls = [threads.submit(each[0], "", each[1], lambda name=each[1]: taken.append(name)) for each in waiting]
    begin.set()
    wait([blocked, *calls], 30)
    end.set()
    wait([busy], 30)
    assert taken == ["c", "c", "f", "f"]


def test_a_small_manifest_overtakes_a_large_one() -> None:
    """Manifests of one stream take turns, however many tasks each has."""
    assert order_of(*[("", "large")] * 5, ("", "small")) == ["large", "small", *["large"] * 4]


def test_a_stream_that_works_alone_has_all_threads() -> None:
    """Ten streams share the threads of the job; the tasks of one of them run side by side."""
    streams = StreamsInMemory(stream_settings("one", "two", "three", stream={"source": "listing"}))
    app = App(streams.settings, clock=streams.clock, store=streams.store, table_of_claims=streams.claims)
    job = streaming.threaded_job(app, 2)
    workers = [make().runner.compactor.stager.engine.workers for make in job.new_services.values()]
    assert len({id(each._threads) for each in workers}) == 1
    assert [each._stream for each in workers] == ["one", "two", "three"]
    together = threading.Barrier(2, timeout=30)
    wait([workers[0]._threads.submit("one", "", "m", together.wait) for _ in range(2)], 30)
    assert not together.broken


def test_errors_and_cancelled_tasks() -> None:
    """An error is that of its task; what is cancelled while it waits never runs, and keeps no thread."""
    threads, begin, ran = FairThreads(1), threading.Event(), []
    threads.submit("a", "", "m", lambda: begin.wait(30))
    failing = threads.submit("a", "", "m", lambda: 1 // 0)
    cancelled = threads.submit("a", "", "m", lambda: ran.append(1))
    assert cancelled.cancel()
    begin.set()
    with pytest.raises(ZeroDivisionError):
        failing.result(30)
    assert threads.submit("a", "", "m", lambda: 2).result(30) == 2
    assert ran == []


def test_no_source_holds_all_threads() -> None:
    """Tasks of one source that take for ever leave one more thread to the others, one after the other."""
    threads, end, taken = FairThreads(2), threading.Event(), []
    busy = [threads.submit("", "/bad/", f"bad{number}", lambda: end.wait(30)) for number in range(6)]
    good = [threads.submit("", "/good/", name, lambda name=name: taken.append(name)) for name in ("a", "b")]
    wait(good, 30)
    assert taken == ["a", "b"]
    assert sum(each.running() for each in busy) == 2
    end.set()
    wait(busy, 30)
