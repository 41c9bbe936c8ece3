"""What is explored of each module: a small configuration in seconds, a large one in minutes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tests.protocol.tlc import SPEC, Exploration, constants, explore

SAFETY: dict[str, tuple[str, ...]] = {
    "Claims": ("TypesHold", "AnEffectOnce", "BoundXorRevoked", "NothingForgotten", "LinesAreKept"),
    "Change": (
        "TypesHold", "AnEffectOnce", "NothingVisibleUnverified", "DoneIsWhole", "NothingIsLost", "NothingForgotten",
        "OriginalIsKept", "EachIsToldApart", "NothingComesBack",
    ),
    "Closing": (
        "TypesHold", "AnEffectOnce", "NoneIsSummarisedAgain", "ReadersCountOnce", "NothingClosedUnverified",
        "EachIsCompared", "NothingForgotten",
    ),
    "Shards": ("TypesHold", "AnEffectOnce", "OneTakes"),
    "Table": (
        "TypesHold", "AnEffectOnce", "FenceCounts", "RefusedStaysOut", "DoneIsVisible", "VisibleIsRecorded",
        "OneBatchEach", "NoGaps", "HeldIsBad", "NothingForgotten", "EachIsThere", "NothingIsLost", "RowsAreFound",
    ),
    "Landing": (
        "TypesHold", "AnEffectOnce", "NoGaps", "NothingForgotten", "NamedExactly", "EachIsAccounted", "WrittenAreGiven",
    ),
}  # fmt: skip
STAYS = {
    "Claims": ("RecordsStay",),
    "Change": ("ChangesStay",),
    "Closing": ("SummariesStay",),
    "Shards": ("OutcomesStay",),
    "Table": ("RecordsStay",),
    "Landing": ("LinksStay",),
}
LIVENESS = {
    "Claims": "EachArrives",
    "Change": "EachIsDone",
    "Closing": "EachIsClosed",
    "Shards": "EachIsDone",
    "Table": "EachTakesEffect",
    "Landing": "EachOffsetArrives",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One exploration of a module.

    Attributes:
        name: Tells it from others of the module.
        values: Of the constants, without the guards.
        alike: Constants whose members are interchangeable.
        is_live: Whether liveness is checked, under fairness.
        is_short: Whether it takes seconds, so that starting Java counts.
        without: The guards to leave out.
    """

    module: str
    name: str
    values: Mapping[str, str]
    alike: tuple[str, ...] = ()
    is_live: bool = False
    is_short: bool = True
    without: frozenset[str] = field(default_factory=frozenset)

    def explored(self) -> Exploration:
        """Explore it.

        Raises:
            RuntimeError: TLC could not read or evaluate the model.
        """
        return explore(self.module, *self.texts(), is_short=self.is_short)

    def texts(self, specification: str = "") -> tuple[Sequence[str], str]:
        """The lines of TLA+ that its cfg file refers to, and the text of that file.

        Args:
            specification: The behaviours to explore; empty for all of the module.
        """
        kept = sorted(guards(self.module) - self.without)
        named = ", ".join(f'"{guard}"' for guard in kept)
        lines = [constants({**self.values, "Guards": f"{{{named}}}"})]
        lines.append(f"SPECIFICATION {specification or ('FairSpec' if self.is_live else 'Spec')}\n")
        lines += [f"INVARIANT {name}\n" for name in SAFETY[self.module]]
        lines += [f"PROPERTY {name}\n" for name in STAYS.get(self.module, ())]
        lines += [f"PROPERTY {LIVENESS[self.module]}\n"] if self.is_live else []
        definitions = []
        if self.alike:
            permutations = " \\union ".join(f"Permutations({name})" for name in self.alike)
            definitions = [f"Symmetry == {permutations}"]
            lines.append("SYMMETRY Symmetry\n")
        return definitions, "".join(lines)

    def lacking(self, *left_out: str) -> "Configuration":
        """The same without some guards."""
        return replace(self, without=self.without | set(left_out))


def guards(module: str) -> frozenset[str]:
    """The guards of a module, as its text names them."""
    return frozenset(re.findall(r'Has\("([^"]+)"\)', (SPEC / f"{module}.tla").read_text()))


def _of(module: str, name: str, *, is_live: bool = False, **constants: Any) -> Configuration:
    """A configuration; the constants by their names, as TLA+ has them, or as numbers and booleans of Python."""
    values = {key: str(value).upper() if isinstance(value, bool) else str(value) for key, value in constants.items()}
    alike = () if is_live else tuple(each for each in _ALIKE[module] if "," in values[each])
    if values.get("Bad", "{}") not in {"{}", values.get("Manifests")}:  # the others are not like the bad ones
        alike = tuple(each for each in alike if each != "Manifests")
    return Configuration(module=module, name=name, values=values, alike=alike, is_live=is_live)


