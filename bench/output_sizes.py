"""Measures how much output is in files of the right size: `python -m bench.output_sizes`.

The native engine compacts each shape of `bench.shapes`, manifest by manifest: once as the planner cuts them, and once
with any size, as they are written when files have waited long enough. The first manifest teaches the ratio and does
not count. Sizes are scaled down alike: target, manifests and files.
"""

import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import click

from bench.compactor_home import CompactorHome
from bench.shapes import SHAPES, Shape, write_shape
from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.documents.changes import Commit
from compactor.ledger.sizing import can_be_right_sized, is_right_sized
from compactor.settings.types import GIB, MIB
from compactor.sources.candidates import Candidate
from compactor.sources.packing import Packing
from compactor.wiring import engines, streaming
from compactor.wiring.app import App

SMALLEST, LARGEST = 0.75, 5.0
"""Of manifests of any size: their output, in target sizes."""

EXPECTED_PERCENT = 98
HEADING = (
    f"{'shape':<13}{'manifests':<15}{'files':>6}{'counted MB':>12}{'right-sized %':>15}  sizes that are not, in targets"
)
_USUAL_FILE_BYTES = 128 * MIB
_LEAST_FILE_BYTES = 4096
_POOL = 2  # of the size of a usual manifest: the input that manifests are cut from


@dataclass(frozen=True, slots=True)
class Sizes:
    """The output files of the manifests of one shape, without the first manifest.

    Attributes:
        how: How the manifests were cut.
        outputs: The sizes of the files of each manifest.
        target_file_bytes: How large an output file should be.
    """

    shape: str
    how: str
    outputs: Sequence[Sequence[int]]
    target_file_bytes: int

    @property
    def counted(self) -> list[int]:
        """The files of manifests whose output can be divided into files of the right size."""
        return [size for each in self.outputs if can_be_right_sized(sum(each), self.target_file_bytes) for size in each]

    @property
    def right_bytes(self) -> int:
        """The total length of those that have it."""
        return sum(size for size in self.counted if is_right_sized(size, self.target_file_bytes))

    def line(self) -> str:
        """A line of the table."""
        counted = self.counted
        wrong = sorted(
            size / self.target_file_bytes for size in counted if not is_right_sized(size, self.target_file_bytes)
        )
        percent = f"{100 * self.right_bytes / sum(counted):.1f}" if counted else "-"
        return (
            f"{self.shape:<13}{f'{len(self.outputs)} {self.how}':<15}{len(counted):>6}{sum(counted) / 1e6:>12.1f}"
            f"{percent:>15}  {' '.join(f'{size:.2f}' for size in wrong[:12])}"
        )


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes, scaled down alike.

    Attributes:
        target_file_bytes: How large an output file should be.
        manifests: How many manifests to make, beside the first.
        seed: Of the input, and of sizes.
    """

    target_file_bytes: int
    manifests: int
    seed: int

    def of(self, size_bytes: int) -> int:
        """A size that is usual where files have 128 MiB."""
        return max(1, size_bytes * self.target_file_bytes // _USUAL_FILE_BYTES)


def measured(shape: Shape, scale: Scale, work: Path) -> Iterator[Sizes]:
    """Make the input of a shape, compact it in both ways, and delete it."""
    file_bytes = max(scale.of(min(shape.file_bytes, GIB)), _LEAST_FILE_BYTES)
    pool = replace(shape, total_bytes=_POOL * scale.of(GIB), file_bytes=file_bytes)
    try:
        files = sorted(write_shape(pool, work / "input", scale.seed).folder.iterdir())
        for how in ("planned", "of any size"):
            outputs = list(islice(_compacted(files, work, scale, how), scale.manifests + 1))
            yield Sizes(shape.name, how, outputs[1:], scale.target_file_bytes)
    finally:
        shutil.rmtree(work / "input", ignore_errors=True)


def _compacted(files: Sequence[Path], work: Path, scale: Scale, how: str) -> Iterator[list[int]]:
    """Compact manifest after manifest in one process; yields the sizes of the output files of each."""
    home = CompactorHome(work / "output", (work / "input",))
    settings = home.settings(engine="native")
    app = App(
        replace(
            settings,
            output=settings.output.model_copy(update={"target_file_bytes": scale.target_file_bytes}),
            builder=settings.builder.model_copy(update={"target_manifest_bytes": scale.of(GIB)}),
        )
    )
    rng = random.Random(f"{how}/{scale.seed}")
    try:
        runner = streaming.scheduler(app, engines.native_engine(app, ThreadBinWorkers(app.store)))
        for number, chosen in enumerate(_cut(files, home, _next_bytes(app, scale, rng, how))):
            uri = app.layout.manifest(f"m{number}")
            app.store.create(uri, home.manifest(f"m{number}", chosen).to_json())
            batch = runner.run([uri])
            [outcome] = [result.outcome for result in batch.finished]
            if not isinstance(outcome, Commit):
                raise SystemExit(f"the manifest was not committed: {batch}"[:2000])
            yield [file.size_bytes for file in outcome.outputs]
    finally:
        for folder in (home.output, home.folder):
            shutil.rmtree(folder, ignore_errors=True)


def _next_bytes(app: App, scale: Scale, rng: random.Random, how: str) -> Callable[[], float]:
    """Tells how large the next manifest is to be, by what the ones before have taught."""

    def any_size() -> float:
        ratio = app.history.stored_ratio()
        return rng.uniform(SMALLEST, LARGEST) * scale.target_file_bytes / ratio if ratio else float(scale.of(GIB))

    return app.manifest_bytes if how == "planned" else any_size


def _cut(files: Sequence[Path], home: CompactorHome, next_bytes: Callable[[], float]) -> Iterator[list[Path]]:
    """Cut files into manifests, one at a time and without end: the first files come again behind the last."""
    left = list(files)
    while True:
        packing = Packing("", next_bytes())
        named = home.manifest("m", left).files
        chosen = [*packing.add(Candidate.of_file("", file) for file in named), *packing.end()][0].files
        yield left[: len(chosen)]
        left = left[len(chosen) :] + left[: len(chosen)]


@click.command()
@click.option("--target", default=16, show_default=True, help="Make output files of this many MiB.")
@click.option(
    "--manifests", default=6, show_default=True, help="Make the input of so many manifests, beside the first."
)
@click.option("--only", help="Compact only these shapes, separated by commas.")
@click.option("--seed", default=7, show_default=True, help="Make the input from this seed.")
def output_sizes(*, target: int, manifests: int, only: str | None, seed: int) -> None:
    """Measure how much output of each shape is in files of the right size; fails below 98 %."""
    scale = Scale(target * MIB, manifests, seed)
    found: list[Sizes] = []
    click.echo(HEADING)
    with tempfile.TemporaryDirectory(prefix="output-sizes-") as work:
        for shape in SHAPES:
            if only is None or shape.name in only.split(","):
                for sizes in measured(shape, scale, Path(work)):
                    found.append(sizes)
                    click.echo(sizes.line())
    right, counted = sum(each.right_bytes for each in found), sum(sum(each.counted) for each in found)
    percent = 100 * right / max(counted, 1)
    click.echo(f"{percent:.1f} % of {counted / 1e6:,.0f} MB in files of the right size; expected {EXPECTED_PERCENT} %")
    sys.exit(percent < EXPECTED_PERCENT)


if __name__ == "__main__":
    output_sizes()
