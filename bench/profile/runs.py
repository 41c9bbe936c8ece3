"""Runs `compactor compact` with and without samples, in turn, until there are enough of them."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.guard.programs import ROOT, Program
from bench.profile.building import Built
from bench.profile.samples import Address, read_samples
from bench.profile.stages import Place, Stage, stage_of
from bench.profile.symbols import places
from bench.shapes import Written


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the CPU time of a program went.

    Attributes:
        seconds: Of a run that was not sampled, in user and kernel mode: the median.
        samples: Of all runs that were, by stage.
        unknown: The commonest innermost places of the stage `other`, with their samples.
    """

    seconds: float
    samples: Mapping[Stage, int]
    unknown: Sequence[tuple[str, int]] = ()

    @property
    def by_stage(self) -> Mapping[Stage, float]:
        """Seconds of each stage; together they are `seconds`."""
        total = sum(self.samples.values())
        return {stage: self.seconds * self.samples.get(stage, 0) / total for stage in Stage}


def spent(built: Built, given: Written, work: Path, least_samples: int, options: Sequence[str] = ()) -> Spent:
    """Profile the compaction of a folder.

    Args:
        built: The kernel and the sampler.
        given: The input.
        work: For output and samples; keeps nothing.
        least_samples: Repeat it until there are so many.
        options: Further options of the command.

    Raises:
        RuntimeError: The program failed, made another number of rows, or was not sampled.
    """
    plain = Program("plain", ROOT, built.variables())
    code, kernel = plain.modules(work)
    if not code.is_relative_to(ROOT) or kernel != built.kernel:
        raise RuntimeError(f"{code} and {kernel}; expected code in {ROOT}, and the kernel {built.kernel}")
    plain.cpu_seconds(given.folder, given.lines, work, *options)  # not counted: it fills the page cache
    seconds: list[float] = []
    stacks: Counter[tuple[Address, ...]] = Counter()
    while sum(stacks.values()) < least_samples:
        seconds.append(plain.cpu_seconds(given.folder, given.lines, work, *options))
        stacks.update(tuple(stack) for stack in _sampled(built, given, work, options))
    named = places({address for stack in stacks for address in stack}, built.kernel)
    samples, unknown = by_stage(stacks, lambda address: named[address])
    return Spent(median(seconds), samples, unknown.most_common(10))


def by_stage(
    stacks: Mapping[tuple[Address, ...], int], named: Callable[[Address], Sequence[Place]]
) -> tuple[Counter[Stage], Counter[str]]:
    """The samples of each stage; and those of the stage `other` by their innermost place."""
    samples: Counter[Stage] = Counter()
    unknown: Counter[str] = Counter()
    for stack, number in stacks.items():
        inner = [place for address in stack for place in named(address)]
        stage = stage_of(inner)
        samples[stage] += number
        if stage is Stage.OTHER:
            first = inner[0] if inner else Place("no file")
            unknown[f"{first.module} {first.function}".strip()] += number
    return samples, unknown


def _sampled(built: Built, given: Written, work: Path, options: Sequence[str]) -> Iterator[Sequence[Address]]:
    folder = work / "samples"
    folder.mkdir()
    try:
        Program("sampled", ROOT, built.variables(folder)).cpu_seconds(given.folder, given.lines, work, *options)
        count = 0
        for count, stack in enumerate(read_samples(folder), 1):  # noqa: B007 - it is used below
            yield stack
        if not count:
            raise RuntimeError("no sample was taken; expected a system with ITIMER_PROF")
    except FileNotFoundError as exc:
        raise RuntimeError(f"the process was not sampled: {exc}") from exc
    finally:
        shutil.rmtree(folder)