_ALIKE = {
    "Claims": ("Files", "Parts", "Lines", "Builders", "Sealers", "Redrivers"),
    "Change": ("Drivers", "Rebuilders", "Expirers"),
    "Closing": ("Closers",),
    "Shards": (),
    "Table": ("Manifests", "Drivers", "Mergers"),
    "Landing": ("Planners", "Partitions"),
}
"""Constants whose members are interchangeable where there are several, and no liveness is checked."""

# What the configurations of a kind have in common; each gives the others, or its own.
claims = partial(
    _of, "Claims", Files="{}", Parts="{}", Lines="{}", Builders="{}", Planners="{}", Sealers="{}", Redrivers="{}",
    Deferring="{}", MaxNumber=0, MaxIds=3, MaxStops=1, PausesOutliveLeases=True,
)  # fmt: skip
_redrive = partial(claims, Redrivers="{r1, r2}", MaxNumber=2)
_deferring = partial(_redrive, Deferring="{r1, r2}")
_change = partial(
    _of, "Change", Drivers="{}", Rebuilders="{}", Expirers="{}", Readers="{}", IsDone=False, MaxAttempts=2,
    MaxGenerations=1, MaxDamages=0, InPlace="{}", IsLaidAnew=False, LateCopies=False, Tidying=False, Cleans=True,
    Rule='"retired"', MaxStops=0,
)  # fmt: skip
_rebuild = partial(
    _change, Drivers="{d1}", Rebuilders="{r1}", IsDone=True, MaxGenerations=2, MaxDamages=1, IsLaidAnew=True,
    Tidying=True,
)  # fmt: skip
_expiring = partial(  # beside a rebuild; one stops, one gives up as its files expire, and one goes on
    _change, Rebuilders="{r1}", Expirers="{e1}", Readers="{v1}", IsDone=True, MaxAttempts=3, MaxGenerations=2,
    MaxDamages=2, Cleans=False, MaxStops=1,
)  # fmt: skip
_beside_driver = partial(_expiring, Drivers="{d1}", MaxAttempts=2, MaxDamages=1, MaxStops=0)
closing = partial(
    _of, "Closing", Manifests="{m1}", Unmarked="{}", Letters="{}", Second="{}", MaxGenerations=1, Closers="{c1}",
    Readers="{r1}", MayStop=True,
)  # fmt: skip
_two_dates = partial(closing, Manifests="{m1, m2}", Unmarked="{m1, m2}", Second="{m2}", Readers="{}")
_table = partial(
    _of, "Table", Manifests="{m1}", Bad="{}", Drivers="{d1, d2}", Mergers="{}", MaxBatches=1, MaxSnapshots=4,
    MaxMerges=0, MaxStops=1, Removes=False,
)  # fmt: skip
_refused = partial(_table, Manifests="{m1, m2}", Bad="{m1}", MaxBatches=3, MaxStops=0)
_merging = partial(
    _table, Manifests="{m1, m2}", Drivers="{}", Mergers="{p1}", MaxBatches=4, MaxSnapshots=5, MaxMerges=2
)
_beside_merger = partial(_merging, Drivers="{d1}", MaxBatches=3, MaxSnapshots=3, MaxMerges=1, MaxStops=0)
landing = partial(
    _of, "Landing", Partitions="{k1}", Planners="{c1}", MaxOffset=1, MaxTopics=1, MaxIds=2, MaxStops=1, MayForge=False
)


def shards(story: str, **how: Any) -> Configuration:
    return _of("Shards", story, **{"Story": f'"{story}"', "Ascending": True, "MaxWrong": 0, **how})


def first_change(drivers: str, attempts: int, stops: int) -> Configuration:
    """Drivers that take in, compact and finish a manifest, beside a cleaner."""
    return _change("as recorded", Drivers=drivers, MaxAttempts=attempts, MaxStops=stops)


SMALL = (
    claims("a builder and a planner", Files="{f1}", Builders="{b1}", Planners="{p1}"),
    claims("two sealers", Parts="{t1}", Sealers="{s1, s2}"),
    _change("one driver, and its end", Drivers="{d1}", MaxStops=2, is_live=True),
    _redrive("a redriven file", Files="{f1}", Builders="{b1}"),
    closing("beside a rebuild and a reader", Unmarked="{m1}", MaxGenerations=2),
    shards("one goes"),
    _table("two drivers"),
    _merging("two mergers", Mergers="{p1, p2}", MaxBatches=3),
    landing("two planners", Planners="{c1, c2}"),
)
"""Part of `make test`, so they have to be cheap: starting Java is most of it."""

