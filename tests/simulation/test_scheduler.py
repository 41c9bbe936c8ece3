"""The scheduler, and the threads and locks that simulated code gets."""

from collections.abc import Callable

import pytest

from tests.simulation.scheduler import Broken, Death, Process, Scheduler
from tests.simulation.threads import Condition, Event, Future, Lock, RLock, Thread, ThreadPoolExecutor


def run(work: Callable[[Scheduler], object], seed: int = 1) -> Scheduler:
    """Run some work as a task."""
    scheduler = Scheduler(seed)
    scheduler.run(Process("first"), lambda: work(scheduler))
    return scheduler


def in_turns(seed: int) -> str:
    said: list[str] = []

    def work(scheduler: Scheduler) -> None:
        def say(letter: str) -> None:
            for _ in range(4):
                scheduler.pause(scheduler.order_chance.random())
                said.append(letter)

        threads = [Thread(say, (letter,)) for letter in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run(work, seed)
    return "".join(said)


def test_a_seed_gives_one_order() -> None:
    assert in_turns(1) == in_turns(1)
    assert len({in_turns(seed) for seed in range(5)}) > 1


def test_time_jumps() -> None:
    scheduler = run(lambda scheduler: scheduler.pause(10 * 86_400))
    assert scheduler.now >= 10 * 86_400


def test_one_at_a_time_holds_a_lock() -> None:
    holding: list[int] = []
    most = 0

    def work(scheduler: Scheduler) -> None:
        lock = Lock()

        def hold() -> None:
            nonlocal most
            with lock:
                holding.append(1)
                most = max(most, len(holding))
                scheduler.pause(1)
                holding.pop()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: hold(), range(6)))

    run(work)
    assert most == 1


def test_waits_end_by_a_signal_or_in_time() -> None:
    def work(scheduler: Scheduler) -> None:
        event, condition = Event(), Condition()
        assert not event.wait(5.0)
        Thread(lambda: (scheduler.pause(1.0), event.set())).start()
        assert event.wait(5.0)
        with condition:
            assert not condition.wait(2.0)
        lock = RLock()
        with lock, lock:
            assert lock.locked()
        assert not lock.locked()

    assert 7.9 < run(work).now < 8.1


def test_a_pool_returns_results_and_errors() -> None:
    def work(_: Scheduler) -> None:
        with ThreadPoolExecutor(2) as pool:
            calls: list[Future] = [pool.submit(int, text) for text in ("1", "x", "3")]
            assert calls[0].result() + calls[2].result() == 4
            with pytest.raises(ValueError, match="x"):
                calls[1].result()
        with pytest.raises(RuntimeError):
            pool.submit(int, "1")

    run(work)


def test_nothing_of_a_dead_process_runs() -> None:
    did: list[str] = []

    def work(scheduler: Scheduler) -> None:
        process = Process("other")

        def live() -> None:
            try:
                scheduler.pause(2)
                did.append("lived")
            finally:
                with pytest.raises(Death):
                    scheduler.pause(0)

        scheduler.start(process, live)
        scheduler.pause(1)
        scheduler.kill(process)
        scheduler.pause(5)
        assert process.has_died
        assert not process.tasks

    run(work)
    assert did == []


def test_a_paused_process_stands_still() -> None:
    at: list[float] = []

    def work(scheduler: Scheduler) -> None:
        process = Process("other", paused_until=100.0)
        scheduler.start(process, lambda: at.append(scheduler.now))
        scheduler.pause(200)

    run(work)
    assert at == [100.0]


def test_an_error_of_a_thread_ends_the_run() -> None:
    def work(scheduler: Scheduler) -> None:
        Thread(lambda: int("x")).start()
        scheduler.pause(1)

    with pytest.raises(ValueError, match="x"):
        run(work)


def test_tasks_that_wait_for_each_other() -> None:
    with pytest.raises(Broken, match="wait for each other"):
        run(lambda _: Event().wait())
