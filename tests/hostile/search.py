"""Searches the space of `tests.hostile.genome` for attacks on what their neighbours wait for.

python -m tests.hostile.search [--minutes N] [--seed N] [--rows N]

A hill climb: each step changes a few genes of the worst genomes so far. One is worse than another if its neighbours
wait longer, by the time that they wait beside an honest file of as many bytes; every second step goes on from those
that took most CPU time. It prints the ten worst, each measured again, also four times as large. The exit code is 1 if
one is above the bounds of `tests.hostile.measuring`, or if its bytes cost over twice as much CPU time each at four
times the size. `python -m tests.hostile GENOME` repeats one.
"""

# ruff: noqa: T201 - a program

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.cliffs.rule import growth
from tests.hostile.__main__ import HEAD, line, results
from tests.hostile.genome import attack_of, mutated
from tests.hostile.measuring import Measured

SHOWN = 10
_BATCH = 8
_PARENTS = 6
_ANEW = 0.25  # share of the genomes that begin with a plain log
_ATTACK_SECONDS = 600
_ROWS = 3_000
_GROWTH = 2.0
_FLOOR_SECONDS = 0.5  # of CPU time: less cannot be told from noise

Measure = Callable[[list[str]], Iterable[Measured]]


def slower(measured: Measured) -> float:
    """By how much longer the neighbours waited."""
    return measured.beside_seconds / max(measured.alone_seconds, 0.01)


def faults(measured: Measured) -> list[str]:
    """What is wrong with the result of a genome."""
    return [*measured.faults, *measured.beyond(attack_of(measured.name))]


def _cpu(measured: Measured) -> float:
    return measured.cpu_seconds


def _rank(measured: Measured) -> tuple[bool, float]:
    return bool(faults(measured)), slower(measured)


@dataclass(slots=True)
class Search:
    """A hill climb.

    Attributes:
        measure: Measures genomes.
        found: The results so far, by genome.
    """

    measure: Measure
    rng: random.Random
    tell: Callable[[Measured], None] = lambda _: None
    found: dict[str, Measured] = field(default_factory=dict)

    def run(self, is_over: Callable[[], bool]) -> None:
        """Search, from a plain log on."""
        keys = [slower, _cpu]
        while not is_over():
            keys.reverse()
            parents = [each.name for each in sorted(self.found.values(), key=keys[0])[-_PARENTS:]] or [""]
            self._note(self._children(parents))

    def worst(self) -> list[Measured]:
        """The worst genomes, measured once more: the better result counts, for other programs take time as well."""
        chosen = sorted(self.found.values(), key=_rank)[-SHOWN:]
        self._note([each.name for each in chosen])
        return sorted((self.found[each.name] for each in chosen), key=_rank, reverse=True)

    def grown(self, genome: str) -> float:
        """By which factor a byte of a genome costs more CPU time at four times the size, the least of two tries."""
        sizes = {1: genome, 4: f"{genome}, times=4".removeprefix(", ")}
        for _ in range(2):
            self._note(list(sizes.values()), key=_cpu)
        return growth({size: self.found[each].cpu_seconds for size, each in sizes.items()}, _FLOOR_SECONDS)

    def _children(self, parents: list[str]) -> list[str]:
        made = dict[str, None]()
        while len(made) < _BATCH:
            parent = "" if self.rng.random() < _ANEW else self.rng.choice(parents)
            child = mutated(parent, self.rng)
            if child in self.found:
                parents = [*parents, child]  # so that it ends where all near the parents are known
            else:
                made[child] = None
        return list(made)

    def _note(self, genomes: list[str], key: Callable[[Measured], Any] = _rank) -> None:
        for each in self.measure(genomes):
            before = self.found.get(each.name)
            self.found[each.name] = each if before is None else min(before, each, key=key)
            self.tell(each)


def main() -> int:
    """Parse the command line, search, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.search")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None, help="repeats choices; what follows depends on times")
    parser.add_argument("--rows", type=int, default=_ROWS, help="rows of each file of the honest manifests")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    print(f"seed {seed}\n{HEAD}", flush=True)
    ends = time.monotonic() + 60 * options.minutes

    def measure(genomes: list[str]) -> Iterable[Measured]:
        return results("native", options.rows, [*map(attack_of, genomes)], _ATTACK_SECONDS, _BATCH)

    search = Search(measure, random.Random(seed), lambda each: print(line(each, faults(each)), flush=True))
    search.run(lambda: time.monotonic() > ends)
    tried, worst = len(search.found), search.worst()
    search.tell = lambda _: None
    print(f"\nthe worst of {tried} genomes, seed {seed}; `python -m tests.hostile GENOME` repeats one\n{HEAD}")
    code = 0
    for each in worst:
        factor = search.grown(each.name)
        wrong = faults(each) + [f"a byte costs {factor:.1f} times as much at four times the size"] * (factor > _GROWTH)
        print(line(each, wrong), flush=True)
        code = max(code, bool(wrong))
    return code


if __name__ == "__main__":
    sys.exit(main())
