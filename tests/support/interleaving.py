"""One property of every process: wherever it dies, or is held up while others do all there is, the end is the same."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Any, TypeVar

from compactor.core.errors import CompactorError
from tests.support.harness import DiedError
from tests.support.memory_store import MemoryStore

World = TypeVar("World")


@dataclass
class Meddling:
    """A store that calls a function before and after each change; all else is that of another store."""

    store: MemoryStore
    around: Callable[[], None]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        if name not in {"create", "put", "delete"}:
            return found

        def changing(*arguments: Any) -> Any:
            self.around()
            answer = found(*arguments)
            self.around()
            return answer

        return changing


def at_change(number: int, act: Callable[[], object]) -> Callable[[], None]:
    """What `Meddling` calls: it acts once, at its call of a number, from 0."""
    calls = count()

    def around() -> None:
        if next(calls) == number:
            act()

    return around


def dying(number: int) -> Callable[[], None]:
    """What `Meddling` calls: from its call of a number on, the process is dead."""
    calls = count()

    def around() -> None:
        if next(calls) >= number:
            raise DiedError

    return around


def interleave(
    step: StrEnum,
    world: Callable[[], World],
    process: Callable[[World, Callable[[StrEnum, str], None]], object],
    others: Callable[[World], object],
    check: Callable[[World], object],
    *,
    occurrence: int = 1,
    kept: Callable[[World], object] = lambda _: None,
) -> None:
    """Let a process die at a step, and be held up there in a second world, while others run; then check each world.

    Args:
        step: A crash point.
        world: Makes a world.
        process: What dies or is held up; gets what to call at each of its crash points.
        others: The other processes. They also run once the first one has gone on and ended.
        check: Raises what is wrong in the end.
        occurrence: Which visit of the step counts.
        kept: What a process that was held up has to leave as the others left it.
    """
    for dies in (True, False):
        made, visits, left = world(), 0, list[object]()

        def at(found: StrEnum, _name: str, made: World = made, left: list[object] = left, dies: bool = dies) -> None:
            nonlocal visits
            visits += found == step
            if found == step and visits == occurrence:
                if dies:
                    raise DiedError
                others(made)
                left.append(kept(made))

        with suppress(DiedError, CompactorError):
            process(made, at)
        assert visits >= occurrence, f"{step} is not reached"
        assert [kept(made) for _ in left] == left, f"a process that was held up at {step} spoiled what others did"
        others(made)
        check(made)
