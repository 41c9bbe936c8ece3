"""Converts one shape with each contender, and compares the output of the compactor with the input."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.compactor_home import DAY, SAMPLE_ID, CompactorHome, S3Folder
from bench.contenders import Contender, choose
from bench.inputs import check_room, ensure_input
from bench.measure import Measurement, run_contender
from bench.scale.shapes.table import REFERENCE, REFERENCE_S3, Compared, ShapeRow
from bench.shapes import Shape, Written, write_shape
from compactor.adapters.aws.s3.store import S3Store
from compactor.core.layout import ManifestKey
from compactor.settings.settings import Settings
from compactor.wiring import operating
from compactor.wiring.app import App

ENGINES = choose("compactor_native,compactor_spark")
CONTENDERS = (*ENGINES, *choose("duckdb_columns"))
_DISK_PER_INPUT_BYTE = 2.5  # the input, the Parquet of one contender, and what Spark spills
_BUCKET = "lake"
_LOCAL = "shape"
_ON_S3 = "on-s3"
_SAMPLE_FILES = 9


@dataclass(frozen=True, slots=True)
class ShapeInput:
    """The input of the contenders.

    Attributes:
        name: The shape.
        whole: The input that is timed.
        sample: The input that is converted first, and compared value by value.
        s3: The server through which the compactor reads it; None for files.
        less: The input of the Spark engine in place of the whole.
    """

    name: str
    whole: Written
    sample: Written
    s3: S3Folder | None = None
    less: Written | None = None

    def of(self, engine: str | None) -> "ShapeInput":
        """The input that a contender converts."""
        return replace(self, whole=self.less) if self.less is not None and engine == "spark" else self


@contextmanager
def shape_input(shape: Shape, work: Path, seed: int) -> Iterator[ShapeInput]:
    """Make the files of a shape and of its sample; they are deleted when the context ends.

    Raises:
        OSError: There is not enough room on the disk.
    """
    with _place(work, shape.total_bytes) as place:
        whole = write_shape(shape, place / "whole", seed)
        sample = write_shape(shape.beginning(shape.sample_bytes), place / "sample", seed)
        less = None
        if shape.spark_bytes is not None and shape.spark_bytes < shape.total_bytes:
            less = write_shape(shape.beginning(shape.spark_bytes), place / "less", seed)
        yield ShapeInput(shape.name, whole, sample, less=less)


@contextmanager
def reference_input(work: Path, total_bytes: int, seed: int) -> Iterator[ShapeInput]:
    """Name the reference input and a sample of it as files of this machine; the names go when the context ends.

    Raises:
        OSError: There is not enough room on the disk.
    """
    files = _reference_files(work, total_bytes, seed)
    with _place(work, total_bytes) as place:
        for name, some in files.items():
            (place / name).mkdir()
            for file in some:
                (place / name / file.name).hardlink_to(file)
        yield ShapeInput(REFERENCE, _existing(place / "whole"), _existing(place / "sample"))


@contextmanager
def reference_over_s3(work: Path, total_bytes: int, seed: int) -> Iterator[ShapeInput]:
    """Put the reference input into a versitygw on this machine, over TLS; it ends with the context.

    Raises:
        OSError: There is not enough room on the disk.
        RuntimeError: versitygw is not installed.
    """
    # They come with the repository only.
    from tests.faults.s3_server import versitygw  # noqa: PLC0415
    from tests.support.tls import Authority  # noqa: PLC0415

    files = _reference_files(work, total_bytes, seed)
    with (
        _place(work, total_bytes, _ON_S3) as place,
        versitygw(place / "s3", Authority.make(place, "authority")) as server,
    ):
        os.environ.update(server.environment)  # this process ends with the benchmark
        server.make_bucket(_BUCKET)
        store, bucket = S3Store(server.client()), place / "s3" / _BUCKET
        for name, some in files.items():
            for file in some:
                # In one piece: versitygw was seen to refuse pieces with their checksum behind them, over TLS.
                store.put(f"s3://{_BUCKET}/{name}/{file.name}", file.read_bytes())
        s3 = S3Folder(place / "s3", server.url)
        yield ShapeInput(REFERENCE_S3, _existing(bucket / "whole"), _existing(bucket / "sample"), s3)


def run_shape(given: ShapeInput, contender: Contender, work: Path, passes: int = 1) -> ShapeRow:
    """Convert a shape with a contender in a process of its own, compare, and delete the output.

    Args:
        given: The input.
        contender: One of `CONTENDERS`.
        work: The folder for logs and, without S3, for the output.
        passes: How often to convert it.
    """
    engine = contender.engine
    given = given.of(engine)
    parent = work / _LOCAL if given.s3 is None else given.s3.folder / _BUCKET
    home = CompactorHome(parent / "output", (given.whole.folder, given.sample.folder), given.s3)
    log = work / f"{given.name}-{contender.name}.log".replace(" ", "-").replace("/", "")
    try:
        measured = run_contender(
            replace(contender, args=(*contender.args, *_arguments(given, engine))),
            given.whole.folder,
            home.output,
            log,
            passes=passes,
        )
        settings = home.settings(engine=engine) if engine else None
        return _row(given, contender.name, measured, settings)
    finally:
        for folder in (home.output, home.folder):
            shutil.rmtree(folder, ignore_errors=True)


def _arguments(given: ShapeInput, engine: str | None) -> tuple[str, ...]:
    """The additional arguments of the compactor."""
    if engine is None:
        return ()
    sample = ("--sample", str(given.sample.folder))
    s3 = given.s3
    return sample if s3 is None else (*sample, "--s3-folder", str(s3.folder), "--endpoint-url", s3.endpoint_url)


def _row(given: ShapeInput, name: str, measured: Measurement, settings: Settings | None) -> ShapeRow:
    by_cpu = sorted(measured.passes, key=lambda each: each.cpu_seconds)
    done = None if measured.failure else by_cpu[(len(by_cpu) - 1) // 2]
    return ShapeRow(
        shape=given.name,
        contender=name,
        decoded_bytes=given.whole.decoded_bytes,
        seconds=done.seconds if done else 0.0,
        cpu_seconds=done.cpu_seconds if done else 0.0,
        peak_memory_bytes=measured.peak_memory_bytes,
        peak_worker_bytes=measured.peak_worker_bytes,
        is_promised=settings is not None,
        rows=done.rows if done else 0,
        expected_rows=given.whole.lines,
        output_files=done.output_files if done else (),
        target_file_bytes=settings.output.target_file_bytes if settings else 128 * 2**20,
        compared=compare(settings, given.sample, f"pass-{len(measured.passes)}") if settings and done else None,
        failure=measured.failure,
    )


def compare(settings: Settings, sample: Written, timed_id: str) -> Compared:
    """Verify what the job committed: files, footers and counts, and every value of the sample.

    Args:
        settings: The settings of the job.
        sample: The manifest of the sample.
        timed_id: The manifest of all input, of the last pass: each pass deletes the output of the one before.
    """
    app = App(settings)
    deep = operating.verifier(app, deep=True).verify_manifests([ManifestKey(DAY, SAMPLE_ID)])
    shallow = operating.verifier(app).verify_manifests([ManifestKey(DAY, timed_id)])
    found = [str(each) for report in (deep, shallow) for each in report.discrepancies]
    if deep.inputs_compared != sample.files:
        found.append(f"{deep.inputs_compared} files of the sample could be compared, expected {sample.files}")
    if (deep.rows, deep.rejected_lines) != (sample.lines, 0):
        found.append(f"{deep.rows:,} rows of the sample and {deep.rejected_lines:,} rejects, expected {sample.lines:,}")
    if shallow.rejected_lines or shallow.manifests != 1:
        found.append(f"{shallow.rejected_lines:,} rejects in {shallow.manifests} manifests, expected none in 1")
    return Compared(sample.decoded_bytes, tuple(found))


def _existing(folder: Path) -> Written:
    """The existing files below some folders."""
    files = list(folder.iterdir())
    size = sum(file.stat().st_size for file in files)
    return Written(folder, len(files), sum(file.read_bytes().count(b"\n") for file in files), size, size)


def _reference_files(work: Path, total_bytes: int, seed: int) -> dict[str, list[Path]]:
    """The files of the reference input, by the folder that they are to be in."""
    files = sorted(ensure_input(work, total_bytes, seed).folder.iterdir())
    return {"whole": files, "sample": files[:_SAMPLE_FILES]}


@contextmanager
def _place(work: Path, total_bytes: int, name: str = _LOCAL) -> Iterator[Path]:
    """An empty folder for an input of this size and what is made of it; it is deleted when the context ends."""
    check_room(work, int(total_bytes * _DISK_PER_INPUT_BYTE))
    place = work / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        yield place
    finally:
        shutil.rmtree(place)
