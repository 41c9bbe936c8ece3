"""Makes the input once for each size and seed."""

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from compactor.demo.events import FILE_BYTES, make_event_lines, write_day

_UNITS = {"kb": 1024, "mb": 1024**2, "gb": 1000 * 1024**2}  # 1gb is 286 files of 3.5 MB
_DISK_PER_INPUT_BYTE = 2  # for the Parquet of one contender, and for what Spark caches or spills


@dataclass(frozen=True, slots=True)
class Input:
    """The input of all contenders.

    Attributes:
        folder: Holds the NDJSON files and nothing else.
        files: Number of files.
        bytes: Total size of the files.
        rows: Total number of lines.
        seed: The seed that they were made from.
    """

    folder: Path
    files: int
    bytes: int
    rows: int
    seed: int


def chosen(only: str | None, names: Sequence[str]) -> list[str]:
    """The chosen names, in their order.

    Args:
        only: Some of them, separated by commas; None for all.
        names: Those that there are.

    Raises:
        ValueError: A name is unknown.
    """
    wanted = names if only is None else [name.strip() for name in only.split(",")]
    if unknown := sorted(set(wanted).difference(names)):
        raise ValueError(f"nothing called {', '.join(unknown)}: expected some of {', '.join(names)}")
    return [name for name in names if name in wanted]


def parse_size(text: str) -> int:
    """Bytes of a size such as `200mb` or `1gb`, where 1gb is 1000 MiB: 286 files of 3.5 MiB.

    Raises:
        ValueError: It is not such a size.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(kb|mb|gb)", text.strip().lower())
    if match is None or float(match[1]) == 0:
        raise ValueError(f"size {text!r}: expected a number and kb, mb or gb, as in 1gb")
    return int(float(match[1]) * _UNITS[match[2]])


def ensure_input(work: Path, total_bytes: int, seed: int) -> Input:
    """Make the input, unless it is there from an earlier run.

    Args:
        work: The folder of the benchmark.
        total_bytes: Size of the input.
        seed: The same seed gives the same files.

    Raises:
        OSError: There is not enough room on the disk.
    """
    # A changed generator has another fingerprint, so its old input is not used.
    fingerprint = hashlib.sha256(make_event_lines(seed, 100)).hexdigest()[:8]
    place = work / f"input-{total_bytes}-{seed}-{fingerprint}"
    check_room(work, total_bytes * _DISK_PER_INPUT_BYTE + (0 if place.exists() else total_bytes))
    if not place.exists():
        _make(place, total_bytes, seed)
    counts = json.loads((place / "counts.json").read_text())
    return Input(place / "files", counts["files"], counts["decoded_bytes"], counts["lines"], seed)


def check_room(work: Path, needed_bytes: int) -> None:
    """Check for room on the disk before work begins.

    Raises:
        OSError: There is less room than needed.
    """
    work.mkdir(parents=True, exist_ok=True)
    free_bytes = shutil.disk_usage(work).free
    if free_bytes < needed_bytes:
        raise OSError(
            f"{work}: {free_bytes / 1e9:.1f} GB free, expected at least {needed_bytes / 1e9:.1f} GB; "
            "take another --work folder or a smaller --size"
        )


def _make(place: Path, total_bytes: int, seed: int) -> None:
    """Make the input under another name first, so that an interrupted run leaves no incomplete input."""
    unfinished = place.with_name(place.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / "files").mkdir(parents=True)
    counts = write_day(
        lambda name, data: (unfinished / "files" / name).write_bytes(data),
        seed=seed,
        total_bytes=total_bytes,
        file_bytes=FILE_BYTES,
    )
    (unfinished / "counts.json").write_text(json.dumps(asdict(counts)))
    unfinished.rename(place)
