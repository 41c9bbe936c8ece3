"""Runs seeds, and shrinks those that break a promise."""

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tests.simulation.scheduler import Stalled
from tests.simulation.world import World


@dataclass(frozen=True, slots=True)
class Case:
    """One run, which is always the same.

    Attributes:
        seed: Of all chances.
        days: How long producers produce and troubles happen.
        faults: Only the first so many faults happen; None for all.
        is_harsh: Whether all kinds of faults happen, and often.
    """

    seed: int
    days: float
    faults: int | None = None
    is_harsh: bool = False

    def command(self) -> str:
        """The command that replays it."""
        faults = "" if self.faults is None else f" --faults {self.faults}"
        harsh = " --harsh" if self.is_harsh else ""
        return f"python -m tests.simulation --seed {self.seed} --days {self.days:.6g}{faults}{harsh}"


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended.

    Attributes:
        error: What broke; None if every promise was kept.
        days: When, in simulated days from the start.
        faults: How many faults had happened.
        rest_hours: Simulated hours from the last fault until everything was done.
        summary: What happened, in numbers.
    """

    error: BaseException | None
    days: float
    faults: int
    rest_hours: float
    summary: str


def result_of(case: Case, trace: list[str] | None = None, tell: Callable[[str], None] = lambda _: None) -> Result:
    """Run a case."""
    world = World(case.seed, case.days, case.faults, case.is_harsh, trace, tell)
    error: BaseException | None = None
    try:
        world.run()
    except Exception as exc:  # noqa: BLE001 - an unforeseen error of the code breaks a promise as well
        error = exc
    state = world.scheduler.order_chance.getrandbits(32)  # another one if anything at all went another way
    summary = f"{world.described()}, state {state:08x}"
    return Result(error, world.scheduler.now / 86_400, world.faults.drawn, world.rest_seconds / 3600, summary)


@dataclass(frozen=True, slots=True)
class Show:
    """What to do about each seed.

    Attributes:
        trace_lines: Lines of the trace of a seed that fails.
        shrinks: Whether to look for its shortest prefix.
        is_verbose: Whether to show what happened in each seed.
        until_broken: Whether the first seed that fails is the last.
    """

    trace_lines: int
    shrinks: bool
    is_verbose: bool
    until_broken: bool


def run_seeds(cases: Iterable[Case], show: Show) -> int:
    """Run cases and show what came of them; returns the exit code."""
    began, done, broken, stalled, longest_hours = time.process_time(), 0, 0, 0, 0.0
    for case in cases:
        result = result_of(case, tell=say if case.days >= 1 else lambda _: None)
        done += 1
        longest_hours = max(longest_hours, result.rest_hours)
        if show.is_verbose:
            say(f"seed {case.seed}: {result.summary}")
        if result.error is not None:
            broken += 1
            stalled += isinstance(result.error, Stalled)
            say(f"seed {case.seed} breaks: {_shown(result.error)}")
            _tell(shrunk(case, result) if show.shrinks else case, show.trace_lines)
            if show.until_broken:
                break
    pace = done / max(time.process_time() - began, 0.01)
    say(f"{done - broken + stalled} of {done} seeds lost and doubled nothing")
    say(f"{done - stalled} of {done} were at rest after the last fault, within {longest_hours:.1f} simulated hours")
    say(f"{done - broken} of {done} seeds kept every promise; {pace:.2f} seeds a CPU second")
    return 1 if broken else 0


def shrunk(case: Case, result: Result) -> Case:
    """The shortest case that still breaks something: first the fewest faults, then the shortest time."""
    fewest, most = 0, result.faults if case.faults is None else min(case.faults, result.faults)
    while fewest < most:
        middle = (fewest + most) // 2
        if result_of(replace(case, faults=middle)).error is not None:
            most = middle
        else:
            fewest = middle + 1
    least = replace(case, faults=most)
    least = least if result_of(least).error is not None else case
    shortest, longest = 0.0, min(case.days, result.days)
    while longest - shortest > 60 / 86_400:
        middle_days = (shortest + longest) / 2
        if result_of(replace(least, days=middle_days)).error is not None:
            longest = middle_days
        else:
            shortest = middle_days
    shorter = replace(least, days=longest)
    return shorter if result_of(shorter).error is not None else least


def _tell(case: Case, lines: int) -> None:
    if not lines:
        return
    trace: list[str] = []
    result = result_of(case, trace)
    say(f"replay: {case.command()}")
    say(f"  {_shown(result.error)}" if result.error is not None else "  it does not break again: the run is not exact")
    faults = [line for line in trace if line[30:42].strip()]
    for line in (*faults[-lines:], "and the last calls:", *trace[-lines:]):
        say(f"  {line}")


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
