"""Searches shapes of input for one whose cost falls off a cliff: `make bench-cliffs`.

A shape fails if it takes over 4 times the CPU time of the median of its neighbours, which differ from it in one
dimension, or if a byte costs over a third more at four times the size. What fails is added to the named shapes, which
are measured first.
"""

import json
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import click

from bench.cliffs.meter import EngineMeter, Limits
from bench.cliffs.named import keep, named_shapes
from bench.cliffs.search import Search
from bench.cliffs.table import closing, lines
from bench.inputs import parse_size

ENGINES = ("native", "spark")
_FLOOR_SECONDS = {"native": 0.15, "spark": 1.0}  # of noise: Spark compiles and collects garbage beside
_FILES = (64, 256, 1024)  # of one line
_SHOWN = 15


@click.command()
@click.option("--engine", type=click.Choice(["both", *ENGINES]), default="both", show_default=True)
@click.option("--minutes", default=20.0, show_default=True, help="Search so long, on all engines together.")
@click.option("--seed", type=int, help="Repeat the choices of a run; its shapes follow from what they cost.")
@click.option("--sizes", default="10mb,40mb,160mb", show_default=True, help="Compare these sizes of a shape.")
@click.option("--limit", default=180.0, show_default=True, help="End a conversion after so many seconds.")
@click.option("--files", default=500, show_default=True, help="Make so many files of a shape at most.")
@click.option("--keep/--no-keep", "keeps", default=True, show_default=True, help="Add cliffs to the named shapes.")
@click.option(
    "--work",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(__file__).resolve().parents[2] / ".bench" / "cliffs",
    help="Keep the results in this folder.",
)
def cliffs(
    *, engine: str, minutes: float, seed: int | None, sizes: str, limit: float, files: int, keeps: bool, work: Path
) -> None:
    """Fail if the cost of some shape of input falls off a cliff."""
    try:
        all_sizes = sorted(parse_size(size) for size in sizes.split(","))
        named = named_shapes()
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    click.echo(f"seed {seed}", err=True)
    engines = ENGINES if engine == "both" else (engine,)
    work.mkdir(parents=True, exist_ok=True)
    searches: dict[str, Search] = {}
    for name in engines:
        with (
            tempfile.TemporaryDirectory(prefix="bench-cliffs-") as place,
            EngineMeter(name, Path(place), seed, Limits(limit, files), log=work / f"{name}.log") as meter,
        ):
            search = searches[name] = Search(meter, all_sizes, _FLOOR_SECONDS[name], partial(_tell, name))
            ends = time.monotonic() + 60 * minutes / len(engines)
            search.known((each.point, each.beside) for each in named.values())
            search.files(_FILES)
            search.run(random.Random(seed), partial(_is_past, ends))
        (work / "cliffs.json").write_text(json.dumps(_record(seed, all_sizes, searches), indent=1))
    measured = sum(len(search.costs) for search in searches.values())
    code, said = closing({name: search.cliffs for name, search in searches.items()}, measured)
    for name, search in searches.items():
        click.echo("\n".join(lines(name, search, _SHOWN)))
    click.echo("\n".join(said))
    if keeps:
        for found in [cliff for search in searches.values() for cliff in search.cliffs]:
            keep(found)
    sys.exit(code)


def _tell(engine: str, said: str) -> None:
    click.echo(f"{engine}: {said}", err=True)


def _is_past(moment: float) -> bool:
    return time.monotonic() > moment


def _record(seed: int, sizes: list[int], searches: dict[str, Search]) -> dict[str, object]:
    """All measurements, and what was found."""
    return {
        "seed": seed,
        "sizes": sizes,
        "engines": {
            name: {
                "floor_seconds": search.floor_seconds,
                "seconds_of_files_of_one_line": search.file_seconds,
                "cliffs": [{"shape": cliff.point.differences(), "why": cliff.why} for cliff in search.cliffs],
                "cpu_seconds": [
                    {"shape": point.differences(), "seconds": costs} for point, costs in search.costs.items()
                ],
            }
            for name, search in searches.items()
        },
    }


if __name__ == "__main__":
    cliffs()