MEDIUM = (
    claims("the end of each file", Files="{f1}", Builders="{b1, b2}", PausesOutliveLeases=False, is_live=True),
    claims("the end of each part", Parts="{t1}", Sealers="{s1, s2}", PausesOutliveLeases=False, is_live=True),
    _redrive("the end of a redriven file", Files="{f1}", Builders="{b1}", PausesOutliveLeases=False, is_live=True),
    _deferring("a deferred file", Files="{f1}", Builders="{b1}", Planners="{p1}"),
    _deferring("the end of a deferred file", Files="{f1}", Builders="{b1}", PausesOutliveLeases=False, is_live=True),
    _redrive("a redriven file that is listed", Files="{f1}", Planners="{p1}"),
    _redrive("a redriven line", Lines="{l1}", PausesOutliveLeases=False, is_live=True),
    _change("two drivers", Drivers="{d1, d2}"),
    _change("one driver in place, and its end", Drivers="{d1}", InPlace="{2}", MaxStops=1, is_live=True),
    _change("two drivers in place", Drivers="{d1, d2}", InPlace="{2}"),
    _rebuild("a rebuild beside a late driver, and its end", is_live=True),
    _expiring("a date, beside a rebuild and a reader"),
    _beside_driver("a date, beside a late driver as well"),
    _expiring("the end of a date", MaxAttempts=4, Readers="{}", is_live=True),
    _expiring("the end of rejects", Rule='"rejects"', MaxAttempts=4, Readers="{}", is_live=True),
    closing("beside a driver and a reader"),
    _two_dates("a redriven dead letter", Letters="{m1}"),
    closing("the end of each manifest", Readers="{}", MayStop=False, is_live=True),
    shards("one goes", is_live=True),
    _table("the end of each manifest", is_live=True),
    _table("two drivers of two manifests", Manifests="{m1, m2}", MaxBatches=2, MaxSnapshots=3, MaxStops=0),
    _table("a manifest that the catalog refuses", Bad="{m1}", MaxBatches=2),
    _refused("a refused manifest beside another", Drivers="{d1}", is_live=True),
    _merging("what is on record takes effect", MaxBatches=3, is_live=True),
    _merging("files that were merged are removed", Removes=True),
    _merging("one merger, and a table that is lost"),
    _beside_merger("a driver beside a merger"),
    landing("two planners of two offsets", Planners="{c1, c2}", MaxOffset=2, MaxStops=0),
    landing("retention", MaxOffset=2, MaxStops=0),
    landing("a topic made again, and the end of each offset", MaxTopics=2, MaxStops=0, is_live=True),
    landing("a lost manifest, and the end of each offset", is_live=True),
    landing("a copied manifest", MaxStops=0, MayForge=True),
)
"""Beside the small ones, part of `make spec`."""

_LARGE = (
    claims("three claimants of a file", Files="{f1}", Builders="{b1, b2}", Planners="{p1}", MaxIds=4, MaxStops=2),
    claims("two files", Files="{f1, f2}", Builders="{b1, b2}"),
    claims("two parts", Parts="{t1, t2}", Sealers="{s1, s2}"),
    _redrive("two redriven files", Files="{f1, f2}", Builders="{b1}", MaxNumber=3, MaxIds=4, MaxStops=2),
    _redrive("two redriven lines", Lines="{l1, l2}", MaxNumber=3, MaxStops=2),
    _change("two drivers, three attempts", Drivers="{d1, d2}", MaxAttempts=3, MaxStops=1),
    _change("two drivers in place, and their ends", Drivers="{d1, d2}", InPlace="{2}", MaxStops=1),
    _rebuild("two rebuilds beside a late driver", Rebuilders="{r1, r2}", MaxAttempts=3, Tidying=False),
    _rebuild("a rebuild, and one that clears up", Rebuilders="{r1, r2}"),
    _expiring("rejects, beside a rebuild and a reader", Rule='"rejects"'),
    _expiring("a date, by two processes", Expirers="{e1, e2}", Readers="{}"),
    _expiring("rejects, by two processes", Rule='"rejects"', Expirers="{e1, e2}", Readers="{}"),
    closing("beside a driver, a rebuild and a reader", MaxGenerations=2),
    closing("two closers and a reader", Closers="{c1, c2}"),
    _two_dates("two closers of two dates", Closers="{c1, c2}"),
    shards("one goes", MaxWrong=1),
    shards("one goes", Ascending=False, is_live=True),
    shards("one is replaced", is_live=True),
    shards("their number grows", is_live=True),
    shards("one without a shard becomes two"),
    _table("three drivers", Drivers="{d1, d2, d3}", MaxSnapshots=5, MaxStops=2),
    _table("two drivers of two manifests, and their ends", Manifests="{m1, m2}", MaxBatches=2),
    _refused("two drivers, a refused manifest and another"),
    _merging("two mergers and four batches", Mergers="{p1, p2}"),
    _merging("two mergers beside a removal", Mergers="{p1, p2}", Removes=True),
    _merging("merges of what was left beside a removal", MaxMerges=3, MaxBatches=5, Removes=True),
    _merging("a removal of three files", Manifests="{m1, m2, m3}", MaxStops=0, Removes=True),
    _beside_merger("a driver beside a merger and a removal", MaxBatches=4, MaxSnapshots=4, Removes=True),
    _beside_merger("a refused manifest beside a merger", Bad="{m1}"),
    landing("two planners, three manifests", Planners="{c1, c2}", MaxOffset=2, MaxIds=3),
    landing("a lost manifest, and a topic made again", MaxTopics=2, is_live=True),
    landing("three planners", Planners="{c1, c2, c3}"),
    landing("two planners of two partitions", Partitions="{k1, k2}", Planners="{c1, c2}"),
    landing("two planners, a topic made again", Planners="{c1, c2}", MaxTopics=2),
    landing("three offsets", MaxOffset=3, MaxIds=3),
)
LARGE = tuple(replace(each, is_short=False) for each in _LARGE)
"""Explored by `make spec-full` only."""

