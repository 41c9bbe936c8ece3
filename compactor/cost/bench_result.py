"""The result of a benchmark, as it is kept for `compactor cost`: how fast each engine was, on which machine."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from compactor.core.errors import CompactorError


class BenchResult(BaseModel):
    """The last result on a machine.

    Attributes:
        megabytes_per_second: Millions of stored input bytes a second on all cores, by the name of the engine.
        cores: Of the machine.
        machine: What it is, in words.
        measured_at: When.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    megabytes_per_second: Mapping[str, float] = Field(min_length=1)
    cores: int = Field(ge=1)
    machine: str
    measured_at: AwareDatetime

    def bytes_per_second_per_core(self, engine: str) -> float:
        """Stored input bytes a second of one core."""
        return self.megabytes_per_second[engine] * 1e6 / self.cores


def read_bench_result(path: Path) -> BenchResult:
    """Read the result that `python -m bench` has left.

    Raises:
        CompactorError: There is none, or it is something else.
    """
    expected = "expected what `python -m bench` writes to .bench/last.json"
    try:
        found = BenchResult.model_validate_json(path.read_bytes())
    except OSError as exc:
        raise CompactorError(f"{path}: {exc.strerror}; {expected}") from exc
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the document"
        raise CompactorError(f"{path}: {field}: {first['msg']}; {expected}") from exc
    slow = sorted(engine for engine, speed in found.megabytes_per_second.items() if not 0 < speed < float("inf"))
    if slow:
        raise CompactorError(f"{path}: the speed of {slow[0]} is no number above 0; {expected}")
    return found
