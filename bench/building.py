"""Measures how many announced files a second the builder takes in, and whether earlier claims slow it down.

python -m bench.building [--help]
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

import click
from rich.console import Console
from rich.table import Table

from compactor.adapters.aws.local_setup import make_buckets, make_claims_table
from compactor.demo.local_aws import CREDENTIALS, local_aws
from compactor.settings.settings import Settings, parse_settings
from compactor.wiring import planning
from compactor.wiring.app import App
from tests.support.memory_store import MemoryClaims, MemoryStore
from tests.support.s3_messages import notification

LOAD_FILES_PER_SECOND = 200_000 / 3600
"""The target load: 200,000 files an hour."""

_BATCH = 1_000  # messages, about what one call of a function holds
_FILE_BYTES = 3_670_016
_CHUNK = 100_000
_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table.

    Attributes:
        what: The store of claims, and how many claims it held before.
        files_per_second: Files a second in the median batch.
    """

    what: str
    files_per_second: float


@click.command()
@click.option(
    "--batches",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    help="Build this many batches of 1,000 files in memory.",
)
@click.option(
    "--claims", default="0,100000,5000000", show_default=True, help="Make this many claims before, in memory."
)
@click.option(
    "--moto-batches",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Build this many batches on the AWS emulator.",
)
def main(*, batches: int, claims: str, moto_batches: int) -> None:
    """Measure how fast the builder takes in announced files."""
    results = [_in_memory(int(number), batches) for number in claims.split(",")]
    if moto_batches:
        with _on_moto() as components:
            results.append(Result("DynamoDB and S3 on moto", _rate(components, moto_batches)))
    first = results[0].files_per_second
    table = Table("claims", "files/s", "times the load of 55.6/s", "ratio to the first")
    for result in results:
        table.add_row(
            result.what,
            f"{result.files_per_second:,.0f}",
            f"{result.files_per_second / LOAD_FILES_PER_SECOND:,.0f}x",
            f"{result.files_per_second / first:.2f}x",
        )
    Console(highlight=False).print(table)
    if any(result.files_per_second < LOAD_FILES_PER_SECOND for result in results):
        sys.exit("slower than files come")


def _in_memory(claims_before: int, batches: int) -> Result:
    claims = MemoryClaims()
    now = datetime.now(UTC)
    for start in range(0, claims_before, _CHUNK):
        keys = [f"s3://raw/2026-01-01/{number:012d}.ndjson#e" for number in range(start, start + _CHUNK)]
        claims.claim(keys, "2026-01-01-before", now=now, lease_seconds=1)
    components = App(_settings(""), store=MemoryStore(), claims=claims)
    return Result(f"in memory, {claims_before:,} before", _rate(components, batches))


@contextmanager
def _on_moto() -> Iterator[App]:
    with ExitStack() as stack:
        url = stack.enter_context(local_aws())
        os.environ.update(CREDENTIALS)  # this process ends with the benchmark
        make_buckets(["lake"], region=_REGION, endpoint_url=url)
        make_claims_table("claims", region=_REGION, endpoint_url=url)
        yield App(_settings(url))


def _settings(endpoint_url: str) -> Settings:
    places = {name: f"s3://lake/{name}" for name in ("manifests", "output", "state")}
    return parse_settings(
        {
            "paths": places,
            "input": {"allowed_prefixes": ["s3://raw"]},
            "builder": {"claims": "claims"},
            "aws": {"region": _REGION, "endpoint_url": endpoint_url},
            "metrics": {"sink": "none"},
        }
    )


def _rate(components: App, batches: int) -> float:
    """Files a second in the median batch, the first one left out."""
    rates = []
    for batch in range(batches):
        numbers = range(batch * _BATCH, (batch + 1) * _BATCH)
        bodies = {str(n): notification("raw", f"2026-01-02/{n:012d}.ndjson", _FILE_BYTES, f"{n:032x}") for n in numbers}
        started = time.perf_counter()
        report = planning.builder(components).build(bodies)
        rates.append(_BATCH / (time.perf_counter() - started))
        taken = report.plans[""].candidates
        if report.failed or taken != _BATCH:
            raise click.ClickException(f"{len(report.failed)} messages failed, {taken} files were taken in")
    return median(rates[1:])


if __name__ == "__main__":
    main()