ASSUMED = _rebuild("with copies that outlive their drivers", LateCopies=True, MaxStops=1)
"""What the model does not hold without: see spec/README.md."""

_GUARDS_OF: dict[str, tuple[Configuration, ...]] = {
    "Claims": (
        claims("a builder and a planner", Files="{f1}", Builders="{b1}", Planners="{p1}"),
        claims("two sealers", Parts="{t1}", Sealers="{s1, s2}"),
        _redrive("a redriven line", Lines="{l1}"),
        _redrive("a redriven file", Files="{f1}", Builders="{b1}"),
        claims("two files", Files="{f1, f2}", Builders="{b1, b2}"),
    ),
    "Change": (
        _change("one driver", Drivers="{d1}", MaxStops=1),
        _change("one driver in place", Drivers="{d1}", InPlace="{2}", MaxStops=1),
        _rebuild("two rebuilds", Drivers="{}", Rebuilders="{r1, r2}", MaxAttempts=3),
        _rebuild("beside a late driver", MaxStops=1),
        _expiring("the end of a date", MaxAttempts=4, Readers="{}", is_live=True),
        _expiring("the end of rejects", Rule='"rejects"', MaxAttempts=4, Readers="{}", is_live=True),
        _expiring("a date, beside a rebuild and a reader"),
        _beside_driver("a date, beside a late driver as well"),
        _change("two drivers", Drivers="{d1, d2}", MaxStops=1),
    ),
    "Closing": (
        closing("a rebuild", Unmarked="{m1}", MaxGenerations=2),
        closing("one closer"),
        _two_dates("a dead letter", Letters="{m1}"),
        closing("two closers", Closers="{c1, c2}", Readers="{}"),
        _two_dates("two dates", Closers="{c1, c2}"),
    ),
    "Shards": (
        shards("one goes", is_live=True),
        shards("one is replaced"),
        shards("one without a shard becomes two"),
    ),
    "Table": (
        _table("two drivers"),
        _merging("files that were merged are removed", Removes=True),
        _refused("a refused manifest beside another", Drivers="{d1}", is_live=True),
        _table("a refused manifest", Bad="{m1}", MaxBatches=2),
        _merging("two mergers", Mergers="{p1, p2}", MaxBatches=3),
        _table("two drivers of two manifests", Manifests="{m1, m2}", MaxBatches=2, MaxSnapshots=3, MaxStops=0),
        _table("two drivers of two manifests, and their ends", Manifests="{m1, m2}", MaxBatches=2, MaxSnapshots=3),
        _merging("a removal of three files", Manifests="{m1, m2, m3}", MaxStops=0, Removes=True),
    ),
    "Landing": (
        landing("a copied manifest", MaxStops=0, MayForge=True),
        landing("retention", MaxOffset=2, MaxStops=0),
        landing("two planners of two partitions", Partitions="{k1, k2}", Planners="{c1, c2}", MaxStops=0),
        landing("the end of each offset", MaxTopics=2, is_live=True),
        landing("two planners, three manifests", Planners="{c1, c2}", MaxOffset=2, MaxIds=3, MaxStops=0),
    ),
}


def violated_without(module: str, guard: str) -> str:
    """The first property that a configuration of the module shows to fail without a guard; empty if all hold."""
    found = (each.lacking(guard).explored().violated for each in _GUARDS_OF[module])
    return next(filter(None, found), "")


def all_guards() -> Iterable[tuple[str, str]]:
    """Every guard with its module."""
    return ((module, guard) for module in SAFETY for guard in sorted(guards(module)))
