"""Reads the result of a benchmark for `compactor cost`: the speed of each engine on a machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from compactor.core.errors import CompactorError


class BenchResult(BaseModel):
    """The latest result on a machine.

    Attributes:
        megabytes_per_second: Millions of stored input bytes per second on all cores, by the name of the engine.
        machine: A description of the machine.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    megabytes_per_second: Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(min_length=1)
    cores: int = Field(ge=1)
    machine: str
    measured_at: AwareDatetime

    def bytes_per_second_per_core(self, engine: str) -> float:
        """Stored input bytes per second of one core."""
        return self.megabytes_per_second[engine] * 1e6 / self.cores


def read_bench_result(path: Path) -> BenchResult:
    """Read the result that `python -m bench` wrote.

    Raises:
        CompactorError: There is none, or it is damaged.
    """
    expected = "expected what `python -m bench` writes to .bench/last.json"
    try:
        return BenchResult.model_validate_json(path.read_bytes())
    except OSError as exc:
        raise CompactorError(f"{path}: {exc.strerror}; {expected}") from exc
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the document"
        raise CompactorError(f"{path}: {field}: {first['msg']}; {expected}") from exc
