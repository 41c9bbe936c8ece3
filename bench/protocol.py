"""The protocol between the benchmark and the process of a contender.

The process gets `--input DIR --output DIR --passes N`, converts all files of the input N times into the emptied output,
and prints one JSON object a line for each pass. Anything else that it prints goes to the log.
"""

import io
import itertools
import json
import shutil
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

Convert = Callable[[Sequence[Path], Path], int | None]
"""Turns the input files into Parquet files anywhere below an existing, empty folder.

Returns how many lines it rejected and recorded; None if it keeps no record of them.
"""

_FIRST_LINES = 10
_LONG_LINE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the whole input.

    Attributes:
        seconds: From the first read of the input to the last file closed.
        input_bytes: Bytes read.
        output_files: The size of each file written, in bytes.
        rows: Rows, by the footers.
        cpu_seconds: Of all its processes, in user and kernel mode.
        rejected: Lines that it rejected and recorded; None if it keeps no record of them.
    """

    seconds: float
    input_bytes: int
    output_files: tuple[int, ...]
    rows: int
    cpu_seconds: float = 0.0
    rejected: int | None = None


def parser() -> ArgumentParser:
    """The parser of the arguments that every contender takes. A contender may add further ones."""
    made = ArgumentParser()
    made.add_argument("--input", type=Path, required=True)
    made.add_argument("--output", type=Path, required=True)
    made.add_argument("--passes", type=int, required=True)
    return made


def run_passes(arguments: Namespace, convert: Convert, *, kept: Collection[Path] = ()) -> None:
    """Time the passes, and print the result of each. Reading the output back is not timed.

    Args:
        arguments: The parsed arguments.
        convert: Converts the input once; this is timed.
        kept: Files of the output that are neither deleted nor counted.
    """
    files = sorted(arguments.input.iterdir())
    input_bytes = sum(file.stat().st_size for file in files)
    time_passes(arguments, input_bytes, lambda: convert(files, arguments.output), kept=kept)


def time_passes(
    arguments: Namespace, input_bytes: int, convert: Callable[[], int | None], *, kept: Collection[Path] = ()
) -> None:
    """As `run_passes`, of input that is in no files, of which `input_bytes` is the length."""
    for _ in range(arguments.passes):
        if not kept:
            shutil.rmtree(arguments.output, ignore_errors=True)
            arguments.output.mkdir(parents=True)
        for earlier in set(arguments.output.rglob("*.parquet")).difference(kept):
            earlier.unlink()
        used, began = cpu_seconds(), time.perf_counter()
        rejected = convert()
        seconds, used = time.perf_counter() - began, cpu_seconds() - used
        written = sorted(set(arguments.output.rglob("*.parquet")).difference(kept))
        rows = sum(pq.read_metadata(file).num_rows for file in written)
        sizes = tuple(file.stat().st_size for file in written)
        print(dump(Pass(seconds, input_bytes, sizes, rows, used, rejected)), flush=True)


def cpu_seconds() -> float:
    """CPU time of this process and its descendants so far, with that of children that have ended."""
    total = 0.0
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def dump(result: Pass) -> str:
    """One line of the protocol."""
    return json.dumps(asdict(result))


def load(line: str) -> Pass | None:
    """Parse a line into a pass; None for any other line."""
    try:
        said = json.loads(line)
        return Pass(**{**said, "output_files": tuple(said["output_files"])})
    except (ValueError, TypeError, KeyError):
        return None


def first_keys(file: Path) -> list[str]:
    """The top-level keys of the first ten lines, or up to a very long one, for a contender that is told its columns."""
    with pa.input_stream(str(file), compression="detect") as stored, io.BufferedReader(stored) as lines:
        keys: dict[str, None] = {}
        for line in itertools.islice(lines, _FIRST_LINES):
            keys |= dict.fromkeys(orjson.loads(line))
            if len(line) > _LONG_LINE_BYTES:
                break
        return list(keys)
