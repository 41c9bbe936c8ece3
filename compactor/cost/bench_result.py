"""Reads the result of a benchmark for `compactor cost`: the speed of each engine on a machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, Field

from compactor.core.errors import CompactorError, RecordUnreadable
from compactor.core.records import Document, read_record


class BenchResult(Document):
    """The latest result on a machine."""

    # Millions of stored input bytes per second on all cores, by the name of the engine.
    megabytes_per_second: Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(min_length=1)
    cores: int = Field(ge=1)
    machine: str
    measured_at: AwareDatetime


def read_bench_result(path: Path) -> BenchResult:
    """Read the result that `python -m bench` wrote.

    Raises:
        CompactorError: There is none, or it is damaged.
    """
    expected = "what `python -m bench` writes to .bench/last.json"
    try:
        return read_record(BenchResult.model_validate_json, path.read_bytes(), str(path), expected=expected)
    except OSError as exc:
        raise CompactorError(f"{path}: {exc.strerror}; expected {expected}") from exc
    except RecordUnreadable as exc:  # whose next move is for records of the ledger
        raise CompactorError(str(exc)) from exc
