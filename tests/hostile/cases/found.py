"""The worst that `tests.hostile.search` found, by their genomes."""

from tests.hostile.genome import attack_of

_GENOMES = (
    "keys=200, kind=nested, mix=null in 30 %, levels=30, value=quotes, codec=xz, files=500, manifests=20",
    "mix=empty in 30 %, order=shuffled, names=escaped, value=exponents, files=500",
    "keys=2000, present=four, characters=1000, value=distinct, form=grok, repeats=1000, codec=gzip, members=2000",
    "keys=2, rejects=20, value=exponents, partition=identity, between=blank lines, codec=snappy",
    "mix=empty in 30 %, characters=4, rejects=1, form=grok, repeats=30, codec=zstd, files=500",
)

ATTACKS = tuple(map(attack_of, _GENOMES))
