"""The contenders of the benchmark."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

BASELINE = "classic"
"""The contender that the others are compared with."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of the table.

    Attributes:
        name: The name in the table and for `--only`.
        module: Run as `python -m MODULE --input DIR --output DIR --passes N`; see `bench.protocol`.
        args: Further arguments for the module.
        needs: Packages without which it cannot run.
        engine: The engine of this project that it measures, as settings name it; None for anything else.
    """

    name: str
    module: str
    args: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    engine: Literal["native", "spark"] | None = None

    def missing(self) -> list[str]:
        """The packages that this contender needs and that are not installed."""
        return [name for name in (*self.needs, self.module) if find_spec(name) is None]


_COMPACTOR = "bench.peers.compactor_run"

CONTENDERS = (
    Contender("classic", "bench.peers.classic_spark", needs=("pyspark",)),
    Contender(
        "compactor_native", _COMPACTOR, ("--engine", "native"), needs=("pyspark", "compactor_native"), engine="native"
    ),
    Contender("compactor_spark", _COMPACTOR, ("--engine", "spark"), needs=("pyspark",), engine="spark"),
    Contender("compactor_declared", _COMPACTOR, ("--engine", "spark", "--discovery", "declared"), needs=("pyspark",)),
    Contender("duckdb_columns", "bench.peers.duckdb_copy", ("--read", "columns"), needs=("duckdb",)),
    Contender("duckdb_union", "bench.peers.duckdb_copy", ("--read", "union"), needs=("duckdb",)),
    Contender("polars", "bench.peers.polars_scan", needs=("polars",)),
)


def choose(only: str | None) -> tuple[Contender, ...]:
    """Choose contenders, in the order of `CONTENDERS`.

    Args:
        only: Names separated by commas; None for all.

    Raises:
        ValueError: There is no contender of such a name.
    """
    if only is None:
        return CONTENDERS
    wanted = {name.strip() for name in only.split(",")}
    unknown = sorted(wanted - {contender.name for contender in CONTENDERS})
    if unknown:
        names = ", ".join(contender.name for contender in CONTENDERS)
        raise ValueError(f"no contender called {', '.join(unknown)}: expected some of {names}")
    return tuple(contender for contender in CONTENDERS if contender.name in wanted)
