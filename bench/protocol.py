"""The protocol between the benchmark and the process of a contender.

The process gets `--input DIR --output DIR --passes N`, converts all files of the input N times into the emptied output,
and prints one JSON object a line for each pass. Anything else that it prints goes to the log.
"""

import io
import json
import shutil
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

Convert = Callable[[Sequence[Path], Path], object]
"""Turns the input files into Parquet files anywhere below an existing, empty folder."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the whole input.

    Attributes:
        seconds: From the first read of the input to the last file closed.
        input_bytes: Bytes read.
        output_files: The size of each file written, in bytes.
        rows: Rows, by the footers.
    """

    seconds: float
    input_bytes: int
    output_files: tuple[int, ...]
    rows: int


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
    for _ in range(arguments.passes):
        if not kept:
            shutil.rmtree(arguments.output, ignore_errors=True)
            arguments.output.mkdir(parents=True)
        for earlier in set(arguments.output.rglob("*.parquet")).difference(kept):
            earlier.unlink()
        began = time.perf_counter()
        convert(files, arguments.output)
        seconds = time.perf_counter() - began
        written = sorted(set(arguments.output.rglob("*.parquet")).difference(kept))
        rows = sum(pq.read_metadata(file).num_rows for file in written)
        print(dump(Pass(seconds, input_bytes, tuple(file.stat().st_size for file in written), rows)), flush=True)


def dump(result: Pass) -> str:
    """One line of the protocol."""
    return json.dumps(asdict(result))


def load(line: str) -> Pass | None:
    """Parse a line into a pass; None for any other line."""
    try:
        said = json.loads(line)
        return Pass(said["seconds"], said["input_bytes"], tuple(said["output_files"]), said["rows"])
    except (ValueError, TypeError, KeyError):
        return None


def first_keys(file: Path) -> list[str]:
    """The top-level keys of the first line, for a contender that is told its columns."""
    with pa.input_stream(str(file), compression="detect") as stored, io.BufferedReader(stored) as lines:
        return list(orjson.loads(lines.readline()))
