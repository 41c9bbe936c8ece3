"""Runs of ranges: those of a manifest that follow each other in one partition. Decisions, no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from compactor.core.documents.manifest import ManifestFile
from compactor.core.kafka.ranges import KafkaRange


@dataclass(frozen=True, slots=True)
class Run:
    """Ranges of a manifest that follow each other: one link of the chain of their partition."""

    partition: int
    first: int
    end: int


def runs(named: Sequence[ManifestFile]) -> dict[Run, list[ManifestFile]]:
    """The runs in the files of a manifest, all of one topic, each with its ranges."""
    found: dict[Run, list[ManifestFile]] = {}
    parsed = sorted(((KafkaRange.parse(file.uri), file) for file in named), key=lambda each: each[0])
    for partition, those in groupby(parsed, key=lambda each: each[0].partition):
        run: list[tuple[KafkaRange, ManifestFile]] = []
        for each in those:
            if run and run[-1][0].end != each[0].first:
                found[_run(partition, run)] = [file for _, file in run]
                run = []
            run.append(each)
        found[_run(partition, run)] = [file for _, file in run]
    return found


def _run(partition: int, of: Sequence[tuple[KafkaRange, ManifestFile]]) -> Run:
    return Run(partition, of[0][0].first, of[-1][0].end)
