"""Keeps the last result of the benchmark, which `compactor cost estimate` reads."""

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.contenders import CONTENDERS
from bench.table import Row
from compactor.cost.worker_needs import BenchResult

LAST_NAME = "last.json"


def keep_result(rows: Sequence[Row], work: Path) -> BenchResult | None:
    """Write how fast the engines of this project were, in place of the earlier result.

    Args:
        rows: The table. A row with a note (it failed, or its number of rows is wrong) does not count.
        work: The folder of the benchmark.

    Returns:
        The file; None if no engine took part, so that the earlier result stays.
    """
    engines = {contender.name: contender.engine for contender in CONTENDERS if contender.engine}
    speeds = _speeds(rows, engines)
    if not speeds:
        return None
    result = BenchResult(
        megabytes_per_second=speeds,
        cores=os.cpu_count() or 1,
        machine=f"{platform.system()} {platform.machine()}",
        measured_at=datetime.now(UTC),
    )
    (work / LAST_NAME).write_text(result.model_dump_json(indent=2) + "\n")
    return result


def _speeds(rows: Sequence[Row], engines: Mapping[str, str]) -> dict[str, float]:
    counted = (row for row in rows if row.contender in engines and not row.note)
    return {engines[row.contender]: row.megabytes_per_second for row in counted if row.megabytes_per_second}
