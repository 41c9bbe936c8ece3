"""Explores the models of the protocol, and prints how many states each configuration has.

`python -m tests.protocol` explores the small configurations, in seconds. `--full` adds the large ones, which take an
hour: it skips those that hold by `spec/held.json`, until their module changes, unless `--again` is given, too.
`--guards` removes each guard instead, one at a time, and prints the property that fails without it.
"""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

from tests.protocol.configurations import ASSUMED, LARGE, MEDIUM, SMALL, Configuration, all_guards, violated_without
from tests.protocol.held import HeldConfigurations
from tests.protocol.tlc import missing


def main(words: Sequence[str]) -> int:
    if why := missing():
        sys.stderr.write(f"{why}\n")
        return 2
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # each waits for a process of TLC, which has one thread
        if "--guards" in words:
            return 0 if _needs_every_guard(threads) else 1
        if "--full" not in words:
            return 0 if all([*threads.map(_holds, [*SMALL, *MEDIUM])]) else 1
        held, every = HeldConfigurations(is_again="--again" in words), [*SMALL, *MEDIUM, *LARGE]
        found = [*threads.map(lambda each: _holds(each, held), every)]
        held.keep_only(every)
        return 0 if all(found) else 1


def _needs_every_guard(threads: Executor) -> bool:
    assumed = ASSUMED.explored()
    say(f"{ASSUMED.module:<8}  {ASSUMED.name:<45}  {assumed.violated or 'holds'}, as spec/README.md says")
    every = [*all_guards()]
    violated = threads.map(violated_without, *zip(*every, strict=True))
    return all([*(_shown(guard, name) for (_, guard), name in zip(every, violated, strict=True)), assumed.violated])


def _holds(configuration: Configuration, held: HeldConfigurations | None = None) -> bool:
    found, was_earlier = held.explored(configuration) if held else (configuration.explored(), False)
    ended = "holds, as explored earlier" if was_earlier else "holds"
    if found.violated:
        ended = f"VIOLATED: {found.violated}\n{found.printed}"
    what = f"{configuration.module:<8}  {configuration.name:<45}"
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
