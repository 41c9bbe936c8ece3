"""The search for attacks: that it finds a planted one, and that genomes are the input that they name."""

import random
from collections.abc import Iterable

import pytest

from tests.hostile.genome import DECODED_BYTES, LEVELS, SENT_BYTES, attack_of, files, genes_of, genome_of, mutated
from tests.hostile.measuring import Measured
from tests.hostile.search import SHOWN, Search, faults, slower


def costing(genomes: Iterable[str]) -> Iterable[Measured]:
    """Neighbours wait longer for each of three genes that an attack has; a fourth one costs the square of its size."""
    for genome in genomes:
        genes = genes_of(genome)
        bad = (genes["codec"] == "xz", genes["names"] == "cased", genes["files"] == 500)
        cpu_seconds = float(genes["times"]) ** (2 if genes["value"] == "digits" else 1)
        yield Measured(genome, 1.0, 1.0 + 3 * sum(bad), 0, 0, 0, cpu_seconds=cpu_seconds)


def test_a_planted_attack_is_found() -> None:
    """The search climbs to the genome with all three, whose neighbours wait beyond the bound; the worst comes first."""
    search = Search(costing, random.Random(7))
    search.run(lambda: len(search.found) > 1500)
    worst = search.worst()
    assert (len(worst), slower(worst[0])) == (SHOWN, 10.0)
    assert {"codec=xz", "names=cased", "files=500"} <= set(worst[0].name.split(", "))
    assert ["neighbours took 10.0 s" in each for each in faults(worst[0])] == [True]
    assert faults(next(iter(costing(["codec=xz"])))) == []


def test_what_grows_faster_than_its_size_is_found() -> None:
    """By what four times as much costs."""
    search = Search(costing, random.Random(7))
    assert [search.grown(genome) for genome in ("value=digits", "", "keys=2")] == [4.0, 1.0, 1.0]


def test_a_genome_is_its_text() -> None:
    """Any that mutation makes; each level of each gene comes up, but for the size, which is that of the budget."""
    rng, genome = random.Random(3), ""
    seen = set[tuple[str, object]]()
    for _ in range(3000):
        genome = mutated(genome, rng)
        genes = genes_of(genome)
        assert genome_of(genes) == genome
        seen |= set(genes.items())
    assert seen == {(name, level) for name, levels in LEVELS.items() for level in levels} - {("times", 4)}


@pytest.mark.parametrize("genome", ["keys=3", "nonsense", "repeats=30", "codec=zlib, members=50", "type=long"])
def test_what_is_no_genome(genome: str) -> None:
    """Unknown levels, and genes that need others."""
    with pytest.raises(ValueError, match=r"expected one of|no input is like that"):
        attack_of(genome)


@pytest.mark.parametrize(
    "genome",
    [
        "",
        "names=new, between=blank lines",
        "value=quotes, codec=zstd, repeats=1000, members=50, files=30, manifests=20, dates=many",
        "form=records, codec=bzip2, files=500, times=4",
        "keys=2000, codec=xz, files=500",
    ],
)
def test_input_keeps_to_the_budget(genome: str) -> None:
    """What is sent, and what is decoded of it; the same genome gives the same bytes."""
    genes = genes_of(genome)
    made, times = files(genes), int(genes["times"])
    assert made == files(genes)
    assert 0 < sum(map(len, made)) <= SENT_BYTES * times * 1.2
    plain = files({**genes, "codec": "none", "members": 1})
    assert sum(map(len, plain)) <= (SENT_BYTES if genes["codec"] == "none" else DECODED_BYTES) * times * 1.2
