"""Explores the model of the protocol, and says how many states each configuration has.

python -m tests.protocol does so in seconds. `--full` adds the large configurations, which take an hour: one that holds
by `spec/held.json` is not explored again unless its module has changed, or `--again` is there, too. With `--guards` it
takes out every guard instead, one at a time, and says which property fails without it.
"""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

from tests.protocol.configurations import ASSUMED, LARGE, MEDIUM, SMALL, Configuration, all_guards, violated_without
from tests.protocol.held import HeldConfigurations
from tests.protocol.tlc import Exploration, missing


def main(words: Sequence[str]) -> int:
    if why := missing():
        sys.stderr.write(f"{why}\n")
        return 2
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # each waits for a process of TLC, which has one thread
        if "--guards" in words:
            return 0 if _needs_every_guard(threads) else 1
        if "--full" in words:
            return 0 if _all_hold(threads, is_again="--again" in words) else 1
        return 0 if all([*threads.map(_holds, [*SMALL, *MEDIUM])]) else 1


def _all_hold(threads: Executor, *, is_again: bool) -> bool:
    held, every = HeldConfigurations(is_again=is_again), [*SMALL, *MEDIUM, *LARGE]
    found = [*threads.map(lambda each: _held(each, held), every)]
    held.keep_only(every)
    return all(found)


def _needs_every_guard(threads: Executor) -> bool:
    assumed = ASSUMED.explored()
    say(f"{ASSUMED.module:<8}  {ASSUMED.name:<40}  {assumed.violated or 'holds'}, as spec/README.md says")
    every = [*all_guards()]
    violated = threads.map(violated_without, *zip(*every, strict=True))
    return all([*(_shown(guard, name) for (_, guard), name in zip(every, violated, strict=True)), assumed.violated])


def _holds(configuration: Configuration) -> bool:
    return _told(configuration, configuration.explored(), "")


def _held(configuration: Configuration, held: HeldConfigurations) -> bool:
    found, was_earlier = held.explored(configuration)
    return _told(configuration, found, ", as explored earlier" if was_earlier else "")


def _told(configuration: Configuration, found: Exploration, when: str) -> bool:
    ended = f"VIOLATED: {found.violated}\n{found.printed}" if found.violated else f"holds{when}"
    what = f"{configuration.module:<8}  {configuration.name:<40}"
    say(f"{what}  {found.states:>9,} states  {found.seconds:6.1f} s  {ended}")
    return not found.violated


def _shown(guard: str, violated: str) -> bool:
    say(f"without: {guard:<70}  {violated or 'NOTHING IS VIOLATED'}")
    return bool(violated)


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)  # noqa: T201 - a program


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
